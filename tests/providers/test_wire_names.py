"""Tools of any name: what servers are sent, and who is meant by what comes back."""

import re
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from loopwright.providers.contract import StreamPiece
from loopwright.providers.wire import ToolNames, wire_name

TAKEN = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NAMES = st.text(st.characters(), max_size=80) | st.sampled_from(["a.b", "a/b", "a b", "\ud83d"])


@given(st.sets(NAMES, max_size=6))
def test_any_names_become_names_that_servers_take_and_come_back(names: set[str]) -> None:
    made = ToolNames.of(names)
    sent = {name: made.sent(name) for name in names}
    assert all(TAKEN.fullmatch(name) for name in sent.values())
    assert len(set(sent.values())) == len(names)
    assert all(made.own(name) == own for own, name in sent.items())


def test_a_name_that_is_taken_already_is_kept_and_the_other_one_gives_way() -> None:
    taken = wire_name("a.b")
    for order in permutations(["a.b", taken, "c"]):
        names = ToolNames.of(order)
        assert names.sent(taken) == taken != names.sent("a.b")
        assert names.own(names.sent("a.b")) == "a.b"


def test_a_name_does_not_depend_on_the_other_tools() -> None:
    assert ToolNames.of(["a.b", "x"]).sent("a.b") == ToolNames.of(["a.b"]).sent("a.b")


def test_a_piece_says_the_tools_own_name_and_leaves_unknown_ones_alone() -> None:
    names = ToolNames.of(["a.b"])
    for sent, own in ((wire_name("a.b"), "a.b"), ("other", "other"), (None, None)):
        piece = names.read(StreamPiece(kind="tool_call_start", index=0, tool_name=sent))
        assert isinstance(piece, StreamPiece) and piece.tool_name == own
