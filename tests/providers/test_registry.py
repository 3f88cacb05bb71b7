"""What becomes of a name: a provider with the address, the key and the dialect of its row."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from loopwright.errors import ConfigurationError, MissingKeyError, UnknownModelError
from loopwright.providers.chat_model import ChatModelProvider
from loopwright.providers.contract import Provider
from loopwright.providers.registry import Registry
from loopwright.providers.servers import SERVERS
from loopwright.settings import Environment
from loopwright.state.messages import error_of
from loopwright.testing import HttpReply, OpenAIServer
from tests.providers.asking import ask

ROOT = Path(__file__).parents[2]
KEYS = {server.key_variable: "sk-key" for server in SERVERS.values() if server.key_variable}
EMPTY = Environment(base_url=None, api_key=None)

OWN_URL = {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/"}
OPENAI_LIKE = [name for name, row in SERVERS.items() if row.client == "openai"]


def resolve(
    name: str,
    environment: Environment = EMPTY,
    *,
    variables: Mapping[str, str] | None = None,
    **given: Any,
) -> Provider:
    """What a registry answers, without any variable of the machine unless it is given."""
    return Registry(environment=environment, variables=variables, **given)(name)


def chat_model(provider: Provider) -> Any:
    """langchain-openai's model behind a provider."""
    assert isinstance(provider, ChatModelProvider)
    return provider.model


@pytest.mark.parametrize("provider", OPENAI_LIKE)
def test_each_server_of_the_table_is_reached_at_its_address_with_its_key(provider: str) -> None:
    server = SERVERS[provider]
    variables = {server.key_variable: "sk-its-own"} if server.key_variable else {}
    found = resolve(f"{provider}/some-model", EMPTY, variables=variables)
    assert isinstance(found, ChatModelProvider)
    model = chat_model(found)
    assert (found.id, model.model_name) == (provider, "some-model")
    assert model.openai_api_base == server.url
    assert ("sk-its-own" in found.secrets()) == bool(server.key_variable)
    assert model.max_retries == 0


@pytest.mark.parametrize("provider", [name for name, s in SERVERS.items() if s.key_variable])
@pytest.mark.parametrize("value", [None, "", " "])
def test_a_missing_key_names_its_variable(provider: str, value: str | None) -> None:
    variable = str(SERVERS[provider].key_variable)
    others = {key: "sk-other" for key in KEYS if key != variable}
    with pytest.raises(MissingKeyError, match=variable):
        resolve(
            f"{provider}/m",
            EMPTY,
            variables=OWN_URL | others | ({variable: value} if value else {}),
        )


def test_keys_are_read_from_the_process_s_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "sk-from-outside")
    found = resolve("groq/m", EMPTY)
    assert isinstance(found, ChatModelProvider)
    assert "sk-from-outside" in found.secrets()


def test_openai_s_own_variables_redirect_no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere.example/v1")
    monkeypatch.setenv("OPENAI_API_BASE", "http://elsewhere.example/v1")
    for name in ("openai/m", "ollama/m"):
        assert chat_model(resolve(name, EMPTY)).openai_api_base == SERVERS[name[:-2]].url
    local = resolve("ollama/m", EMPTY)
    assert isinstance(local, ChatModelProvider) and "sk-openai" not in local.secrets()


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["custom/org/model", "my-model"])
async def test_the_server_at_base_url_answers_to_custom_and_to_unclaimed_names(name: str) -> None:
    async with OpenAIServer(["It works."]) as server:
        environment = Environment(base_url=f" {server.base_url} ", api_key=SecretStr("sk-mine"))
        told = await ask(resolve(name, environment, variables={}))
        assert told.message.content == "It works."
        assert told.said("provider") == "custom"
        (sent,) = server.requests
    assert sent.headers["authorization"] == "Bearer sk-mine"
    assert sent.body["model"] == name.removeprefix("custom/")
    assert sent.body["stream_options"] == {"include_usage": True}


@pytest.mark.anyio
async def test_the_key_of_a_request_is_sent_and_never_told() -> None:
    async with OpenAIServer([HttpReply(status=401, body="wrong: sk-of-request")]) as server:
        found = resolve("custom/m", Environment(base_url=server.base_url), variables={})
        told = await ask(found, api_key="sk-of-request")
        assert server.requests[0].headers["authorization"] == "Bearer sk-of-request"
    assert (error_of(told.message) or {})["kind"] == "auth"
    assert "sk-of-request" not in str(told.message)


def test_a_name_that_a_prefix_claims_does_not_go_to_base_url() -> None:
    environment = Environment(base_url="http://localhost:9/v1")
    with pytest.raises(MissingKeyError, match="OPENAI_API_KEY"):
        resolve("gpt-5", environment, variables={})
    with pytest.raises(UnknownModelError):
        resolve("foo/bar", environment, variables={})


def test_custom_without_an_address_says_which_variable_to_set() -> None:
    with pytest.raises(ConfigurationError, match="LOOPWRIGHT_BASE_URL"):
        resolve("custom/m", EMPTY)


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://host/v1", "http://", "file:///x", "http://h:x"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="base_url") as caught:
        resolve("custom/m", Environment(base_url=url))
    assert caught.value.field == "base_url"


@pytest.mark.anyio
async def test_the_offline_model_answers_without_key_and_network() -> None:
    told = await ask(resolve("offline", EMPTY, variables={}))
    assert told.message.content
    assert (told.said("provider"), told.said("stop_reason")) == ("offline", "stop")
    assert (await ask(resolve("offline", EMPTY), api_key="any")).message.content


def test_importing_the_providers_loads_no_client() -> None:
    script = (
        "import sys, loopwright.providers.registry\n"
        "clients = {'openai', 'anthropic', 'google.genai', 'langchain_openai', 'tiktoken'}\n"
        "print(*clients & set(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment
    )
    assert (run.stdout.strip(), run.stderr) == ("", "")
