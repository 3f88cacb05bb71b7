"""A step as a line of a trace: plain JSON of bounded size, without secrets, with what replay needs.

Which steps there are is `recording`'s, where lines go `trace`'s. docs/traces.md lists the fields.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import takewhile
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from loopwright.spending import cost_of
from loopwright.state.call_ids import CALL_BLOCKS
from loopwright.state.messages import calls, stop_reason
from loopwright.telemetry.fitting import Fitted
from loopwright.telemetry.redaction import Secrets
from loopwright.telemetry.steps import Step, StepListener

FORMAT = 1
"""Number of the form of these lines; a reader refuses a larger one."""

FIELD_CHARACTERS = 32_768
"""Characters of all texts in one field of a line together; each message of a list is a field."""

_BEFORE = {"run", "turn"}
"""Steps whose line is written when they begin."""

Line = dict[str, Any]


@dataclass
class Lines(StepListener):
    """Writes the lines of one run.

    `before` gives the run of the same trace that left the thread exactly as this one finds it:
    then the history is not written again.
    """

    write: Callable[[Line], None]
    secrets: Secrets = field(default_factory=Secrets)
    characters: int = FIELD_CHARACTERS
    before: Callable[[Sequence[BaseMessage]], str | None] = lambda history: None
    _number: int = 0
    _prompt: str | None = None
    _digests: dict[int, tuple[BaseMessage, str]] = field(default_factory=dict)
    _request: list[str] = field(default_factory=list)

    def keep_secret(self, values: Sequence[str]) -> None:
        self.secrets.add(values)

    def begun(self, step: Step) -> None:
        if step.type == "run":
            self._line(step, "run", step.began, self._beginning(step.data))
        elif step.type in _BEFORE:
            self._line(step, step.type, step.began, step.data)

    def ended(self, step: Step) -> None:
        if step.type == "run":
            produced = self._digests_of(step.data["produced"])
            ending = {n: v for n, v in step.data.items() if n in _ENDING}
            ending |= {"cost": step.data.get("usage", {}).get("cost"), "produced": produced}
            self._line(step, "end", step.over, ending, seconds=step.seconds)
        elif step.type == "model":
            self._line(step, "model", step.over, self._asked(step.data), seconds=step.seconds)
        elif step.type == "tool":
            self._line(step, "tool", step.over, step.data, seconds=step.seconds)
        elif step.type not in _BEFORE:
            self._line(step, step.type, step.over, step.data)

    def _line(
        self, step: Step, type: str, at: float, data: Mapping[str, Any], **more: float
    ) -> None:
        """Number it, fit each field, and hand it on. Fields that are None are left out."""
        line: Line = {"step": self._number, "type": type, "run": step.run, "thread": step.thread}
        self._number += 1
        line |= {"at": round(at, 6)} | {name: round(value, 6) for name, value in more.items()}
        cut: list[str] = []
        for name, value in data.items():
            if value is not None:
                line[name] = self._field(name, value, cut)
        self.write(self._redacted_names(line | ({"cut": cut} if cut else {})))

    def _field(self, name: str, value: Any, cut: list[str]) -> Any:
        if name in _LISTS:
            return [self._field(f"{name}[{at}]", item, cut) for at, item in enumerate(value)]
        fitted = Fitted(value, self.secrets.redacted, self.characters)
        if fitted.was_cut:
            cut.append(name)
        return fitted.value

    def _redacted_names(self, line: Line) -> Line:
        names = ("run", "thread")
        return line | {name: self.secrets.redacted(line[name]) for name in names}

    def _beginning(self, data: Mapping[str, Any]) -> dict[str, Any]:
        history = data["history"]
        after = None if history is None else self.before(history)
        kept = {} if after is None else {"after": after, "history": None}
        limits = {"field": self.characters}
        return {"format": FORMAT, "limits": limits, **data, **kept}

    def _asked(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """A request and its answer. Of its messages only digests are told, and only new ones."""
        told = {name: value for name, value in data.items() if name != "messages"}
        if told["system_prompt"] == self._prompt:
            told["system_prompt"] = None
        else:
            self._prompt = told["system_prompt"]
        digests = self._digests_of(data["messages"], keep=True)
        pairs = zip(self._request, digests, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        told["request"] = {"messages": len(digests), "same": same, "new": digests[same:]}
        self._request = digests
        answer = data.get("answer")
        if isinstance(answer, AIMessage):
            told |= {"stop": stop_reason(answer), "usage": answer.usage_metadata}
            told["cost"] = cost_of(answer)
        return told

    def _digests_of(self, messages: Iterable[BaseMessage], *, keep: bool = False) -> list[str]:
        """What tells each message from others, whatever its ids are; O(new) for a request."""
        found: dict[int, tuple[BaseMessage, str]] = {}
        for message in messages:
            known = self._digests.get(id(message))
            found[id(message)] = known or (message, self._digest(message))
        if keep:
            self._digests = found
        return [found[id(message)][1] for message in messages]

    def _digest(self, message: BaseMessage) -> str:
        told = {
            "type": message.type,
            "calls": [[call.name, call.arguments] for call in calls(message)],
            "content": _without_ids(message.content),
            "status": message.status if isinstance(message, ToolMessage) else None,
        }
        fitted = Fitted(told, self.secrets.redacted, self.characters).value
        text = json.dumps(fitted, sort_keys=True, ensure_ascii=False)
        return sha256(text.encode()).hexdigest()[:12]


_LISTS = ("history", "tools")
_ENDING = ("status", "reason", "turns", "usage", "error", "interrupts")


def _without_ids(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    return [
        {name: value for name, value in block.items() if name not in ("id", "call_id", "index")}
        if isinstance(block, dict) and block.get("type") in CALL_BLOCKS
        else block
        for block in content
    ]


def encoded(line: Line) -> bytes:
    """A line as it stands in a file."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
