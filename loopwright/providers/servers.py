"""The table of providers: where each is reached, which key it wants, what it differs in, and where
its public documentation says so.

How a name finds its row is `routing`'s business, how a client is made of it `clients`'.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from loopwright.providers.dialect import Dialect

Client = Literal["openai", "azure", "anthropic", "google"]
"""The langchain chat model that speaks to a server; see `clients`."""

LEVELS = ("minimal", "low", "medium", "high")
"""The thinking levels above off."""

Thinking = Mapping[str, Mapping[str, Any]]
"""Per thinking level, what is added to a request; a level that it does not name adds nothing."""


def efforts(**others: str) -> Thinking:
    """Levels as `reasoning_effort` of the same name; `others` renames those that differ."""
    return {level: {"reasoning_effort": others.get(level, level)} for level in LEVELS}


@dataclass(frozen=True, kw_only=True)
class Server:
    """One provider: a row of the table, or one of your own.

    `evidence` are the addresses of the provider's documentation that the row was read from, and
    `unverified` what it does not say: such a field holds what is safe everywhere.
    """

    url: str
    """Base address of its API, with the version in the path."""

    key_variable: str | None = None
    """Environment variable with the key; None: the server runs locally and wants none."""

    url_variable: str | None = None
    """Environment variable that takes the place of `url`."""

    version: str = ""
    """Version of Azure's API; empty: its v1 API, which has none."""

    version_variable: str | None = None
    """Environment variable with the version."""

    client: Client = "openai"
    """The protocol."""

    dialect: Dialect | None = None
    """How its requests are written; None: as its protocol has it."""

    thinking: Thinking = field(default_factory=dict)
    """The request fields of each thinking level; empty: a level changes nothing."""

    stream_options: bool = True
    """Whether it takes `stream_options`, the request for a last chunk with token counts."""

    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Its name for the bound on an answer's tokens."""

    responses: bool = False
    """Whether langchain may take OpenAI's responses API for the models that need it."""

    check: str | None = None
    """A path below `url` that costs nothing and refuses a wrong key; None: there is none, so a
    key is tried with a request for one token."""

    evidence: tuple[str, ...] = ()

    unverified: str = ""


_CACHE_KEY = Dialect(cache_key=64)

