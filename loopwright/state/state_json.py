"""A thread's state at one moment as a JSON value, and back: to go on from it elsewhere (S4-01).

Where it is stored again is said in `stored`; a whole thread as a file is `thread_file`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from langchain_core.messages import message_to_dict
from pydantic import TypeAdapter, ValidationError
from typing_extensions import get_type_hints

from loopwright.errors import ConfigurationError, InputError
from loopwright.settings import Settings
from loopwright.state.schema import AgentState
from loopwright.state.thread_file import message_of, plain

FORMAT, VERSION = "loopwright.state", 1

NODES = ("load", "queue_drain", "model", "tool_batch", "stop_hook", "compact", "finish", "fail")
"""What may come next in a run that goes on; their names are a stored format."""

CHANNELS = frozenset(AgentState.__annotations__)
"""What of a state is in a snapshot."""

_WITH_MESSAGES: dict[str, tuple[str, ...]] = {
    "input": ("messages",),
    "view": ("head",),
    "compaction": ("head",),
    "held": ("results", "extra"),
}
"""The fields of channels that hold messages."""

_FIELDS = {"format", "version", "thread", "next", "state", "journal"}


@dataclass(frozen=True)
class ThreadState:
    """A thread at one moment: its channels, the node that comes next (None: no run goes on), and
    what the journal notes of the calls of its last answer.
    """

    thread: str
    values: dict[str, Any]
    next: str | None = None
    journal: tuple[dict[str, Any], ...] = ()


def to_json(state: ThreadState) -> dict[str, Any]:
    """Plain JSON; `from_json` gives an equal state back."""
    made: dict[str, Any] = plain(
        {
            "format": FORMAT,
            "version": VERSION,
            "thread": state.thread,
            "next": state.next,
            "state": {name: _dumped(name, value) for name, value in state.values.items()},
            "journal": list(state.journal),
        }
    )
    return made


def from_json(data: Any) -> ThreadState:
    """Raises InputError for what `to_json` has not made, naming what is wrong."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT or set(data) != _FIELDS:
        raise InputError("this is no snapshot of a thread")
    if data["version"] != VERSION:
        raise InputError(f"the snapshot's version {str(data['version'])[:20]!r} is not {VERSION}")
    values, following, notes = data["state"], data["next"], data["journal"]
    if not isinstance(data["thread"], str) or following not in (None, *NODES):
        raise InputError("the snapshot names no thread, or a step that no run has")
    if not isinstance(values, Mapping) or not CHANNELS >= set(values) >= {"messages"}:
        raise InputError("the snapshot's state is not that of a thread")
    if not isinstance(notes, list) or not all(isinstance(note, dict) for note in notes):
        raise InputError("the snapshot's journal is none")
    loaded = {name: _loaded(name, value) for name, value in values.items()}
    for name, value in loaded.items():
        _require_shape(name, value)
    return ThreadState(data["thread"], loaded, following, tuple(notes))


def _dumped(channel: str, value: Any) -> Any:
    if channel == "messages":
        return [message_to_dict(message) for message in value]
    if value is None or channel not in _WITH_MESSAGES:
        return value
    lists = {name: [message_to_dict(m) for m in value[name]] for name in _WITH_MESSAGES[channel]}
    return {**value, **lists}


def _loaded(channel: str, value: Any) -> Any:
    try:
        if channel == "messages":
            return [message_of(item) for item in value]
        if value is None or channel not in _WITH_MESSAGES:
            return value
        lists = {
            name: [message_of(item) for item in value[name]] for name in _WITH_MESSAGES[channel]
        }
        return {**value, **lists}
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"the snapshot's {channel!r} cannot be taken: {error}") from error


def _require_shape(channel: str, value: Any) -> None:
    """Raise InputError for what no node would have written: it would break the thread."""
    if channel == "messages":
        return
    if value is not None and channel in _WITH_MESSAGES:  # those in it are messages already
        value = {**value, **{name: [] for name in _WITH_MESSAGES[channel]}}
    try:
        _shapes()[channel].validate_python(value, strict=True)
        if channel == "settings":
            Settings.from_json(value)
    except (ValidationError, ConfigurationError, TypeError, AttributeError) as error:
        text = " ".join(str(error).split())[:300]
        raise InputError(f"the snapshot's {channel!r} is not what a run stores: {text}") from error


@cache
def _shapes() -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(AgentState)
    return {name: TypeAdapter(hint) for name, hint in hints.items()}
