"""From a row of the table to langchain's chat model: a factory per protocol, each with HTTP clients
of its own. The client packages are imported at first use; those of extras may be missing.

Which row and key a name has is decided in `registry`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from loopwright.errors import MissingExtraError
from loopwright.providers.dialect import GENERIC
from loopwright.providers.keys import FixedKey, KeySource, keyed
from loopwright.providers.oauth import TokenSource
from loopwright.providers.servers import Client, Server

_PLACEHOLDER = "not-needed"
"""The key that a client is made with, since it insists on one. It is never sent: see `_http`."""

_ANSWER_SECONDS, _CONNECT_SECONDS = 600.0, 10.0
"""How long to wait for the next bytes of an answer, and for a connection."""


@dataclass(frozen=True)
class Models(ABC):
    """Makes the models of one name at one server: a `factory.ModelFactory`.

    Address, key and retries (none) are always given, so that no client takes them from variables of
    its own. The HTTP clients are never shared: those that langchain makes serve all event loops of
    the process. They verify certificates and follow the proxy variables, as the clients do by
    default.
    """

    server: Server
    model: str
    source: KeySource
    """Where the key of each request comes from that does not bring its own."""

    @abstractmethod
    def make(self, key: str) -> BaseChatModel:
        """A model for this key; an empty one stands for the configured key. Called in a thread."""

    @abstractmethod
    async def close(self, model: BaseChatModel) -> None:
        """Close the connections of a model, in the event loop that used it."""

    @abstractmethod
    async def check(self, model: BaseChatModel) -> None:
        """Ask the server for the cheapest thing that it refuses to a wrong key; raises the
        client's exceptions."""

    def secrets(self) -> list[str]:
        """The keys that requests were sent with, those that a source has given included."""
        return self.source.secrets()

    def _http(self, client: type[Any], key: str, header: str, **options: Any) -> Any:
        """An HTTP client of this class that sends the key in this header, a token as a bearer."""
        source = FixedKey(key) if key else self.source
        header = "authorization" if isinstance(source, TokenSource) else header
        return keyed(client, source, header, **options)


class OpenAIModels(Models):
    """Chat completions of OpenAI and whoever speaks them."""

    def make(self, key: str) -> BaseChatModel:
        """See Models."""
        return self._chat(key, base_url=self.server.url)

    def _chat(self, key: str, header: str = "authorization", **where: Any) -> BaseChatModel:
        from openai import DefaultAsyncHttpxClient, Timeout

        from loopwright.providers.openai_chat import OpenAIChat

        return OpenAIChat(
            model=self.model,
            api_key=SecretStr(key or _PLACEHOLDER),
            http_async_client=self._http(DefaultAsyncHttpxClient, key, header),
            timeout=Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
            max_retries=0,
            dialect=self.server.dialect or GENERIC,
            stream_usage=self.server.stream_options,
            use_responses_api=None if self.server.responses else False,
            **where,
        )

    async def close(self, model: BaseChatModel) -> None:
        """See Models."""
        await vars(model)["http_async_client"].aclose()

    async def check(self, model: BaseChatModel) -> None:
        """See Models."""
        client = vars(model)["root_async_client"]
        if self.server.check is not None:
            await client.get(self._checked_at(self.server.check), cast_to=object)
            return
        bound = {self.server.max_tokens: 1}
        hello = [{"role": "user", "content": "Hi"}]
        await client.chat.completions.create(model=self.model, messages=hello, **bound)

    def _checked_at(self, path: str) -> str:
        return path


class AzureModels(OpenAIModels):
    """A deployment of an Azure resource: over the v1 API, which is OpenAI's; with a `version`, at
    the address that the deployment has in it."""

    def make(self, key: str) -> BaseChatModel:
        """See Models."""
        root = f"{self.server.url}/openai"
        if not self.server.version:
            return self._chat(key, base_url=f"{root}/v1")
        return self._chat(
            key,
            "api-key",
            base_url=f"{root}/deployments/{quote(self.model, safe='')}",
            default_query={"api-version": self.server.version},
        )

    def _checked_at(self, path: str) -> str:
        return f"{self.server.url}/openai{path}" if self.server.version else path


class AnthropicModels(Models):
    """Anthropic's messages. Needs the extra `anthropic`."""

    def make(self, key: str) -> BaseChatModel:
        """See Models."""
        try:
            from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient, Timeout
            from langchain_anthropic import ChatAnthropic
        except ImportError:
            raise MissingExtraError("the provider 'anthropic'", "anthropic") from None
        secret = SecretStr(key or _PLACEHOLDER)
        model = ChatAnthropic(
            model_name=self.model,
            base_url=self.server.url,
            api_key=secret,
            max_retries=0,
            timeout=_ANSWER_SECONDS,
            stop=None,
        )
        # Its own client is shared by all event loops of the process.
        vars(model)["_async_client"] = AsyncAnthropic(
            api_key=secret.get_secret_value(),
            base_url=self.server.url,
            max_retries=0,
            timeout=Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
            http_client=self._http(DefaultAsyncHttpxClient, key, "x-api-key"),
        )
        return model

    async def close(self, model: BaseChatModel) -> None:
        """See Models."""
        await vars(model)["_async_client"].close()

    async def check(self, model: BaseChatModel) -> None:
        """See Models."""
        await vars(model)["_async_client"].models.list(limit=1)


class GoogleModels(Models):
    """Google's Gemini API. Needs the extra `google`."""

    def make(self, key: str) -> BaseChatModel:
        """See Models."""
        try:
            from google import genai
            from langchain_google_genai import ChatGoogleGenerativeAI
        except ImportError:
            raise MissingExtraError("the provider 'google'", "google") from None
        from openai import DefaultAsyncHttpxClient

        secret = SecretStr(key or _PLACEHOLDER)
        model = ChatGoogleGenerativeAI(
            model=self.model,
            api_key=secret,
            base_url=self.server.url,
            max_retries=1,  # attempts: the first one counts
            vertexai=False,
        )
        http = self._http(DefaultAsyncHttpxClient, key, "x-goog-api-key")
        model.client = genai.Client(
            api_key=secret.get_secret_value(),
            vertexai=False,
            http_options=genai.types.HttpOptions(
                base_url=self.server.url,
                api_version="v1beta",
                httpx_async_client=http,
                timeout=int(_ANSWER_SECONDS * 1000),
            ),
        )
        return model

    async def close(self, model: BaseChatModel) -> None:
        """See Models."""
        await vars(model)["client"].aio.aclose()

    async def check(self, model: BaseChatModel) -> None:
        """See Models."""
        await vars(model)["client"].aio.models.list(config={"page_size": 1})


CLIENTS: dict[Client, type[Models]] = {
    "openai": OpenAIModels,
    "azure": AzureModels,
    "anthropic": AnthropicModels,
    "google": GoogleModels,
}
"""The factory of each protocol."""
