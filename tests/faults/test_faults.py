"""A few hundred requests with faults go right; a run that breaks a rule is noticed."""

import pytest

from loopwright import attempts
from loopwright.providers import waits
from tests.faults.__main__ import campaign


@pytest.mark.anyio
async def test_every_run_ends_right_whatever_a_server_does() -> None:
    runs, sent, counts, wrong = await campaign(300, seed=1_000_000)
    assert (wrong, sent >= 300, runs > 50) == ([], True, True)
    assert counts["ended completed"] + counts["ended failed"] == runs


@pytest.mark.anyio
async def test_waits_that_no_server_asked_for_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "_wait", lambda failure, retried: waits.LONGEST_ASKED + 1)
    _, _, _, wrong = await campaign(60, seed=1)
    assert any("waited 601" in reason for reason in wrong)
