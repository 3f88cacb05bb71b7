"""A place in the loop does nothing until a test arms it."""

from pathlib import Path
from typing import get_args

import pytest

from loopwright import failpoints


def test_an_armed_place_runs_its_action_until_it_is_disarmed() -> None:
    reached: list[str] = []
    failpoints.reach("model")
    failpoints.arm("model", lambda: reached.append("model"))
    failpoints.reach("model")
    failpoints.reach("put")
    failpoints.arm("model", None)
    failpoints.reach("model")
    assert reached == ["model"]


@pytest.mark.parametrize("place", get_args(failpoints.Place))
def test_every_place_is_explained_in_the_documentation(place: str) -> None:
    page = Path(__file__).parent.parent / "docs" / "durability.md"
    assert f"\n| `{place}` | " in page.read_text(encoding="utf-8")
