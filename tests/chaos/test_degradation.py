"""Tools that hang, raise and time out at random: every run ends with a status and a reason."""

from tests.chaos.degradation import play


def test_every_run_ends_with_a_status_and_a_reason_whatever_its_tools_do() -> None:
    told: list[str] = []
    counts = play(range(40), told.append)
    assert counts.total() == 40 and len(told) == len(counts) > 2
