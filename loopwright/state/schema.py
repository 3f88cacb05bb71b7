"""The state of a thread: its channels, who writes each, and the shapes of what is in them.

All values are plain JSON except the messages. Rules over these values live in `graph.edges`.
"""

from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AnyMessage, ToolMessage
from typing_extensions import TypedDict

from loopwright.errors import StateError
from loopwright.spending import Usage

DecisionKind = Literal[
    "opening",
    "opening_polled",
    "refused",
    "turn",
    "idle",
    "compact",
    "tools",
    "again",
    "satisfied",
    "empty",
    "cut",
    "hard_stop",
    "stopped",
    "done",
    "fault",
]


class Decision(TypedDict):
    """What the last node decided; the edge behind it looks up `kind` and nothing else.

    `about` is the id of the ledger's last message when the decision was made. `reason` names the
    rule of a `stopped`, `error` is `{"kind", "message"}` of a `fault` or `refused`.
    """

    kind: DecisionKind
    about: NotRequired[str | None]
    reason: NotRequired[str]
    error: NotRequired[dict[str, str]]


class Admission(TypedDict):
    """What the entrance admitted as the input of a run."""

    kind: Literal["prompt", "continue"]
    messages: list[AnyMessage]


class Tree(TypedDict):
    """A run and all runs that it starts, named by the first one: its thread and its id."""

    thread: str
    run: str


class Answered(TypedDict):
    """The final answer of a run that has to give one in a form, as JSON."""

    value: Any


class RunRecord(TypedDict):
    """The run that is going on, or the last one.

    `sequence` is the number of the next event, `turn` counts from 1, `first` is the index in the
    ledger of the first message that this run produced. `status` is `running` until `finish` or
    `fail` has written `ended`; a loaded `running` means that the run died. `concluding` says that
    its tokens are used up and the model was told so. `overflow` says that the last request did not
    fit, `retried` how often it was sent again before that. `tree` is there if calls are counted.
    `aside` is what requests have used whose answers are not in the ledger.
    `answered` is the valid answer that the last turn has given, `repairs` counts invalid ones.
    """

    id: str
    resumed_from: str | None
    status: Literal["running", "ended"]
    sequence: int
    turn: int
    first: int
    overflow: bool
    retried: NotRequired[int]
    tree: NotRequired[Tree]
    concluding: NotRequired[bool]
    aside: NotRequired[Usage]
    answered: NotRequired[Answered | None]
    repairs: NotRequired[int]


class View(TypedDict):
    """What a request sees instead of the whole ledger: `head`, then the messages from `start` on.

    `measured_from` is the ledger's length when the view was made: token counts that answers before
    it reported are of another context.
    """

    head: list[AnyMessage]
    start: int
    measured_from: int


class Cursor(TypedDict):
    """The last queue entries that were delivered; what lies behind them in the log still waits."""

    steering: int
    follow_up: int


class Held(TypedDict):
    """A batch that is run in parts, one call a superstep: the results so far that are not in the
    ledger yet, what the tools sent along to stand behind all results, and whether every result so
    far asked to end the run. `approved` has the arguments of the calls that a person has approved.
    """

    results: list[ToolMessage]
    extra: list[AnyMessage]
    terminate: bool
    approved: NotRequired[dict[str, Any]]


class StoredPlan(TypedDict):
    """A plan as JSON; what its fields mean is said in `plans.Plan`."""

    steps: list[str]
    done: list[int]
    revisions: int
    idle: int
    progress: bool
    invalid_marks: int
    drift: str | None


def held_results(held: Held | None) -> dict[str, ToolMessage]:
    """The results by call id that a batch has kept back."""
    return {result.tool_call_id: result for result in held["results"]} if held else {}


def no_cursor() -> Cursor:
    """The cursor of a thread to which nothing was delivered yet."""
    return Cursor(steering=0, follow_up=0)


def append(ledger: list[AnyMessage], new: list[AnyMessage]) -> list[AnyMessage]:
    """The reducer of the ledger: append only. Rewriting is `Overwrite`, which only repair uses."""
    if not isinstance(new, list):
        raise StateError(f"the ledger takes a list of messages, not {type(new).__name__}")
    return ledger + new if new else ledger


class AgentState(TypedDict):
    """The channels. Nodes never change the lists in here: they are the channels' own objects."""

    messages: Annotated[list[AnyMessage], append]
    """The ledger: complete messages with unique ids. Written by the guard around every node."""

    input: Admission
    """Written by the entrance, read by `load`."""

    decision: Decision
    """Overwritten by every node."""

    run: RunRecord
    """Started by `load`, kept up to date by the guard, ended by `finish` and `fail`."""

    settings: dict[str, Any]
    """`Settings` as JSON, frozen by `load`; `prepare_next_turn` may change them for the run."""

    system_prompt: str
    """Set once per thread by `load`; never part of the messages (S3-05, S3-06)."""

    view: View
    """Reset by `load` to the last compaction; changed by `compact` and by hooks for the run."""

    compaction: View
    """Written by `compact` for all later runs."""

    cursor: Cursor
    """Written by whoever polls: `queue_drain`, and `load` for a continuation."""

    held: Held | None
    """Written by `tool_batch`; None unless a call interrupts the run behind or beside others that
    have already run: their results are stored before the run is interrupted. Emptied by `load`,
    whose repair uses what an interrupted run left here."""

    plan: StoredPlan | None
    """The plan as JSON, written by `stop_hook`; `load` starts a new run's counts."""

    usage: Usage
    """Tokens and cost of the thread, written by `model`; the guard adds what is used aside."""

    result: dict[str, Any]
    """The outcome of the last run, written by `finish` and `fail`."""


class AgentInput(TypedDict):
    """What a caller gives: messages to add. Required even if empty (a run without new messages)."""

    messages: list[AnyMessage]


class EntranceInput(TypedDict):
    """What the entrance hands to the graph in the caller's stead."""

    input: Admission


class AgentOutput(TypedDict):
    """What a run gives back: the whole ledger and the outcome of the run."""

    messages: list[AnyMessage]
    result: dict[str, Any]


class Overrides(TypedDict, total=False):
    """What Studio or a server may set for one run; JSON values, all optional, may be absent."""

    model: str
    system_prompt: str
    tools: list[str]
    max_turns: int
    max_seconds: float
    max_tokens: int
    max_cost: float
    max_calls: int
    output: dict[str, Any]
    """The JSON schema of the final answer."""
