"""What a script did to a runtime, as far as the runtime's own storage does not tell it.

Plain JSON values only: a process that is about to be killed hands its record over.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from langchain_core.messages import BaseMessage, HumanMessage

from loopwright.state.transcript import faults


@dataclass
class Record:
    """What went in and what happened, over all processes of a script."""

    given: list[str] = field(default_factory=list)
    """The texts that were put in, in order, whatever queue they went to."""

    late: list[str] = field(default_factory=list)
    """Those of them that came when no run would look for them any more."""

    executed: list[str] = field(default_factory=list)
    """The call of each tool body that was entered."""

    finished: list[str] = field(default_factory=list)
    """The call of each tool body that came to its end."""

    asked: list[list[str]] = field(default_factory=list)
    """The user texts in each request to the model."""

    faulty: list[str] = field(default_factory=list)
    """What was wrong with a request: calls without a result, results without a call."""

    ended: list[dict[str, str]] = field(default_factory=list)
    """Each `agent_end` that was told: `run_id`, `status`, `reason`, and the text of an error."""

    refusals: list[str] = field(default_factory=list)
    """What callers were told instead of getting a run."""

    def ask(self, messages: Sequence[BaseMessage]) -> None:
        """Take down a request."""
        self.asked.append([str(m.text) for m in messages if isinstance(m, HumanMessage)])
        wrong = [fault for fault in faults(messages) if not fault.kind.endswith("message_id")]
        self.faulty += [f"{fault.kind} {fault.id}" for fault in wrong]

    def add(self, other: Self) -> None:
        """Let what happened in another process stand before what happened in this one."""
        for name, before in asdict(other).items():
            setattr(self, name, [*before, *getattr(self, name)])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `Record(**...)` gives the record back."""
        return asdict(self)
