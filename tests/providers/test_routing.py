"""Every model name leads to one provider or to an error that says what is wrong with it."""

import pytest

from loopwright.errors import ModelNameFault, UnknownModelError
from loopwright.providers.routing import Route, route
from loopwright.providers.servers import SERVERS


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("anthropic/claude-sonnet-4-6", "anthropic", "claude-sonnet-4-6"),
        ("openai/gpt-5.4", "openai", "gpt-5.4"),
        ("openrouter/anthropic/claude-sonnet-4", "openrouter", "anthropic/claude-sonnet-4"),
        ("claude-opus-4-8", "anthropic", "claude-opus-4-8"),
        ("gpt-5-mini", "openai", "gpt-5-mini"),
        ("chatgpt-4o-latest", "openai", "chatgpt-4o-latest"),
        ("o1", "openai", "o1"),
        ("o3-mini", "openai", "o3-mini"),
        ("gemini-3-pro", "google", "gemini-3-pro"),
        ("mistral-large", "mistral", "mistral-large"),
        ("codestral", "mistral", "codestral"),
        ("grok-4", "xai", "grok-4"),
        ("deepseek-v4", "deepseek", "deepseek-v4"),
        (" openai/gpt-5 ", "openai", "gpt-5"),
        ("OpenAI/gpt-5", "openai", "gpt-5"),
        ("ollama/qwen3:8b", "ollama", "qwen3:8b"),
        ("Claude-Sonnet-4", "anthropic", "Claude-Sonnet-4"),
        ("custom/org/model", "custom", "org/model"),
        ("azure/my-deployment", "azure", "my-deployment"),
    ],
)
def test_a_name_is_split_at_its_first_slash_or_known_by_its_first_word(
    name: str, provider: str, model: str
) -> None:
    assert route(name) == Route(provider, model)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("EMPTY_MODEL", ["", " "]),
        ("INVALID_MODEL", ["/gpt-5", "openai/", "openai/ ", "/", " / "]),
        ("UNKNOWN_PROVIDER", ["foo/bar", "open ai/gpt-5", "claude/x"]),
        (
            "UNKNOWN_MODEL",
            [
                *["olmo-2-7b", "llama-3", "claudette-1", "my-gpt-4-clone", "gpt", "o10", "ollama"],
                *["openrouter", "geminix", "gpt5"],
            ],
        ),
    ],
)
def test_a_name_that_leads_nowhere_is_an_error_with_a_code(
    code: ModelNameFault, names: list[str]
) -> None:
    for name in names:
        with pytest.raises(UnknownModelError, match="PROVIDER/MODEL") as caught:
            route(name)
        assert (caught.value.code, caught.value.model) == (code, name)


def test_only_the_given_providers_are_known() -> None:
    some = [name for name in SERVERS if name not in ("groq", "anthropic")]
    with pytest.raises(UnknownModelError) as caught:
        route("groq/llama", some)
    assert caught.value.code == "UNKNOWN_PROVIDER"
    with pytest.raises(UnknownModelError) as caught:
        route("claude-opus-4-8", some)
    assert caught.value.code == "UNKNOWN_MODEL"
    assert route("mine/m", ["mine"]) == Route("mine", "m")
