"""How an event that the entrance itself tells is put on the stream that the caller asked for.

Inside a run LangGraph does this; these are the events before its first and behind its last step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopwright.events import AnyEvent
from loopwright.runs import Run


@dataclass(frozen=True)
class Framing:
    """The shape of a stream: one mode or several, with namespaces or without, version v1 or v2."""

    modes: tuple[str, ...]
    tagged: bool
    subgraphs: bool
    version: str

    @classmethod
    def of(cls, stream_mode: str | Sequence[str], options: Mapping[str, Any]) -> "Framing":
        """The framing of a call of `astream`."""
        several = not isinstance(stream_mode, str)
        modes = tuple(stream_mode) if several else (stream_mode,)
        return cls(
            tuple(str(mode) for mode in modes),
            several,
            bool(options.get("subgraphs", False)),
            str(options.get("version", "v1")),
        )

    def collect(self, run: Run) -> list[AnyEvent]:
        """A list of what the stream still owes, that gets what the run emits from now on, until a
        node takes the stream over. Everything told so far is committed."""
        told: list[AnyEvent] = []
        run.emitter.write = run.sink or told.append
        run.emitter.dispatch = None
        run.emitter.release()
        return told

    def frames(self, told: Sequence[AnyEvent]) -> Iterator[Any]:
        """The events as chunks of the `custom` mode; nothing if the caller did not ask for it."""
        if "custom" not in self.modes:
            return
        for event in told:
            if self.version == "v2":
                yield {"type": "custom", "ns": (), "data": event}
                continue
            parts = ((), "custom", event) if self.subgraphs else ("custom", event)
            wanted = parts if self.tagged else tuple(p for p in parts if p != "custom")
            yield wanted if len(wanted) > 1 else event
