"""Workers killed at every place and at any instant lose nothing, double nothing and block nobody.

`make chaos` does the same on a larger scale.
"""

from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.duel import Duel
from tests.chaos.plan import PLACES, kills
from tests.chaos.round import Round
from tests.chaos.world import World

INSTANTS = 2


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_thread_survives_a_kill_at_every_place(seed: int, tmp_path: Path) -> None:
    tally = Round(World(tmp_path, seed)).play(kills(seed, INSTANTS))
    assert tally.kills == Counter([*PLACES, "after_effect", *["any instant"] * INSTANTS])
    assert tally.facts["queued"] and tally.facts["effects of pay"]


def test_a_thread_survives_kills_while_two_workers_want_it(tmp_path: Path) -> None:
    planned = Duel.suited(kills(4, INSTANTS))
    tally = Duel(World(tmp_path, 4)).play(planned)
    assert tally.kills.total() == len(planned)
    assert tally.facts["refused"]
