"""What the providers' words for the end of an answer mean."""

import pytest

from loopwright.providers.finish import is_failure, said, stop_reason, why_cut


@pytest.mark.parametrize("word", ["stop", "tool_calls", "function_call", "end_turn", "STOP", "eos"])
def test_the_calls_decide_over_the_word(word: str) -> None:
    assert stop_reason(word, has_calls=True) == "tool_use"
    assert stop_reason(word, has_calls=False) == "stop"
    assert why_cut(word) is None


@pytest.mark.parametrize("word", ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens"])
def test_a_limit_on_the_length_cuts_whatever_there_is(word: str) -> None:
    assert stop_reason(word, has_calls=True) == stop_reason(word, has_calls=False) == "length"
    assert "cut off" in str(why_cut(word))


@pytest.mark.parametrize("word", ["content_filter", "SAFETY", "refusal"])
def test_a_filter_keeps_its_word_and_cuts_the_calls(word: str) -> None:
    assert stop_reason(word, has_calls=True) == word.lower()
    assert word in str(why_cut(word))


def test_an_unknown_word_stays_itself() -> None:
    assert stop_reason("Pause_Turn", has_calls=False) == "Pause_Turn"
    assert why_cut("Pause_Turn") is None
    assert not is_failure("Pause_Turn")


@pytest.mark.parametrize("word", ["error", "network_error", "ERROR"])
def test_a_word_for_a_failure_is_one(word: str) -> None:
    assert is_failure(word)


@pytest.mark.parametrize(
    ("metadata", "word"),
    [
        ({"finish_reason": "stop"}, "stop"),
        ({"finish_reason": None, "stop_reason": "end_turn"}, "end_turn"),
        ({"done_reason": "length"}, "length"),
        ({"stopReason": "tool_use"}, "tool_use"),
        ({"status": "completed"}, "completed"),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "max_output_tokens",
        ),
        ({"status": "in_progress"}, None),
        ({"finish_reason": " "}, None),
        ({}, None),
    ],
)
def test_the_word_is_found_under_the_providers_names(
    metadata: dict[str, object], word: str | None
) -> None:
    assert said(metadata) == word
