"""The wallet of a tree: its rules, and that no order of draws gives away more than there is."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from loopwright.wallet import Wallet, wallet_of

OPS = st.lists(
    st.tuples(st.sampled_from(["spend", "spend", "refund"]), st.sampled_from(["root", "a", "b"])),
    max_size=60,
)


@given(
    total=st.integers(1, 20),
    reserve=st.integers(0, 25),
    caps=st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 20)),
    ops=OPS,
)
def test_a_wallet_is_never_overdrawn_and_keeps_its_reserve(
    total: int, reserve: int, caps: dict[str, int], ops: list[tuple[str, str]]
) -> None:
    wallet = Wallet("root", total, reserve, dict(caps))
    for op, who in ops:
        left, remaining = wallet.left(who), wallet.remaining
        granted = wallet.spend(who) if op == "spend" else wallet.refund(who)
        if op == "spend":
            assert granted == (left > 0)
            assert wallet.remaining == remaining - granted
            if granted and who != "root":
                assert wallet.remaining >= reserve
        assert 0 <= wallet.remaining <= total
        assert all(count >= 0 for count in wallet.used.values())
        assert all(wallet.used[who] <= cap for who, cap in caps.items())
        assert wallet.remaining + wallet.used.total() == total


@given(ops=OPS, cut=st.integers(0, 60))
def test_whoever_reads_the_entries_agrees_on_who_got_what(
    ops: list[tuple[str, str]], cut: int
) -> None:
    opened: dict[str, Any] = {"op": "open", "who": "root", "total": 9, "reserve": 2}
    entries = list(enumerate([opened, *({"op": op, "who": who} for op, who in ops)]))
    early, late = wallet_of(entries[: cut + 1]), wallet_of(entries)
    assert early.granted.items() <= late.granted.items()


def test_a_refund_is_no_more_than_what_was_taken() -> None:
    wallet = Wallet("root", 3)
    assert not wallet.refund("root")
    assert [wallet.spend("root") for _ in range(4)] == [True] * 3 + [False]
    assert wallet.refund("root")
    assert (wallet.remaining, wallet.used["root"]) == (1, 2)


def test_a_fair_share_leaves_the_reserve_alone() -> None:
    assert Wallet("root", 20, 2).share(3) == 6
    assert Wallet("root", 3, 2).share(3) == 0
    assert Wallet("root", 1, 2).share(1) == 0


def test_entries_without_a_beginning_make_no_wallet() -> None:
    assert wallet_of([(1, {"op": "spend", "who": "root"})]).wallet is None


def test_a_wallet_is_begun_once() -> None:
    entries = [{"op": "open", "who": "root", "total": n, "reserve": 0} for n in (5, 9)]
    wallet = wallet_of(enumerate(entries)).wallet
    assert wallet is not None and wallet.total == 5
