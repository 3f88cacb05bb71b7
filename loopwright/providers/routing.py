"""From the name of a model to the provider that answers to it: a table, and no silent fallback.

How a provider speaks to its server lives in `chat_model`. langchain-openai is imported late.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from loopwright.errors import ConfigurationError, MissingKeyError, UnknownModelError
from loopwright.providers.chat_model import ChatModelProvider
from loopwright.providers.contract import Provider
from loopwright.providers.dialect import GENERIC, Dialect
from loopwright.settings import Environment

OFFLINE = "offline"
"""Name of the built-in model that needs neither key nor network."""

CUSTOM = "custom"
"""Provider of the server at LOOPWRIGHT_BASE_URL."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server that speaks OpenAI's chat completions: a row of the table of providers."""

    url: str
    key_variable: str | None = None
    """Environment variable with the key; None: the server runs locally and wants none."""

    stream_options: bool = True
    """Whether it takes `stream_options`, the request for a last chunk with token counts."""

    effort: bool = False
    """Whether it takes `reasoning_effort`; elsewhere a thinking level changes nothing."""

    dialect: Dialect = GENERIC


SERVERS: dict[str, Server] = {
    "openai": Server(
        url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        effort=True,
        dialect=Dialect(cache_key=64),
    ),
    "openrouter": Server(
        url="https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY", effort=True
    ),
    # Refuses turns with calls that lack their thinking.
    "deepseek": Server(
        url="https://api.deepseek.com/v1",
        key_variable="DEEPSEEK_API_KEY",
        dialect=Dialect(thinking_back="reasoning_content"),
    ),
    # Counts tokens in the last chunk unasked and has refused unknown fields.
    "mistral": Server(
        url="https://api.mistral.ai/v1", key_variable="MISTRAL_API_KEY", stream_options=False
    ),
    "xai": Server(url="https://api.x.ai/v1", key_variable="XAI_API_KEY"),
    "groq": Server(url="https://api.groq.com/openai/v1", key_variable="GROQ_API_KEY"),
    "together": Server(url="https://api.together.xyz/v1", key_variable="TOGETHER_API_KEY"),
    "ollama": Server(url="http://localhost:11434/v1"),
    "lmstudio": Server(url="http://localhost:1234/v1"),
    "llamacpp": Server(url="http://localhost:8080/v1"),
    "vllm": Server(url="http://localhost:8000/v1"),
}
"""The providers that langchain-openai reaches, by the name in front of the slash."""

OBJECT_ONLY: dict[str, str] = {
    "anthropic": "langchain-anthropic",
    "google": "langchain-google-genai",
}
"""Providers with a protocol of their own: the package whose model object an agent takes instead."""

_PREFIXES: tuple[tuple[str, str], ...] = (
    ("claude", "anthropic"),
    ("gpt-|chatgpt-", "openai"),
    (r"o\d", "openai"),
    ("gemini", "google"),
    ("mistral|mixtral|codestral|ministral|pixtral|magistral|devstral", "mistral"),
    ("grok", "xai"),
    ("deepseek", "deepseek"),
)
"""Bare names by their first word; openrouter and the local servers are always named in front."""

_NO_KEY = "not-needed"
"""Sent to servers that want no key; langchain-openai insists on one."""

_ANSWER_SECONDS, _CONNECT_SECONDS = 600.0, 10.0
"""How long to wait for the next bytes of an answer, and for a connection."""

_EFFORTS = {level: {"reasoning_effort": level} for level in ("minimal", "low", "medium", "high")}


@dataclass(frozen=True)
class Route:
    """Where a model name leads: the provider, and the model's name there."""

    provider: str
    model: str


def route(name: str) -> Route:
    """Split `provider/model` at the first slash, or find the provider of a bare name by its prefix.

    Raises UnknownModelError when neither is known; it never picks some other provider.
    """
    wanted = name.strip()
    provider, slash, model = wanted.partition("/")
    if slash:
        provider, model = provider.strip().lower(), model.strip()
        if not model or provider not in {*SERVERS, *OBJECT_ONLY, CUSTOM}:
            raise UnknownModelError(name, _known())
        return Route(provider, model)
    for words, owner in _PREFIXES:
        if re.match(rf"({words})(-|$|(?<=-))", wanted, re.IGNORECASE):
            return Route(owner, wanted)
    raise UnknownModelError(name, _known())


