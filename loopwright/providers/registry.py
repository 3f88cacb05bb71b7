"""The providers of an agent: its rows and their keys. A model's name goes in, a Provider comes out.

How a name is read is said in `routing`, what a row says in `servers`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from loopwright.errors import ConfigurationError, MissingKeyError, UnknownModelError
from loopwright.providers.chat_model import ChatModelProvider
from loopwright.providers.clients import CLIENTS
from loopwright.providers.contract import Provider
from loopwright.providers.keys import FixedKey, FunctionKeys, KeyFunction, KeySource
from loopwright.providers.routing import CUSTOM, OFFLINE, Route, route
from loopwright.providers.servers import SERVERS, Server, efforts
from loopwright.settings import Environment

Key = str | SecretStr | KeyFunction | KeySource
"""A key, a function (sync or async) that gives one for each request, or a source of tokens."""


@dataclass(frozen=True, kw_only=True)
class Registry:
    """Answers to model names: the value of `Agent(models=...)`.

    `servers` are the rows by provider name: `{**SERVERS, "mine": Server(url=...)}` adds one.
    `keys` are the keys by provider name; for the others each row's variable counts, and for
    `custom` the environment's `api_key`. `variables` replaces the process's environment variables.
    """

    servers: Mapping[str, Server] = field(default_factory=lambda: SERVERS)
    keys: Mapping[str, Key] = field(default_factory=dict, repr=False)
    environment: Environment = field(default_factory=Environment)
    variables: Mapping[str, str] | None = field(default=None, repr=False)

    def __call__(self, name: str) -> Provider:
        """The provider for a model name; nothing is sent.

        `offline` is the built-in model. `provider/model` and the usual bare names lead to the rows;
        `custom/model`, and bare names that no prefix claims, to the server at LOOPWRIGHT_BASE_URL
        if that is set. Raises UnknownModelError, MissingKeyError, MissingExtraError, or
        ConfigurationError for an address that is none.
        """
        if name.strip() == OFFLINE:
            return _offline()
        found = self._route(name)
        row = self._custom(name) if found.provider == CUSTOM else self.servers[found.provider]
        server = replace(
            row,
            url=self._url(name, row),
            version=self._variable(row.version_variable) or row.version,
        )
        source = self._source(name, found.provider, row)
        factory = CLIENTS[server.client](server, found.model, source)
        return ChatModelProvider(
            factory.make(""),
            id=found.provider,
            name=found.model,
            factory=factory,
            thinking=server.thinking,
            dialect=server.dialect,
        )

    def _route(self, name: str) -> Route:
        try:
            return route(name, self.servers)
        except UnknownModelError:
            if self.environment.base_url and name.strip() and "/" not in name:
                return Route(CUSTOM, name.strip())
            raise

    def _custom(self, name: str) -> Server:
        if not self.environment.base_url:
            raise ConfigurationError(
                f"model {name!r} needs the address of its server: set LOOPWRIGHT_BASE_URL",
                field="base_url",
            )
        return Server(url=self.environment.base_url, thinking=efforts())

    def _url(self, name: str, row: Server) -> str:
        """The row's address, without blanks around it and a slash behind it."""
        url = self._variable(row.url_variable) or row.url
        if not url and row.url_variable:
            raise ConfigurationError(
                f"model {name!r} needs the address of its server: set {row.url_variable}",
                field="base_url",
            )
        return _checked_url(url)

    def _source(self, name: str, provider: str, row: Server) -> KeySource:
        given = self.keys.get(provider)
        if given is None and provider == CUSTOM:
            given = self.environment.api_key
        if given is None:
            given = self._variable(row.key_variable)
            if row.key_variable and not given:
                raise MissingKeyError(name, row.key_variable)
        if isinstance(given, SecretStr):
            given = given.get_secret_value()
        if isinstance(given, str):
            return FixedKey(given.strip())
        return given if isinstance(given, KeySource) else FunctionKeys(given)

    def _variable(self, name: str | None) -> str:
        variables = os.environ if self.variables is None else self.variables
        return variables.get(name, "").strip() if name else ""


def _checked_url(url: str) -> str:
    """Raises ConfigurationError unless it is http(s)."""
    cleaned = url.strip().rstrip("/")
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


@dataclass(frozen=True)
class _Keyless:
    """Gives the same model whatever the key and the event loop."""

    model: BaseChatModel

    def make(self, key: str) -> BaseChatModel:
        return self.model

    async def close(self, model: BaseChatModel) -> None:
        """There is nothing to close."""

    async def check(self, model: BaseChatModel) -> None:
        """There is nothing to refuse."""

    def secrets(self) -> list[str]:
        """There are none."""
        return []


def _offline() -> Provider:
    from loopwright.providers.offline.model import OfflineModel

    model = OfflineModel()
    return ChatModelProvider(model, id=OFFLINE, name=OFFLINE, factory=_Keyless(model))
