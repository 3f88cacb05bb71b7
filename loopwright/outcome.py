"""What a run came to: the result that a caller gets, and its form in the state.

Who decides status and reason: the nodes `finish` and `fail`, and the entrance for interruptions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Generic, Literal, cast

from langchain_core.messages import AIMessage, AnyMessage
from typing_extensions import TypeVar

from loopwright.errors import OutputError
from loopwright.events import AgentEnd, RunStatus
from loopwright.providers.finish import is_filtered
from loopwright.spending import Usage, nothing
from loopwright.state.messages import LENGTH, calls, stop_reason
from loopwright.state.notes import rule_of

T = TypeVar("T", default=Any)
ResultStatus = RunStatus | Literal["queued"]


@dataclass(frozen=True, kw_only=True)
class RunResult(Generic[T]):
    """The outcome of one run.

    `status` is completed, stopped, limit, cancelled, failed or interrupted; `reason` names the rule
    that ended the run. `messages` are the ones this run produced, `final_text` is the text of its
    last answer (empty if there is none). `usage` has the tokens and the cost of this run (see
    `Usage`), `error` is `{"kind", "message"}` of a failed run, `interrupts` what an interrupted
    run waits for. `output` is the valid answer of a run that had to give one in a form
    (`Agent(output=...)`), else None.

    With status `queued` there was no run: the prompt is stored in the queue that `reason` names,
    for the run `run_id` that goes on.
    """

    status: ResultStatus
    reason: str
    messages: list[AnyMessage]
    final_text: str
    usage: Usage
    turns: int
    thread: str
    run_id: str
    interrupts: list[Any] = field(default_factory=list)
    error: dict[str, str] | None = None
    truncated: bool = False
    """Whether the last answer stopped at the model's output limit."""

    filtered: bool = False
    """Whether the provider withheld the last answer or a part of it, or the model refused."""

    output: T | None = None

    def required_output(self) -> T:
        """The valid answer. Raises OutputError, which says why there is none."""
        if self.output is None:
            text = (self.error or {}).get("message", "")
            raise OutputError(self.thread, self.status, self.reason, text)
        return self.output

    def _repr_html_(self) -> str:
        """A notebook shows the answer and how the run ended; all text is escaped."""
        ended = f"{self.status} ({self.reason}), {self.turns} turns, thread {self.thread}"
        return f"<p>{escape(self.final_text)}</p><p><small>{escape(ended)}</small></p>"


def result_of(end: AgentEnd, output: Any = None) -> RunResult:
    """The result that an `agent_end` tells, with the typed form of its output."""
    return RunResult(
        status=end.status,
        reason=end.reason,
        messages=list(end.messages),
        final_text=final_text(end.messages),
        usage=cast(Usage, dict(end.usage)),
        turns=end.turns,
        thread=end.thread,
        run_id=end.run_id,
        interrupts=list(end.interrupts),
        error=end.error,
        **marks(end.messages),
        output=output,
    )


def queued_result(thread: str, run_id: str) -> RunResult:
    """The result of a prompt that was queued as a follow-up of a run."""
    return RunResult(
        status="queued",
        reason="follow_up",
        messages=[],
        final_text="",
        usage=nothing(),
        turns=0,
        thread=thread,
        run_id=run_id,
    )


def outcome_of(end: AgentEnd, run_id: str) -> dict[str, Any]:
    """The outcome as it is stored: JSON values, without the messages, which are in the ledger."""
    return {
        "status": end.status,
        "reason": end.reason,
        "final_text": final_text(end.messages),
        "usage": dict(end.usage),
        "turns": end.turns,
        "thread": end.thread,
        "run_id": run_id,
        "error": end.error,
        **marks(end.messages),
        "output": end.output,
    }


def final_text(messages: Sequence[AnyMessage]) -> str:
    """The text of the last assistant message with the parts that it continues; empty if there is
    none. A part is a text that was cut off, with nothing but the loop's note behind it.
    """
    parts: list[str] = []
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            is_part = stop_reason(message) == LENGTH and not calls(message)
            if parts and not is_part:
                break
            parts.append(str(message.text))
        elif parts and rule_of(message) is None:
            break
    return "".join(reversed(parts))


def marks(messages: Sequence[AnyMessage]) -> dict[str, bool]:
    """What the last answer's end says about it, by the fields of a result."""
    last = next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)
    reason = "" if last is None else stop_reason(last)
    return {"truncated": reason == LENGTH, "filtered": is_filtered(reason)}
