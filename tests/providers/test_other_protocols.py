"""Anthropic and Google by name, with their real clients, on a site that speaks their protocols; and
Azure, whose protocol is OpenAI's at another address."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from loopwright import Agent
from loopwright.errors import ConfigurationError, MissingExtraError, MissingKeyError, ModelError
from loopwright.providers.contract import Provider
from loopwright.providers.oauth import OAuthToken, TokenSource
from loopwright.providers.registry import Key, Registry
from loopwright.providers.servers import SERVERS
from loopwright.state.messages import error_of
from tests.providers.asking import ask, tools
from tests.support.site import Asked, Page, Site, events, refused, spoken

pytestmark = pytest.mark.anyio

CALLED: list[AnyMessage] = [
    HumanMessage("weather?"),
    AIMessage("", tool_calls=[{"name": "look", "args": {"at": "x"}, "id": "c1"}]),
    ToolMessage("sunny", tool_call_id="c1", name="look"),
]


def at(site: Site, provider: str, key: Key = "good-key", model: str = "m") -> Provider:
    """A provider of the table, at the site."""
    servers = {provider: replace(SERVERS[provider], url=site.url, url_variable=None)}
    return Registry(servers=servers, keys={provider: key}, variables={})(f"{provider}/{model}")


def anthropic_stream(blocks: Sequence[dict[str, Any]], reason: str) -> Page:
    """A streamed message; each block is sent as an empty one and one delta."""
    usage = {"input_tokens": 11, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    payloads: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage},
        }
    ]
    for index, block in enumerate(blocks):
        empty, delta = dict(block), {"type": "text_delta", "text": block.get("text")}
        if block["type"] == "tool_use":
            empty["input"] = {}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            empty["text"] = ""
        payloads += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": reason, "stop_sequence": None}
    payloads += [
        {"type": "message_delta", "delta": end, "usage": usage | {"output_tokens": 7}},
        {"type": "message_stop"},
    ]
    return events(payloads, named=True)


def google_stream(parts: Sequence[dict[str, Any]], reason: str | None = "STOP") -> Page:
    """A streamed answer: one response for each part."""
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    payloads: list[dict[str, Any]] = [
        {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}],
            "modelVersion": "m",
        }
        for part in parts
    ]
    if reason:
        payloads[-1]["candidates"][0]["finishReason"] = reason
        payloads[-1]["usageMetadata"] = usage
    return events(payloads)


ANTHROPIC_ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
ANTHROPIC_REFUSAL = Page(
    {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}},
    status=401,
)
GOOGLE_REFUSAL = Page(
    {"error": {"code": 401, "message": "API key not valid.", "status": "UNAUTHENTICATED"}},
    status=401,
)
ANSWERS = {
    "anthropic": anthropic_stream(
        [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "y"}},
        ],
        "tool_use",
    ),
    "google": google_stream(
        [{"text": "I look."}, {"functionCall": {"name": "look", "args": {"at": "y"}}}]
    ),
}
TEXTS = {
    "anthropic": anthropic_stream([{"type": "text", "text": "Done."}], "end_turn"),
    "google": google_stream([{"text": "Done."}]),
}
REFUSALS = {"anthropic": ANTHROPIC_REFUSAL, "google": GOOGLE_REFUSAL}
KEY_HEADERS = {"anthropic": "x-api-key", "google": "x-goog-api-key"}
both = pytest.mark.parametrize("provider", ["anthropic", "google"])


@both
async def test_text_a_call_and_usage_are_streamed(provider: str) -> None:
    with Site(lambda asked: ANSWERS[provider]) as site:
        found = at(site, provider)
        told = await ask(found, *CALLED, system_prompt="Be brief.", tools=tools("look"))
        await asyncio.sleep(0)
        (asked,) = site.asked
    assert error_of(told.message) is None, told.message
    assert told.message.text == "I look."
    (call,) = told.message.tool_calls
    assert (call["name"], call["args"]) == ("look", {"at": "y"}) and call["id"]
    assert told.said("provider") == provider
    usage = told.message.usage_metadata
    assert usage is not None
    assert (usage["input_tokens"], usage["output_tokens"]) == (11, 7)
    assert asked.headers[KEY_HEADERS[provider]] == "good-key"
    assert "Be brief." in str(asked.json) and "sunny" in str(asked.json)


@both
async def test_an_agent_runs_its_tools_with_it(provider: str) -> None:
    pages = iter([ANSWERS[provider], TEXTS[provider]])

    def look(at: str) -> str:
        """Look at a place."""
        return f"{at} is sunny"

    with Site(lambda asked: next(pages)) as site:
        found = at(site, provider)
        async with Agent("p", [look], models=lambda name: found) as agent:
            result = await agent.prompt("weather?")
    assert result.final_text == "Done."
    assert "y is sunny" in str(site.asked[1].json)
    assert result.usage["input_tokens"] == 22


@both
async def test_a_refused_key_is_an_authentication_error_and_is_asked_once(provider: str) -> None:
    with Site(lambda asked: REFUSALS[provider]) as site:
        told = await ask(at(site, provider, key="bad-secret-key"))
        assert (error_of(told.message) or {})["kind"] == "auth"
        assert len(site.asked) == 1
        assert "bad-secret-key" not in str(told)
        with pytest.raises(ModelError) as caught:
            await at(site, provider, key="bad-secret-key").validate_auth()
    assert (caught.value.kind, site.asked[-1].method) == ("auth", "GET")
    assert SERVERS[provider].check == site.asked[-1].path.partition("?")[0]


@both
async def test_a_key_that_is_taken_is_valid(provider: str) -> None:
    page = Page({"data": [], "models": [], "has_more": False, "first_id": None, "last_id": None})
    with Site(lambda asked: page) as site:
        await at(site, provider).validate_auth()


@both
async def test_tokens_are_sent_as_a_bearer(provider: str) -> None:
    def answer(asked: Asked) -> Page:
        taken = asked.headers.get("authorization") == "Bearer new"
        return TEXTS[provider] if taken else REFUSALS[provider]

    source = TokenSource(OAuthToken("old", "r"), lambda old: OAuthToken("new", "r"))
    with Site(answer) as site:
        told = await ask(at(site, provider, key=source))
    assert told.message.text == "Done."
    assert len(site.asked) == 2
    assert not any(KEY_HEADERS[provider] in asked.headers for asked in site.asked)


async def test_an_error_in_a_stream_of_anthropic_s_is_told_by_its_kind() -> None:
    start = {"type": "text", "text": "I lo"}
    page = anthropic_stream([start], "end_turn").content
    cut = page[: page.index(b"event: content_block_stop")]
    error = events([ANTHROPIC_ERROR], named=True).content
    with Site(lambda asked: Page(cut + error, kind="text/event-stream")) as site:
        told = await ask(at(site, "anthropic"))
    assert (error_of(told.message) or {})["kind"] == "overloaded"


async def test_a_stream_of_google_s_that_ends_early_is_a_failure() -> None:
    with Site(lambda asked: google_stream([{"text": "I lo"}], None)) as site:
        told = await ask(at(site, "google"))
    assert (error_of(told.message) or {})["kind"] == "protocol"


@both
async def test_each_event_loop_has_connections_of_its_own(provider: str) -> None:
    with Site(lambda asked: TEXTS[provider]) as site:
        found = at(site, provider)

        async def once() -> str:
            told = await ask(found)
            await found.aclose()  # type: ignore[attr-defined]
            return told.message.text

        texts = [await once(), await asyncio.to_thread(lambda: asyncio.run(once()))]
    assert texts == ["Done.", "Done."]


@pytest.mark.parametrize(
    ("provider", "module"),
    [("anthropic", "langchain_anthropic"), ("google", "langchain_google_genai")],
)
def test_a_missing_package_names_its_extra(
    provider: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"loopwright\[{provider}\]"):
        Registry(keys={provider: "k"}, variables={})(f"{provider}/m")


def azure(site: Site, **variables: str) -> Provider:
    given = {"AZURE_OPENAI_ENDPOINT": f"{site.url}/", "AZURE_OPENAI_API_KEY": "good-key"}
    return Registry(variables={**given, **variables})("azure/my deployment")


async def test_an_azure_deployment_is_reached_over_the_v1_api() -> None:
    with Site(lambda asked: spoken("Hi.")) as site:
        assert (await ask(azure(site))).message.content == "Hi."
        (asked,) = site.asked
    assert asked.path == "/openai/v1/chat/completions"
    assert asked.json["model"] == "my deployment"
    assert asked.headers["authorization"] == "Bearer good-key"


async def test_an_azure_deployment_with_an_api_version_has_an_address_of_its_own() -> None:
    def answer(asked: Asked) -> Page:
        if asked.headers.get("api-key") != "good-key":
            return refused()
        return Page({"data": []}) if asked.method == "GET" else spoken("Hi.")

    with Site(answer) as site:
        found = azure(site, OPENAI_API_VERSION="2024-10-21")
        assert (await ask(found)).message.content == "Hi."
        await found.validate_auth()
        with pytest.raises(ModelError):
            await found.validate_auth("bad")
        posted, got, _ = site.asked
    assert posted.path == (
        "/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21"
    )
    assert got.path == "/openai/models?api-version=2024-10-21"
    assert "authorization" not in posted.headers


def test_azure_without_an_address_or_a_key_says_what_to_set() -> None:
    with pytest.raises(ConfigurationError, match="AZURE_OPENAI_ENDPOINT"):
        Registry(variables={"AZURE_OPENAI_API_KEY": "k"})("azure/m")
    with pytest.raises(MissingKeyError, match="AZURE_OPENAI_API_KEY"):
        Registry(variables={"AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com"})("azure/m")
