"""How a list is recognised as one that was stored before: by identity, then by content."""

from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from loopwright.state.lists import HeldList, common, unedited

SERDE = JsonPlusSerializer()


def held(*elements: Any) -> HeldList:
    return HeldList(1, elements, ())


@pytest.mark.parametrize(
    ("kept", "new", "shared"),
    [(3, 0, 3), (3, 2, 3), (2, 0, 2), (1, 4, 1), (0, 3, 0)],
)
def test_the_very_same_objects_are_shared(kept: int, new: int, shared: int) -> None:
    elements = [{"n": number} for number in range(3)]
    items = [*elements[:kept], *({"n": number} for number in range(kept, kept + new))]
    assert held(*elements).shared(items) == shared


def test_nothing_is_shared_with_equal_or_shifted_objects() -> None:
    elements = [{"n": number} for number in range(3)]
    assert held(*elements).shared([dict(element) for element in elements]) == 0
    assert held(*elements).shared(elements[1:]) == 0
    assert held().shared(elements) == 0


def test_an_edit_is_noticed_among_the_elements_whose_content_is_known() -> None:
    items = [{"n": number} for number in range(4)]
    stored = [SERDE.dumps_typed(item) for item in items[1:3]]
    assert unedited(stored, items, 3, SERDE) == 3
    items[2]["n"] = 9
    assert unedited(stored, items, 3, SERDE) == 2
    items[1]["n"] = 9
    assert unedited(stored, items, 3, SERDE) == 1
    assert unedited([], items, 3, SERDE) == 3


def test_what_is_common_is_found_by_content() -> None:
    stored = [SERDE.dumps_typed(item) for item in (1, "a", None)]
    assert common(stored, [1, "a", None, 2], SERDE) == 3
    assert common(stored, [1, "a"], SERDE) == 2
    assert common(stored, [True, "a"], SERDE) == 0  # equal to 1, and yet another content
    assert common([], [1], SERDE) == 0
