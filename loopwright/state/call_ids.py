"""The ids of tool calls: fresh ones where a model sent blank or used ones, wherever they stand.

Which calls need one is decided by `repair`, and by the `model` node for a new answer.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage

from loopwright.state.messages import calls, new_id

CALL_BLOCKS = {
    "tool_use": "id",
    "tool_call": "id",
    "invalid_tool_call": "id",
    "function_call": "call_id",
}
"""The content blocks that repeat a call, and which of their fields holds the call's id."""


M = TypeVar("M", bound=BaseMessage)
A = TypeVar("A", bound=AIMessage)


def with_own_call_ids(message: M, used: set[str], reserved: Collection[str] = frozenset()) -> M:
    """The message with call ids that are neither blank nor in `used`, which grows by them.

    A fresh id is not in `reserved` either. It depends on the message's own id, so that a ledger
    with shared ids is sent with the same ones every time (S1-09). A message whose ids are fine is
    returned as it is. A server that numbers its calls per round, or sends one constant id, must
    not make two calls share a result.
    """
    old = [call.id for call in calls(message)]
    new = [_own(id, f"{message.id}:{at}", used, reserved) for at, id in enumerate(old)]
    return with_call_ids(message, new) if isinstance(message, AIMessage) and new != old else message


def _own(id: str, place: str, used: set[str], reserved: Collection[str]) -> str:
    if not id.strip() or id in used:
        digest = sha256(place.encode(errors="replace")).hexdigest()
        id = f"call_{digest[:24]}"
        if id in used or id in reserved:
            id = f"call_{new_id()}"
    used.add(id)
    return id


def with_call_ids(message: A, ids: Sequence[str]) -> A:
    """A copy with these ids for its calls, also in the content blocks that repeat them."""
    renames: defaultdict[str, deque[str]] = defaultdict(deque)
    for call, id in zip(calls(message), ids, strict=True):
        renames[call.id].append(id)
    whole, broken = message.tool_calls, message.invalid_tool_calls
    update: dict[str, Any] = {
        "tool_calls": [{**c, "id": id} for c, id in zip(whole, ids, strict=False)],
        "invalid_tool_calls": [
            {**c, "id": id} for c, id in zip(broken, ids[len(whole) :], strict=True)
        ],
    }
    if isinstance(message.content, list):
        update["content"] = [_renamed(block, renames) for block in message.content]
    return message.model_copy(update=update)


def _renamed(block: Any, renames: Mapping[str, deque[str]]) -> Any:
    """A content block under the next new id of the call that it repeats; others as they are."""
    key = CALL_BLOCKS.get(str(block.get("type"))) if isinstance(block, dict) else None
    if key is None:
        return block
    waiting = renames.get(block.get(key) or "")
    return {**block, key: waiting.popleft()} if waiting else block
