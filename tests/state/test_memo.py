"""What a process remembers: the last checkpoints of a place, within bounds, until rows go."""

from loopwright.state.branches import Place
from loopwright.state.lists import HeldList
from loopwright.state.memo import Memo
from loopwright.state.slots import Held

A, B, C = Place("a", ""), Place("b", ""), Place("b", "inner")


def held(id: str, elements: int = 0) -> Held:
    return Held(id, lists={"m": HeldList(1, (None,) * elements, ())})


def ids(memo: Memo, place: Place) -> list[str | None]:
    return [known.checkpoint for known in memo.held(place)]


def test_the_last_written_and_the_last_read_are_remembered() -> None:
    memo = Memo()
    assert ids(memo, A) == []
    for id in "12":
        memo.read(A, held(f"r{id}"))
        memo.wrote(A, held(f"w{id}"))
    assert ids(memo, A) == ["w2", "r2"]


def test_the_place_used_longest_ago_is_forgotten_first() -> None:
    memo = Memo(places=2)
    memo.wrote(A, held("1"))
    memo.wrote(B, held("2"))
    memo.wrote(A, held("3"))
    memo.wrote(C, held("4"))
    assert [ids(memo, place) for place in (A, B, C)] == [["3"], [], ["4"]]


def test_long_lists_push_others_out_but_not_themselves() -> None:
    memo = Memo(elements=10)
    memo.wrote(A, held("1", 6))
    memo.read(A, held("2", 4))
    memo.wrote(B, held("3", 1))
    assert ids(memo, A) == []
    memo.wrote(C, held("4", 99))
    assert [ids(memo, place) for place in (B, C)] == [[], ["4"]]
    memo.forget()
    memo.wrote(A, held("5", 9))
    memo.wrote(B, held("6", 1))
    assert [ids(memo, place) for place in (A, B)] == [["5"], ["6"]]


def test_a_deletion_elsewhere_voids_everything_an_own_one_only_its_threads() -> None:
    memo = Memo()
    memo.check(0)
    for place in (A, B, C):
        memo.wrote(place, held("1"))
    memo.removed(1, ["b"])
    memo.check(1)
    assert [ids(memo, place) for place in (A, B, C)] == [["1"], [], []]
    memo.check(2)
    assert ids(memo, A) == []