SERVERS: Mapping[str, Server] = {
    "openai": Server(
        url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        check="/models",
        dialect=_CACHE_KEY,
        thinking=efforts(),
        max_tokens="max_completion_tokens",
        responses=True,
        evidence=(
            "https://platform.openai.com/docs/api-reference/chat/create",
            "https://platform.openai.com/docs/guides/prompt-caching",
        ),
        unverified=(
            "the pages themselves: read from the types of the openai package; "
            "the longest cache key; which model takes which effort"
        ),
    ),
    "azure": Server(
        url="",  # each resource has its own; the model's name is its deployment's
        url_variable="AZURE_OPENAI_ENDPOINT",
        version_variable="OPENAI_API_VERSION",
        key_variable="AZURE_OPENAI_API_KEY",
        client="azure",
        check="/models",
        dialect=_CACHE_KEY,
        thinking=efforts(),
        max_tokens="max_completion_tokens",
        evidence=(
            "https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle",
            "https://github.com/openai/openai-python#microsoft-azure-openai",
        ),
        unverified="the longest cache key; which model takes which effort",
    ),
    "openrouter": Server(
        url="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
        check="/key",  # its list of models answers without a key
        thinking={level: {"extra_body": {"reasoning": {"effort": level}}} for level in LEVELS},
        evidence=("https://openrouter.ai/docs/use-cases/reasoning-tokens",),
        unverified="cache key; images in results (both depend on who serves the model)",
    ),
    "deepseek": Server(
        url="https://api.deepseek.com/v1",
        key_variable="DEEPSEEK_API_KEY",
        check="/models",
        # Thinks unless told not to, and refuses turns with calls that lack their thinking.
        dialect=Dialect(thinking_back="reasoning_content"),
        thinking={
            "off": {"extra_body": {"thinking": {"type": "disabled"}}},
            **efforts(minimal="low", medium="high"),
        },
        evidence=("https://api-docs.deepseek.com/guides/thinking_mode",),
        unverified="null content",
    ),
    "mistral": Server(
        url="https://api.mistral.ai/v1",
        key_variable="MISTRAL_API_KEY",
        check="/models",
        # Counts tokens in the last chunk unasked and has refused unknown fields.
        dialect=_CACHE_KEY,
        stream_options=False,
        evidence=(
            "https://docs.mistral.ai/api",
            "https://docs.mistral.ai/studio-api/conversations/advanced/prompt-caching",
        ),
        unverified="the first page itself; the longest cache key; thinking",
    ),
    "xai": Server(
        url="https://api.x.ai/v1",
        key_variable="XAI_API_KEY",
        check="/models",
        thinking=efforts(minimal="low"),
        evidence=(
            "https://docs.x.ai/developers/model-capabilities/text/reasoning",
            "https://docs.x.ai/developers/model-capabilities/text/best-practices",
        ),
        unverified="cache key with chat completions; which model takes an effort",
    ),
    "groq": Server(
        url="https://api.groq.com/openai/v1",
        key_variable="GROQ_API_KEY",
        check="/models",
        thinking=efforts(minimal="low"),
        evidence=(
            "https://console.groq.com/docs/openai",
            "https://console.groq.com/docs/reasoning",
        ),
        unverified=(
            "the pages themselves: read from what cites them; "
            "which model takes an effort; images in results"
        ),
    ),
    "together": Server(
        url="https://api.together.ai/v1",
        key_variable="TOGETHER_API_KEY",
        check="/models",
        evidence=("https://docs.together.ai/docs/inference/openai-compatibility",),
        unverified="thinking; images in results",
    ),
    "ollama": Server(
        url="http://localhost:11434/v1",
        check="/models",
        thinking=efforts(minimal="low"),
        evidence=("https://docs.ollama.com/api/openai-compatibility",),
        unverified="images in results",
    ),
    "lmstudio": Server(
        url="http://localhost:1234/v1",
        check="/models",
        evidence=("https://lmstudio.ai/docs/developer/openai-compat",),
        unverified="thinking; images in results",
    ),
    "llamacpp": Server(
        url="http://localhost:8080/v1",
        # Its list of models answers without a key.
        evidence=("https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",),
        unverified=(
            "the page itself: read from the source of the server; "
            "thinking (the chat template decides)"
        ),
    ),
    "vllm": Server(
        url="http://localhost:8000/v1",
        check="/models",
        evidence=("https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",),
        unverified=(
            "the latest page: read from older versions of it; thinking (the chat template decides)"
        ),
    ),
    "anthropic": Server(
        url="https://api.anthropic.com",
        key_variable="ANTHROPIC_API_KEY",
        client="anthropic",
        check="/v1/models",
        thinking={level: {"effort": level} for level in LEVELS} | {"minimal": {"effort": "low"}},
        evidence=(
            "https://docs.langchain.com/oss/python/integrations/chat/anthropic",
            "https://platform.claude.com/docs/en/api/overview",
        ),
        unverified=(
            "the pages themselves: read from the docs of the langchain package; "
            "which model takes an effort"
        ),
    ),
    "google": Server(
        url="https://generativelanguage.googleapis.com",
        key_variable="GOOGLE_API_KEY",
        client="google",
        check="/v1beta/models",
        thinking={level: {"thinking_level": level} for level in LEVELS},
        evidence=(
            "https://docs.langchain.com/oss/python/integrations/chat/google_generative_ai",
            "https://ai.google.dev/api",
        ),
        unverified=(
            "the pages themselves: read from the docs of the langchain package; "
            "images in results; which model takes which level"
        ),
    ),
}
"""The providers that have a name of their own, by what stands in front of the slash."""