def resolve(
    name: str, environment: Environment, *, variables: Mapping[str, str] | None = None
) -> Provider:
    """The provider for a model name; `variables` replaces the process's environment variables.

    `offline` is the built-in model. `provider/model` and the usual bare names lead to the table;
    `custom/model`, and bare names that no prefix claims, to the server at LOOPWRIGHT_BASE_URL if
    that is set. Raises UnknownModelError, MissingKeyError, or ConfigurationError for an address
    that is none; nothing is sent.
    """
    if name.strip() == OFFLINE:
        return _offline()
    found = _route_or_custom(name, environment)
    if found.provider in OBJECT_ONLY:
        raise ConfigurationError(
            f"model {name!r} cannot be reached by name: give the agent a model object of "
            f"{OBJECT_ONLY[found.provider]}, or use 'openrouter/{found.provider}/{found.model}'",
            field="model",
        )
    if found.provider == CUSTOM:
        return _custom(name, found.model, environment)
    server = SERVERS[found.provider]
    key = (
        (os.environ if variables is None else variables).get(server.key_variable or "", "").strip()
    )
    if server.key_variable and not key:
        raise MissingKeyError(name, server.key_variable)
    return _provider(found, server, key)


def _route_or_custom(name: str, environment: Environment) -> Route:
    try:
        return route(name)
    except UnknownModelError:
        if environment.base_url and name.strip() and "/" not in name:
            return Route(CUSTOM, name.strip())
        raise


def _custom(name: str, model: str, environment: Environment) -> Provider:
    if not environment.base_url:
        raise ConfigurationError(
            f"model {name!r} needs the address of its server: set LOOPWRIGHT_BASE_URL",
            field="base_url",
        )
    key = environment.api_key.get_secret_value().strip() if environment.api_key else ""
    server = Server(url=_checked_url(environment.base_url), effort=True)
    return _provider(Route(CUSTOM, model), server, key)


def _checked_url(url: str) -> str:
    """The address without blanks around it. Raises ConfigurationError unless it is http(s)."""
    cleaned = url.strip()
    try:
        parts = urlsplit(cleaned)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigurationError(
            f"base_url is {url!r}: use an address like http://localhost:8000/v1", field="base_url"
        )
    return cleaned


def _provider(found: Route, server: Server, key: str) -> Provider:
    factory = _OpenAIModels(found, server, key)
    return ChatModelProvider(
        factory.make(""),
        id=found.provider,
        name=found.model,
        factory=factory,
        thinking=_EFFORTS if server.effort else None,
        dialect=server.dialect,
    )


@dataclass(frozen=True)
class _OpenAIModels:
    """Makes langchain-openai's model for one row. Each has an HTTP client of its own: the ones
    that langchain-openai makes are shared by all event loops of the process."""

    found: Route
    server: Server
    key: str

    def make(self, key: str) -> BaseChatModel:
        """Address and key are always given, so that none is taken from OpenAI's variables."""
        from openai import DefaultAsyncHttpxClient, Timeout

        from loopwright.providers.openai_chat import OpenAIChat

        options: dict[str, Any] = {"openai_api_key": SecretStr(key or self.key or _NO_KEY)}
        if self.found.provider != "openai":
            options["use_responses_api"] = False
        return OpenAIChat(
            model=self.found.model,
            base_url=self.server.url,
            http_async_client=DefaultAsyncHttpxClient(),
            timeout=Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
            max_retries=0,
            dialect=self.server.dialect,
            stream_usage=self.server.stream_options,
            **options,
        )

    async def close(self, model: BaseChatModel) -> None:
        """Close the HTTP client that `make` gave the model."""
        await vars(model)["http_async_client"].aclose()


@dataclass(frozen=True)
class _Keyless:
    """Gives the same model whatever the key and the event loop."""

    model: BaseChatModel

    def make(self, key: str) -> BaseChatModel:
        return self.model

    async def close(self, model: BaseChatModel) -> None:
        """There is nothing to close."""


def _offline() -> Provider:
    from loopwright.providers.offline.model import OfflineModel

    model = OfflineModel()
    return ChatModelProvider(model, id=OFFLINE, name=OFFLINE, factory=_Keyless(model))


def _known() -> str:
    named = ", ".join([*SERVERS, *OBJECT_ONLY])
    return (
        f"'offline', 'PROVIDER/MODEL' with one of {named}, "
        "or 'custom/MODEL' with LOOPWRIGHT_BASE_URL set"
    )
