"""How a result that is too long is cut."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from loopwright.tools.bounding import bounded
from loopwright.tools.contract import Content, ToolResult
from tests.ledgers import unhurried

MARK = "[cut]"
IMAGE: dict[str, Any] = {"type": "image", "url": "data:,"}


def cut(content: Content, most: int | None) -> Content:
    return bounded(ToolResult(content=content, is_error=True), most, MARK).content


def test_what_fits_is_the_same_object() -> None:
    result = ToolResult(content="x" * 10)
    assert bounded(result, 10, MARK) is result
    assert bounded(result, None, MARK) is result


def test_a_text_is_cut_with_its_mark_within_the_bound() -> None:
    assert cut("0123456789ab", 10) == "01234[cut]"
    assert cut("0123456789ab", 3) == "[cu"


def test_blocks_keep_what_is_no_text_and_share_the_bound() -> None:
    blocks: Content = [
        {"type": "text", "text": "abcd"},
        IMAGE,
        "efgh",
        {"type": "text", "text": "i"},
    ]
    assert cut(blocks, 8) == [
        {"type": "text", "text": "abc"},
        IMAGE,
        {"type": "text", "text": MARK},
    ]
    assert cut(blocks, 9) == blocks


texts = st.text(max_size=30)


@unhurried
@given(
    content=texts | st.lists(texts | st.builds(lambda t: {"type": "text", "text": t}, texts)),
    most=st.integers(1, 40),
)
def test_no_result_has_more_text_than_allowed(content: Content, most: int) -> None:
    made = cut(content, most)
    sizes = (
        [made] if isinstance(made, str) else [b if isinstance(b, str) else b["text"] for b in made]
    )
    assert sum(map(len, sizes)) <= most
