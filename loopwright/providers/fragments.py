"""Which call a fragment of a stream belongs to, on servers that number and name as they like.

What the joined text of a call means is decided in `arguments`; the message is built in `assembly`.
"""

from dataclasses import dataclass, field

from loopwright.providers.arguments import is_whole


@dataclass(frozen=True)
class Fragment:
    """A piece of a tool call as a chunk carries it; blank ids and names are None."""

    index: int | str | None = None
    id: str | None = None
    name: str | None = None
    text: str = ""

    @property
    def is_head(self) -> bool:
        """Whether it says which call it is of, other than by index."""
        return self.id is not None or self.name is not None


@dataclass(eq=False)
class PartialCall:
    """A call while it streams. `chunk` is the number of the last chunk that added to it."""

    index: int | str | None
    id: str | None = None
    name: str = ""
    parts: list[str] = field(default_factory=list)
    chunk: int = -1

    @property
    def text(self) -> str:
        """The argument text so far."""
        return "".join(self.parts)

    def add(self, fragment: Fragment, chunk: int) -> None:
        """The first id stays; a name may come in pieces, and one that is repeated counts once."""
        self.id = self.id or fragment.id
        if fragment.name and fragment.name != self.name:
            self.name += fragment.name
        if fragment.text:
            self.parts.append(fragment.text)
        self.chunk = chunk


class CallRouter:
    """Sorts fragments into calls, in the order in which the calls began."""

    def __init__(self) -> None:
        self.calls: list[PartialCall] = []
        self._by_index: dict[int | str, PartialCall] = {}
        self._by_id: dict[str, PartialCall] = {}

    def add(self, fragment: Fragment, chunk: int) -> PartialCall | None:
        """The call that the fragment was added to; None for an empty one that belongs to none.

        `chunk` is the number of the chunk: heads that come in one chunk are different calls.
        """
        call = self._known(fragment, chunk)
        if call is None:
            if not fragment.is_head and not fragment.text:
                return None
            call = PartialCall(fragment.index)
            self.calls.append(call)
            if fragment.index is not None:
                self._by_index[fragment.index] = call
        elif fragment.index is not None:
            self._by_index.setdefault(fragment.index, call)
        call.add(fragment, chunk)
        if fragment.id is not None:
            self._by_id[fragment.id] = call
        return call

    def _known(self, fragment: Fragment, chunk: int) -> PartialCall | None:
        """The call that goes on with this fragment; None if a new one begins."""
        named = self._by_id.get(fragment.id) if fragment.id is not None else None
        if named is not None:
            return None if _is_used_again(named, fragment) else named
        at_index = self._by_index.get(fragment.index) if fragment.index is not None else None
        if at_index is None and fragment.index is not None and fragment.is_head:
            return None
        # The tail of a call may carry an index that no head had; a tail without one is the last's.
        current = at_index or (self.calls[-1] if self.calls else None)
        if current is None or not fragment.is_head:
            return current
        return current if _goes_on(current, fragment, chunk) else None


def _is_used_again(call: PartialCall, fragment: Fragment) -> bool:
    """Whether a second call came under an id that one already has."""
    if fragment.name is None:
        return False
    moved = fragment.index is not None and fragment.index != call.index
    return moved or (bool(fragment.text.strip()) and is_whole(call.text))


def _goes_on(call: PartialCall, fragment: Fragment, chunk: int) -> bool:
    """Whether a fragment with a new id or with a name repeats the head of the current call."""
    if call.chunk == chunk:
        return False
    fresh_id = fragment.id is not None and call.id is not None
    if is_whole(call.text):
        # Only an empty piece can follow; one with a new id and a name is the next call's head.
        return not fragment.text.strip() and not (fresh_id and fragment.name)
    if fragment.name and call.name and fragment.name != call.name:
        return fragment.index is not None and not fresh_id and not call.parts
    # Servers that make a fresh id for every fragment number them; without a number and without
    # arguments so far, two heads are two calls.
    return fragment.index is not None or bool(call.parts) or not (fresh_id and fragment.name)
