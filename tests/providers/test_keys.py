"""A key may be fixed, asked for with every request, or brought by the request itself."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from loopwright import Agent, Hooks
from loopwright.errors import ModelError
from loopwright.providers.registry import Key, Registry
from loopwright.providers.servers import SERVERS, Server
from loopwright.settings import Environment
from loopwright.state.messages import error_of
from tests.providers.asking import ask
from tests.support.site import Asked, Page, Site, refused, spoken

pytestmark = pytest.mark.anyio


@pytest.fixture
def site() -> Iterator[Site]:
    def answer(asked: Asked) -> Page:
        if asked.headers.get("authorization", "").startswith("Bearer good"):
            return Page({"data": []}) if asked.method == "GET" else spoken("Yes.")
        return refused(f"no: {asked.headers.get('authorization')}")

    with Site(answer) as site:
        yield site


def registry(site: Site, key: Key | None, **row: Any) -> Registry:
    """One provider of its own, as a user adds it."""
    servers = {**SERVERS, "mine": Server(url=f"{site.url}/v1", **row)}
    keys = {} if key is None else {"mine": key}
    return Registry(servers=servers, keys=keys, variables={"MINE_KEY": "good-variable"})


def sent(site: Site) -> list[str]:
    return [asked.headers["authorization"].removeprefix("Bearer ") for asked in site.asked]


async def test_a_key_may_be_a_text_a_secret_or_a_variable(site: Site) -> None:
    for key in (" good-text ", SecretStr("good-secret")):
        assert (await ask(registry(site, key)("mine/m"))).message.content == "Yes."
    found = registry(site, None, key_variable="MINE_KEY")("mine/m")
    assert (await ask(found)).said("provider") == "mine"
    assert sent(site) == ["good-text", "good-secret", "good-variable"]


async def test_a_function_is_asked_for_every_request(site: Site) -> None:
    keys = iter(["good-1", "good-2", "bad-3", "good-4"])

    async def slowly() -> str:
        return next(keys)

    for key in (lambda: next(keys), slowly):
        found = registry(site, key)("mine/m")
        for _ in range(2):
            told = await ask(found)
    assert sent(site) == ["good-1", "good-2", "bad-3", "good-4"]
    assert told.message.content == "Yes."


async def test_a_function_s_key_is_not_told_with_an_error(site: Site) -> None:
    found = registry(site, lambda: "bad-but-secret")("mine/m")
    told = await ask(found)
    assert (error_of(told.message) or {})["kind"] == "auth"
    assert "bad-but-secret" not in str(told)


@pytest.mark.parametrize("said", ["", None])
async def test_a_function_that_gives_no_key_is_an_authentication_error(
    site: Site, said: Any
) -> None:
    told = await ask(registry(site, lambda: said)("mine/m"))
    assert (error_of(told.message) or {})["kind"] == "auth"
    assert site.asked == []


async def test_a_function_that_raises_is_an_authentication_error(site: Site) -> None:
    def locked() -> str:
        raise PermissionError("the vault is locked")

    told = await ask(registry(site, locked)("mine/m"))
    error = error_of(told.message) or {}
    assert error["kind"] == "auth" and "the vault is locked" in error["message"]
    assert site.asked == []


async def test_the_hook_s_key_wins_over_a_function(site: Site) -> None:
    models = registry(site, lambda: "good-function")
    hooks = Hooks(get_api_key=lambda provider: f"good-{provider}")
    async with Agent("mine/m", models=models, hooks=hooks) as agent:
        assert (await agent.prompt("hi")).final_text == "Yes."
        agent.hooks = Hooks()
        await agent.prompt("hi")
    assert sent(site) == ["good-mine", "good-function"]


async def test_a_key_is_validated_with_what_costs_nothing(site: Site) -> None:
    found = registry(site, "good", check="/models")("mine/m")
    await found.validate_auth()
    assert [(asked.method, asked.path) for asked in site.asked] == [("GET", "/v1/models")]
    with pytest.raises(ModelError, match="mine: HTTP 401") as caught:
        await found.validate_auth("bad-of-user")
    assert (caught.value.kind, caught.value.status) == ("auth", 401)
    assert "bad-of-user" not in str(caught.value)


async def test_a_server_without_such_a_path_is_asked_for_one_token(site: Site) -> None:
    found = registry(site, "good")("mine/m")
    with pytest.raises(ModelError) as caught:
        await found.validate_auth("bad")
    assert caught.value.kind == "auth"
    (asked,) = site.asked
    assert (asked.method, asked.json["max_tokens"]) == ("POST", 1)
    assert "stream" not in asked.json


async def test_a_server_that_is_not_there_is_a_connection_error() -> None:
    environment = Environment(base_url="http://127.0.0.1:9/v1", api_key=None)
    with pytest.raises(ModelError) as caught:
        await Registry(environment=environment, variables={})("custom/m").validate_auth()
    assert caught.value.kind == "network"


async def test_the_offline_model_has_nothing_to_validate() -> None:
    await Registry(variables={})("offline").validate_auth()
