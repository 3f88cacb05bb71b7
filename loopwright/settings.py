"""What a user may set: the policies of a run, and the environment of a process.

Defaults are the default runtime's (K28); presets replace them. Nothing is read at import.
"""

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_origin

import platformdirs
from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from loopwright.errors import ConfigurationError
from loopwright.forms import OutputForm
from loopwright.validation import (
    require_kind,
    require_known,
    require_one_of,
    require_positive,
    require_whole,
)

QueueMode = Literal["one_at_a_time", "all"]
RepetitionPolicy = Literal["off", "first_repeat", "graded"]
ForeignThinking = Literal["drop", "text"]


FROM_ZERO = {"at_least": 0}  # said of a whole number that may be 0


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of one run; None means no bound.

    The first ones end the run with status `limit` before the next turn; the bounds of an answer
    make it a protocol error, those of arguments an error result, unless `Settings.protocol` is
    strict.
    """

    turns: int = 90
    """Model turns of one run (S3-02)."""

    last_answer: bool = False
    """Whether a run that reaches `turns` is given one more turn, without tools, for an answer."""

    seconds: float | None = None
    """Seconds by the clock from the beginning of the run."""

    tokens: int | None = None
    """Tokens of all answers of the run, input and output, as their providers counted them."""

    cost: float | None = None
    """US dollars that all answers of the run have cost, as far as that is known."""

    length_rounds: int | None = field(default=3, metadata=FROM_ZERO)
    """Answers in a row, cut at the output limit, that are asked for again or continued (K10). None:
    texts are not continued, and cut calls are asked for again without a bound."""

    token_budget: int | None = field(default=None, metadata=FROM_ZERO)
    """Tokens of all answers of the run from which on it has to conclude: the model is told so once,
    in a note, and has no tools any more. If it calls one, the run ends (S4-04, K21)."""

    calls: int | None = None
    """Model calls of a run together with all runs that it starts: one wallet (S3-02, K5)."""

    child_calls: int = 50
    """Model calls that a run started by another one may take from their wallet at most (K6)."""

    reserved_calls: int = field(default=2, metadata=FROM_ZERO)
    """The last model calls of a wallet, which only the run that began it may take (K6)."""

    chunks: int | None = None
    """Pieces of one streamed answer."""

    text: int | None = None
    """Code points of text in one answer."""

    blocks: int | None = None
    """Blocks of one answer: its texts and calls."""

    argument_depth: int = 64
    """Containers of a call's arguments that may stand inside one another, below the root."""

    argument_values: int = 200_001
    """Values in a call's arguments, with the root."""

    argument_entries: int = 200_000
    """Fields of objects and items of arrays in a call's arguments."""

    argument_characters: int = 4_000_000
    """Code points of all keys and texts in a call's arguments."""

    initial_messages: int | None = None
    """Messages that a run may begin with: the stored ones and its prompt."""

    result_characters: int | None = 1_000_000
    """Code points of a tool result's text; what is longer is cut, and says so within the bound."""

    def __post_init__(self) -> None:
        for bound in fields(self):
            value = getattr(self, bound.name)
            if value is None and type(None) in get_args(bound.type):
                continue
            least = bound.metadata.get("at_least", 1)
            require_kind(bound.type, f"limits.{bound.name}", value, at_least=least)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The policies of a run, plain JSON values only; a run keeps the ones it started with."""

    model: str = "offline"
    """Name of the model: `provider/model`, or the name of a model object given to the agent."""

    thinking_level: str = "off"
    """How much the model may think: off, minimal, low, medium, high; the provider maps it."""

    foreign_thinking: ForeignThinking = "drop"
    """Whether another model's visible thinking is left out or sent as text (S1-20, K23)."""

    tools: tuple[str, ...] | None = None
    """Names of the tools offered to the model; None offers all registered ones."""

    fallback: tuple[str, ...] = ()
    """Models to ask in turn, each for the rest of the run, once the one before has failed in a way
    that another may mend: no key, no credit, retries used up. Without a name here none is asked."""

    retries: int = 3
    """How often a request is sent again after failures that may pass (S1-11)."""

    stall_timeout: float | None = 600.0
    """Seconds without a piece of an answer that end the attempt as `timeout`; None: no end."""

    tool_execution: Literal["parallel", "sequential"] = "parallel"
    """How a batch runs; a called tool that says sequential makes its whole batch sequential."""

    protocol: Literal["lenient", "strict"] = "lenient"
    """Whether every answer has to keep the protocol of `providers.protocol` (S0-11 to S0-14) before
    anything of it takes effect: what breaks it fails the run."""

    request_offset: int = 0
    """Requests that an outer life cycle has numbered before the first one of this run (S0-02)."""

    tool_timeout: float | None = None
    """Seconds after which one tool call is given up and answered with an error; None waits."""

    repetition: RepetitionPolicy = "graded"
    """What becomes of a run that repeats itself (K16): `graded` warns of calls, cycles of calls and
    failures that go on unchanged, then ends it; `first_repeat` ends it at the second call that is
    the same. What would go on with it is not executed."""

    empty_answers: Literal["nudge", "note", "keep"] = "nudge"
    """What becomes of an answer without text and calls: `nudge` asks for another, once in a run;
    `note` gives it a text that says so (nudge does it then); `keep` leaves it as it is (K24)."""

    repeatable: tuple[str, ...] = ()
    """Names of tools that may be called again and again with the same arguments, such as one that
    polls. A tool may say so itself (`Tool.repeatable`)."""

    child_wallet: Literal["shared", "isolated"] = "shared"
    """Whether runs that a run starts draw from its wallet (S3-02) or each have their own (K6)."""

    plan_model: str | None = None
    """The model that makes the plan of a run, asked while there is none; None: `model` (S4-13)."""

    plan_idle_revisions: int = 2
    """Revisions of the plan in a row without a tool's success between them, before the run ends."""

    plan_revisions: int = 8
    """Revisions of the plan in one run, before it ends."""

    steering_mode: QueueMode = "one_at_a_time"
    """How many waiting steering messages one poll takes."""

    follow_up_mode: QueueMode = "one_at_a_time"
    """How many waiting follow-up messages one poll takes."""

    cancel_policy: Literal["record", "leave", "cut"] = "record"
    """Whether a cancelled run answers its open calls or leaves them to `load` (K1, K24). `cut`
    leaves them and waits for nothing: no answer and no result joins the transcript behind the
    signal, not even one that is complete in the same instant (S0-23)."""

    repair_policy: Literal["always", "died", "off", "refuse"] = "died"
    """When `load` repairs a transcript: always, after a run that did not end or was cancelled, or
    never. `refuse` is never too, and no run begins on a transcript whose calls and results do not
    belong together (S0-05)."""

    journal_sync: Literal["normal", "full"] = "normal"
    """Whether what is noted around a tool's effect waits for the disk, so that it survives a power
    loss too: costs some milliseconds per note, and needs a log that can do it (SQLite's)."""

    context_window: int | None = None
    """Tokens that fit the model; None asks the provider; unknown means never measured."""

    compaction_threshold: float = 0.6
    """Share of the window above which (strictly, S1-07) the older part is summarised."""

    compaction_tail: int = 6
    """Messages that a compaction keeps verbatim at least, rounded up to a legal cut."""

    keep_checkpoints: int | None = None
    """Newest checkpoints of its thread that a run leaves when it ends, at least 1; None leaves all.
    Messages are never deleted, but only these moments can be gone back to."""

    output: OutputForm | None = None
    """The form that the final answer must have; None: any text."""

    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        for choice in (f for f in fields(self) if get_origin(f.type) is Literal):
            require_one_of(choice.name, getattr(self, choice.name), get_args(choice.type))
        require_whole("compaction_tail", self.compaction_tail, at_least=1)
        for name in ("request_offset", "plan_idle_revisions", "plan_revisions", "retries"):
            require_whole(name, getattr(self, name), at_least=0)
        for name in ("tool_timeout", "stall_timeout"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name))
        for name in ("context_window", "keep_checkpoints"):
            if getattr(self, name) is not None:
                require_whole(name, getattr(self, name), at_least=1)
        if not 0 < self.compaction_threshold <= 1:
            raise ConfigurationError(
                f"compaction_threshold is {self.compaction_threshold!r}: "
                "use a number above 0 and at most 1",
                field="compaction_threshold",
            )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` gives equal settings back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Raises ConfigurationError for a field that does not exist."""
        require_known("setting", data, cls)
        require_known("limit", data.get("limits", {}), Limits)
        require_known("output setting", data.get("output") or {}, OutputForm)
        limits, output = Limits(**data.get("limits", {})), data.get("output")
        form = None if output is None else OutputForm(**output)
        names = [name for name in ("tools", "repeatable", "fallback") if data.get(name) is not None]
        lists = {name: tuple(data[name]) for name in names}
        return cls(**{**data, **lists, "limits": limits, "output": form})


def workspace_folder(path: str | Path) -> Path:
    """The folder that file tools are confined to, links resolved. Raises ConfigurationError."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise ConfigurationError(f"workspace {str(path)!r} is not a folder", field="workspace")
    return folder.resolve()


class Environment(BaseSettings):
    """What the process's environment says, read from variables that start with `LOOPWRIGHT_`."""

    model_config = SettingsConfigDict(env_prefix="LOOPWRIGHT_", extra="ignore")

    model: str = "offline"
    """Model of agents that name none."""

    base_url: str | None = None
    """Address of an OpenAI-compatible server for models without a provider of their own."""

    api_key: SecretStr | None = None
    """Key for that server; provider keys have their usual variables (OPENAI_API_KEY, ...)."""

    database: Path | None = None
    """File with the threads of the command line; default: in the user's data folder."""

    prices: Path | None = None
    """File with prices of models, besides and instead of those that come with the package."""

    trace: Path | None = None
    """File to which agents append what their runs do, a line per step (see `telemetry.trace`)."""

    tracing: bool = False
    """Whether LangSmith tracing, which sends content out, may be on. Off whatever LangSmith's own
    variables say, unless this is true."""

    def database_path(self) -> Path:
        """The database of the command line; its folder is made when it is opened."""
        return self.database or platformdirs.user_data_path("loopwright") / "threads.db"
