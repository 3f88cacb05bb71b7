"""What a recorded run was given, ready to be given again: prompts, answers, results, queues.

When each is asked for is the graph's; what is played over it is in `playing`.
"""

from collections.abc import Iterable
from typing import Any

from langchain_core.messages import AnyMessage, messages_from_dict

from loopwright.errors import TraceFileError
from loopwright.state.notes import rule_of
from loopwright.telemetry.lines import Line
from loopwright.telemetry.reading import RecordedRun
from loopwright.telemetry.recording import CUT_OFF

Place = tuple[int, int]
"""A call: behind which request of the run, and the how manieth of its answer."""


def is_replayed(line: Line) -> bool:
    """Whether a step is made again: a repair is not, for the history is the mended one."""
    return bool(line["type"] != "repair")


class Feed:
    """The inputs of one recorded run. Raises TraceFileError for lines that do not hold them."""

    def __init__(self, recorded: RecordedRun) -> None:
        self.recorded = recorded
        beginning = recorded.beginning
        if beginning is None:
            raise self.unusable("its first line is missing")
        self.beginning: Line = beginning
        self.requests = recorded.of("model")
        self.steps = [line for line in recorded.lines if is_replayed(line)]
        self.answers = {line["step"]: self._answer(line) for line in self.requests}
        self.prompts: list[AnyMessage] = []
        self.results: dict[Place, Line] = {}
        self.sent_along: dict[Place, list[AnyMessage]] = {}
        self.queued: dict[tuple[str, int], list[AnyMessage]] = {}
        """By queue and turn: what was delivered then."""

        self._sort()

    @property
    def ended_early(self) -> bool:
        """Whether the run has no end of its own: it was killed, or cancelled from outside."""
        end = self.recorded.end
        return end is None or end.get("status") == CUT_OFF

    def unusable(self, reason: str) -> TraceFileError:
        """The error of a run that cannot be replayed."""
        text = f"run {self.recorded.run} cannot be replayed: {reason}"
        return TraceFileError(self.recorded.path, text, line=self.recorded.places[0])

    def given(self, line: Line, name: str, *kinds: type) -> Any:
        """A field of a line. Raises TraceFileError unless it is there and of such a kind."""
        value = line.get(name)
        if not isinstance(value, kinds):
            raise self.unusable(f"its step {line['step']} has no {name!r} that could be used")
        return value

    def messages(self, line: Line, rows: Iterable[Any]) -> list[AnyMessage]:
        """The messages of their rows."""
        try:
            whole = [{**r, "data": {"content": "", **r["data"]}} for r in rows]
            return list(messages_from_dict(whole))  # type: ignore[arg-type]
        except (KeyError, TypeError, ValueError) as error:
            reason = f"its step {line['step']} holds no message ({type(error).__name__})"
            raise self.unusable(reason) from error

    def _answer(self, line: Line) -> AnyMessage | None:
        """The answer to a request, None if it had none."""
        return self.messages(line, [line["answer"]])[0] if "answer" in line else None

    def _sort(self) -> None:
        """Each input to where it belongs: the order of the lines tells.

        What tools have sent along stands behind their batch. It is given to the last call that was
        not refused: a refused one has no body that could send it again.
        """
        place, turn, due = (0, 0), 0, ["", 0]
        sender = place
        for line in self.recorded.lines:
            match line["type"]:
                case "turn":
                    turn = self.given(line, "turn", int)
                case "model":
                    sender = place = (place[0] + 1, 0)
                case "tool" if "content" in line:
                    place = (place[0], self.given(line, "position", int))
                    self.results[place] = line
                    sender = self._sender(sender, place)
                case "queue_update":
                    due = [str(line.get("queue")), self.given(line, "delivered", int)]
                case "message":
                    (message,) = self.messages(line, [self.given(line, "message", dict)])
                    if rule_of(message) is None:  # the loop makes its own notes again
                        self._owner(sender, turn, due).append(message)

    def _sender(self, last: Place, place: Place) -> Place:
        """Which call of a batch has sent along what comes next."""
        refused = self.results[place].get("is_error") and last in self.results
        return last if refused else place

    def _owner(self, place: Place, turn: int, due: list[Any]) -> list[AnyMessage]:
        """Where a message belongs: to what a queue has announced, a tool, or the caller."""
        if due[1]:
            due[1] -= 1
            return self.queued.setdefault((due[0], turn), [])
        return self.sent_along.setdefault(place, []) if place[0] else self.prompts
