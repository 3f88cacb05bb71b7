"""Every model name leads to one provider or to an error that says what to do."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from loopwright.errors import ConfigurationError, MissingKeyError, UnknownModelError
from loopwright.providers.chat_model import ChatModelProvider
from loopwright.providers.contract import Provider
from loopwright.providers.routing import SERVERS, Route, resolve, route
from loopwright.settings import Environment
from loopwright.state.messages import error_of
from loopwright.testing import HttpReply, OpenAIServer
from tests.providers.asking import ask

ROOT = Path(__file__).parents[2]
KEYS = {server.key_variable: "sk-key" for server in SERVERS.values() if server.key_variable}
EMPTY = Environment(base_url=None, api_key=None)


def chat_model(provider: Provider) -> Any:
    """langchain-openai's model behind a provider."""
    assert isinstance(provider, ChatModelProvider)
    return provider.model


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
    ],
)
def test_a_name_is_split_at_its_first_slash_or_known_by_its_first_word(
    name: str, provider: str, model: str
) -> None:
    assert route(name) == Route(provider, model)


@pytest.mark.parametrize(
    "name",
    [
        *["", " ", "/gpt-5", "openai/", "openai/ ", "foo/bar", "olmo-2-7b", "llama-3"],
        *["claudette-1", "my-gpt-4-clone", "gpt", "o10", "ollama", "openrouter"],
    ],
)
def test_a_name_that_leads_nowhere_is_an_error_and_never_another_provider(name: str) -> None:
    with pytest.raises(UnknownModelError, match="PROVIDER/MODEL"):
        route(name)
    with pytest.raises(UnknownModelError):
        resolve(name, EMPTY, variables=KEYS)


@pytest.mark.parametrize("provider", SERVERS)
def test_each_server_of_the_table_is_reached_at_its_address_with_its_key(provider: str) -> None:
    server = SERVERS[provider]
    variables = {server.key_variable: "sk-its-own"} if server.key_variable else {}
    found = resolve(f"{provider}/some-model", EMPTY, variables=variables)
    model = chat_model(found)
    assert (found.id, model.model_name) == (provider, "some-model")
    assert model.openai_api_base == server.url
    expected = "sk-its-own" if server.key_variable else "not-needed"
    assert model.openai_api_key.get_secret_value() == expected
    assert model.max_retries == 0


@pytest.mark.parametrize("provider", [name for name, s in SERVERS.items() if s.key_variable])
@pytest.mark.parametrize("value", [None, "", " "])
def test_a_missing_key_names_its_variable(provider: str, value: str | None) -> None:
    variable = str(SERVERS[provider].key_variable)
    others = {key: "sk-other" for key in KEYS if key != variable}
    with pytest.raises(MissingKeyError, match=variable):
        resolve(f"{provider}/m", EMPTY, variables=others | ({variable: value} if value else {}))


def test_keys_are_read_from_the_process_s_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "sk-from-outside")
    found = chat_model(resolve("groq/m", EMPTY))
    assert found.openai_api_key.get_secret_value() == "sk-from-outside"


def test_openai_s_own_variables_redirect_no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere.example/v1")
    monkeypatch.setenv("OPENAI_API_BASE", "http://elsewhere.example/v1")
    for name in ("openai/m", "ollama/m"):
        assert chat_model(resolve(name, EMPTY)).openai_api_base == SERVERS[name[:-2]].url
    assert chat_model(resolve("ollama/m", EMPTY)).openai_api_key.get_secret_value() != "sk-openai"


@pytest.mark.parametrize("name", ["anthropic/claude-x", "claude-x", "gemini-3-pro"])
def test_a_provider_with_another_protocol_says_how_to_reach_it(name: str) -> None:
    with pytest.raises(ConfigurationError, match="openrouter/"):
        resolve(name, EMPTY, variables=KEYS)


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


def test_only_servers_that_know_it_are_sent_a_thinking_level() -> None:
    with_effort = {name for name, server in SERVERS.items() if server.effort}
    assert "openai" in with_effort
    assert "ollama" not in with_effort


@pytest.mark.anyio
async def test_the_offline_model_answers_without_key_and_network() -> None:
    told = await ask(resolve("offline", EMPTY, variables={}))
    assert told.message.content
    assert (told.said("provider"), told.said("stop_reason")) == ("offline", "stop")
    assert (await ask(resolve("offline", EMPTY), api_key="any")).message.content


def test_importing_the_routing_loads_no_client() -> None:
    script = (
        "import sys, loopwright.providers.routing\n"
        "print(*{'openai', 'langchain_openai', 'tiktoken'} & set(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment
    )
    assert (run.stdout.strip(), run.stderr) == ("", "")
