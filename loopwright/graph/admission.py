"""What may come in: a caller's input, resume command or state update is checked before LangGraph
sees it. Nothing here reads or writes a thread; a refusal leaves it as it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.constants import START
from langgraph.types import Command, Interrupt, Overwrite, StateUpdate
from pydantic import BaseModel, create_model
from typing_extensions import get_type_hints

from loopwright.errors import InputError
from loopwright.state.messages import as_messages
from loopwright.state.schema import Admission, EntranceInput

INPUT, COPY = "__input__", "__copy__"
"""Names under which LangGraph's updates stand for an input, and for a fork with changes."""

CONTINUE = "continue"
"""Input `{"continue": true}` continues a thread without new messages."""


@dataclass(frozen=True)
class Admitted:
    """An input as the graph takes it; `resumes` means that the run re-enters where one stopped."""

    graph_input: EntranceInput | Command[Any] | None
    resumes: bool


def admit(given: Any, *, nested: bool = False) -> Admitted:
    """Check and coerce the input of a run. Raises InputError.

    Taken are `{"messages": [...]}` (also one message, or text), a message, text or list by itself
    (what `prompt | graph` passes), `{"continue": True}`, None and `Command(resume=...)`. Refused is
    whatever would write a channel or change stored messages. `nested` says that the graph is a node
    of another one: what else is in that graph's state is none of ours.
    """
    if nested and isinstance(given, Mapping) and "messages" in given:
        given = {"messages": given["messages"]}
    if given is None:
        return Admitted(None, resumes=True)
    if isinstance(given, Command):
        if given.update is not None or given.goto or given.graph is not None:
            raise InputError(
                "a command may only resume a run here: send messages as input, "
                "or fork the thread to change its past"
            )
        return Admitted(given, resumes=True)
    if hasattr(given, "to_messages"):  # a prompt template's value
        given = given.to_messages()
    if isinstance(given, Mapping) and "type" not in given and "role" not in given:
        return Admitted(EntranceInput(input=_admission(given)), resumes=False)
    return Admitted(_prompt(given), resumes=False)


def addressed(given: Any, interrupts: Sequence[Interrupt]) -> Any:
    """A resume command whose answers go to the one interrupt that waits for them.

    LangGraph takes a mapping for one from interrupts to answers if all its keys look like the ids
    of interrupts. Ids of calls may look so too, and so do the keys of an empty mapping.
    """
    if not isinstance(given, Command) or given.resume is None or len(interrupts) != 1:
        return given
    (waiting,) = interrupts
    if isinstance(given.resume, Mapping) and set(given.resume) == {waiting.id}:
        return given
    return Command(resume={waiting.id: given.resume})


def _admission(given: Mapping[str, Any]) -> Admission:
    unknown = set(given) - {"messages", CONTINUE}
    if unknown:
        raise InputError(f"unknown input key {min(unknown)!r}: an input has 'messages' only")
    if given.get(CONTINUE):
        if given.get("messages"):
            raise InputError("an input has either messages or 'continue', not both")
        return Admission(kind="continue", messages=[])
    if "messages" not in given:
        raise InputError("the input has no 'messages': give a list, which may be empty")
    return _prompt(given["messages"])["input"]


def _prompt(messages: Any) -> EntranceInput:
    if isinstance(messages, Overwrite):
        raise InputError("an input may not overwrite the transcript: fork the thread instead")
    if not isinstance(messages, str | BaseMessage | Mapping | Sequence):
        raise InputError(
            f"messages must be text, a message or a list, not {type(messages).__name__}"
        )
    return EntranceInput(input=Admission(kind="prompt", messages=as_messages(messages)))  # type: ignore[arg-type]


def admit_update(
    supersteps: Sequence[Sequence[StateUpdate]], ledger: Sequence[AnyMessage]
) -> list[list[StateUpdate]]:
    """The update with its messages coerced: it may add some, not remove or replace any.

    An update as the graph's start is admitted like an input. Raises InputError.
    """
    known = {str(message.id) for message in ledger}
    return [[_addition(update, known) for update in step] for step in supersteps]


def _addition(update: StateUpdate, known: set[str]) -> StateUpdate:
    """The update, checked; `known` grows by the messages that it adds."""
    values: Any = update.values
    if values is None:
        return update
    if update.as_node in (START, INPUT):
        return update._replace(values=_start(values))
    if update.as_node == COPY and isinstance(values, list):
        parts = [_addition(StateUpdate(*item[:2]), known) for item in values]
        return update._replace(values=[part[:2] for part in parts])  # type: ignore[arg-type]
    if not isinstance(values, Mapping):
        raise InputError("an update gives new values of channels by their names")
    if "messages" not in values:
        return update
    return update._replace(values={**values, "messages": _added(values["messages"], known)})


def _start(values: Any) -> Any:
    taken = admit(values)
    if taken.resumes:
        raise InputError("an update as the start of the graph gives an input: nothing is resumed")
    return taken.graph_input


def _added(messages: Any, known: set[str]) -> list[AnyMessage]:
    if isinstance(messages, Overwrite):
        raise InputError("an update may not overwrite the transcript: fork the thread instead")
    added = as_messages(messages)
    for message in added:
        if message.id in known:
            raise InputError(
                f"message {message.id!r} is already stored: fork the thread to change it"
            )
        known.add(str(message.id))
    return added


def schema_of(shape: Any, name: str) -> type[BaseModel]:
    """A pydantic model of a TypedDict, named for the server's documentation."""
    # With the extras a message is told by its type; without them every kind of message is tried.
    hints = get_type_hints(shape, include_extras=True)
    fields: Any = {field: (hint, ...) for field, hint in hints.items()}
    model: type[BaseModel] = create_model(name, **fields)
    return model
