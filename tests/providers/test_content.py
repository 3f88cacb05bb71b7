"""Text and thinking are found in every form in which providers send them."""

from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk

from loopwright.providers.content import Part, parts


def found(content: Any, **fields: Any) -> list[Part]:
    return list(parts(AIMessageChunk(content=content, **fields)))


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "text", "text": "hi"}, "hi"),
        ({"type": "output_text", "text": "hi"}, "hi"),
        ({"type": "refusal", "refusal": "no"}, "no"),
        ("hi", "hi"),
    ],
)
def test_a_text_is_found(block: Any, text: str) -> None:
    assert found([block]) == [Part("text", text)]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "thinking", "thinking": "hm"},
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "reasoning_content", "reasoning_content": {"text": "hm"}},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
    ],
)
def test_thinking_is_found(block: dict[str, Any]) -> None:
    assert found([block]) == [Part("thinking", "hm")]


def test_thinking_beside_the_content_comes_first() -> None:
    chunk = found("yes", additional_kwargs={"reasoning_content": "hm"})
    assert chunk == [Part("thinking", "hm"), Part("text", "yes")]


def test_a_signature_is_kept_with_its_block() -> None:
    block = {"type": "thinking", "signature": "s", "index": 2, "extras": {"id": "r1"}}
    assert found([block]) == [Part("thinking", "", 2, {"id": "r1", "signature": "s"})]


@pytest.mark.parametrize("kind", ["tool_use", "input_json_delta", "tool_call_chunk"])
def test_calls_are_not_taken_from_the_content(kind: str) -> None:
    assert found([{"type": kind, "input": {}, "index": 1}]) == []


def test_a_block_of_another_kind_is_kept_whole() -> None:
    image = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
    assert found([image]) == [Part("other", fields=image)]


def test_empty_content_has_no_parts() -> None:
    assert found("") == found([]) == []
