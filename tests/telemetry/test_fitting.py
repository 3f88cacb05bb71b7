"""Any value becomes JSON of bounded size, and stays the same when it is fitted again."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, ToolMessage, messages_from_dict

from loopwright.telemetry.fitting import MOST_ITEMS, SHORT, Fitted, row

TEXTS = st.text() | st.builds(lambda text, times: text * times, st.text(), st.integers(0, 90))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
    max_leaves=20,
)


def fitted(value: Any, characters: int = 1000) -> Any:
    return Fitted(value, lambda text: text, characters).value


@given(value=VALUES, characters=st.integers(0, 200))
def test_any_value_fits_and_fits_again(value: Any, characters: int) -> None:
    once = fitted(value, characters)
    again = Fitted(once, lambda text: text, characters)
    assert again.value == once and not again.was_cut
    json.dumps(once, ensure_ascii=False, allow_nan=False).encode()


def test_what_is_cut_is_told_and_structure_stays() -> None:
    long, short = "x" * (SHORT + 9), "y" * SHORT
    found = Fitted(
        {"a": long, "b": [short, 8], "c": long, "d": long}, lambda text: text, SHORT + 12
    )
    left = "x" * SHORT
    assert found.value == {"a": long, "b": [short, 8], "c": left, "d": left}
    assert found.was_cut
    many = Fitted(list(range(MOST_ITEMS + 5)), lambda text: text, 6)
    assert many.was_cut and len(many.value) < MOST_ITEMS


def test_a_secret_is_taken_out_before_the_cut() -> None:
    text = "1" * SHORT + "secret" + "2" * SHORT
    found = Fitted(text, lambda text: text.replace("secret", "*"), SHORT + 3)
    assert (found.value, found.was_cut) == ("1" * SHORT + "*22", True)


def test_what_is_no_json_is_named_and_what_is_deep_ends() -> None:
    class Odd:
        def __str__(self) -> str:
            raise ValueError

    deep: list[Any] = []
    deep.append(deep)
    assert fitted({"odd": Odd(), "raw": b"x"}) == {"odd": "<Odd>", "raw": "<bytes>"}
    assert json.dumps(fitted(deep)).count("[") == 60


def test_a_message_becomes_a_row_and_a_message_again() -> None:
    call = {"name": "look", "args": {"a": 1}, "id": "c1", "type": "tool_call"}
    answer = AIMessage("text", id="m", tool_calls=[call], response_metadata={"model": "x"})
    result = ToolMessage("seen", tool_call_id="c1", status="error", artifact=object(), id="r")
    assert list(row(answer)["data"])[:2] == ["tool_calls", "content"]
    back = messages_from_dict([fitted(answer), fitted(result)])
    assert back == [answer, result.model_copy(update={"artifact": None})]
