"""Tokens are refreshed once for everybody, ahead of their end and after a 401, and never told."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from loopwright import Agent
from loopwright.errors import TokenError
from loopwright.events import to_json
from loopwright.providers.contract import Provider
from loopwright.providers.oauth import OAuthToken, RefreshGrant, TokenSource
from loopwright.providers.registry import Registry
from loopwright.settings import Environment
from loopwright.state.messages import error_of
from loopwright.testing import VirtualClock
from tests.providers.asking import ask
from tests.support.site import Asked, Page, Site, refused, spoken

OLD, NEW = "old-access-token", "new-access-token"
OLD_REFRESH, NEW_REFRESH = "old-refresh-token", "new-refresh-token"
SECRETS = (OLD, NEW, OLD_REFRESH, NEW_REFRESH)
NOW = 1_000_000.0


class World:
    """A site with a token endpoint and a chat server that takes one token only."""

    def __init__(self) -> None:
        self.accepted = NEW
        self.grant: Callable[[], Page] = lambda: Page(
            {"access_token": NEW, "refresh_token": NEW_REFRESH, "expires_in": 3600}
        )
        self.clock = VirtualClock(NOW)
        self.site = Site(self._answer)

    def _answer(self, asked: Asked) -> Page:
        if asked.path == "/token":
            return self.grant()
        taken = asked.headers.get("authorization") == f"Bearer {self.accepted}"
        return spoken("Welcome.") if taken else refused(f"bad {asked.headers['authorization']}")

    def at(self, path: str) -> list[Asked]:
        return [asked for asked in self.site.asked if asked.path == path]

    def source(self, expires_at: float | None, **given: Any) -> TokenSource:
        grant = RefreshGrant(url=f"{self.site.url}/token", client_id="app", clock=self.clock)
        token = OAuthToken(OLD, OLD_REFRESH, expires_at)
        return TokenSource(token, grant, clock=self.clock, **given)

    def registry(self, source: TokenSource) -> Registry:
        environment = Environment(base_url=f"{self.site.url}/v1", api_key=None)
        return Registry(environment=environment, keys={"custom": source}, variables={})

    def provider(self, source: TokenSource) -> Provider:
        return self.registry(source)("custom/m")


def stored(folder: Path) -> str:
    """All that was written into a folder."""
    return b"".join(file.read_bytes() for file in folder.iterdir()).decode("utf-8", "replace")


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    with world.site:
        yield world


@pytest.mark.anyio
async def test_fifty_runs_at_once_refresh_once(world: World, tmp_path: Path) -> None:
    source = world.source(NOW - 1)
    database = tmp_path / "t.db"
    async with Agent("custom/m", models=world.registry(source), database=database) as agent:
        runs = [agent.prompt("hi", thread=f"thread-{n}") for n in range(50)]
        results = await asyncio.gather(*runs)
    assert {result.final_text for result in results} == {"Welcome."}
    (request,) = world.at("/token")
    assert parse_qs(request.body.decode()) == {
        "grant_type": ["refresh_token"],
        "refresh_token": [OLD_REFRESH],
        "client_id": ["app"],
    }
    assert len(world.at("/v1/chat/completions")) == 50


def test_event_loops_share_one_refresh(world: World) -> None:
    source = world.source(NOW - 1)
    gate = threading.Barrier(4)
    given: list[str] = []

    async def several() -> None:
        gate.wait(30)
        given.extend(await asyncio.gather(*(source.current() for _ in range(5))))

    threads = [threading.Thread(target=lambda: asyncio.run(several())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert given == [NEW] * 20
    assert len(world.at("/token")) == 1


@pytest.mark.anyio
async def test_a_token_is_refreshed_before_it_ends(world: World) -> None:
    source = world.source(NOW + 3600)
    world.accepted = OLD
    assert (await ask(world.provider(source))).message.content == "Welcome."
    assert world.at("/token") == []
    world.clock.advance(3600 - 59)
    world.accepted = NEW
    assert (await ask(world.provider(source))).message.content == "Welcome."
    assert len(world.at("/token")) == 1
    assert source.token == OAuthToken(NEW, NEW_REFRESH, NOW + 2 * 3600 - 59)


@pytest.mark.anyio
async def test_a_refused_token_is_refreshed_and_the_request_sent_once_more(world: World) -> None:
    provider = world.provider(world.source(None))
    told = await asyncio.gather(*(ask(provider) for _ in range(10)))
    assert {each.message.content for each in told} == {"Welcome."}
    assert len(world.at("/token")) == 1


@pytest.mark.anyio
async def test_a_token_that_stays_refused_is_an_authentication_error(world: World) -> None:
    world.accepted = "somebody-else's"
    told = await ask(world.provider(world.source(None)))
    assert (error_of(told.message) or {})["kind"] == "auth"
    assert len(world.at("/token")) == 1
    assert len(world.at("/v1/chat/completions")) == 2
    assert not any(secret in str(told) for secret in SECRETS)


@pytest.mark.anyio
async def test_a_refresh_that_fails_is_told_without_any_token(world: World, tmp_path: Path) -> None:
    said = f"token {OLD_REFRESH} is revoked"
    world.grant = lambda: Page({"error": "invalid_grant", "error_description": said}, 400)
    source = world.source(NOW - 1)
    seen: list[str] = []
    database, trace = tmp_path / "t.db", tmp_path / "trace.jsonl"
    agent = Agent("custom/m", models=world.registry(source), database=database, trace=trace)
    async with agent:
        agent.subscribe(lambda event: seen.append(str(to_json(event))))
        result = await agent.prompt("hi")
    assert result.error is not None and result.error["kind"] == "auth"
    assert "invalid_grant: token *** is revoked; sign in again" in result.error["message"]
    assert world.at("/v1/chat/completions") == []
    written = "".join(seen) + str(result) + stored(tmp_path)
    assert not any(secret in written for secret in SECRETS)


@pytest.mark.anyio
async def test_new_tokens_are_taken_out_of_traces(world: World, tmp_path: Path) -> None:
    source = world.source(NOW - 1)
    trace = tmp_path / "trace.jsonl"

    def leak() -> str:
        """Shows what no tool should."""
        return " ".join(SECRETS)

    async with Agent(
        "custom/m", [leak], models=world.registry(source), database=tmp_path / "t.db", trace=trace
    ) as agent:
        await agent.prompt("hi")
        await agent.prompt(" ".join(SECRETS))
    assert not any(secret in trace.read_text() for secret in SECRETS)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("page", "kind"),
    [
        (Page({"error": "invalid_client"}, 401), "auth"),
        (Page({"error": "slow_down"}, 429), "rate_limit"),
        (Page(b"<html>", 503), "server_error"),
        (Page({"token_type": "bearer"}), "auth"),
        (Page([1]), "auth"),
    ],
)
async def test_the_kind_of_a_failed_refresh_says_whether_it_may_be_tried_again(
    world: World, page: Page, kind: str
) -> None:
    world.grant = lambda: page
    with pytest.raises(TokenError) as caught:
        await world.source(NOW - 1).current()
    assert caught.value.kind == kind
    assert ("sign in again" in str(caught.value)) == (kind == "auth")


@pytest.mark.anyio
async def test_a_token_endpoint_that_cannot_be_reached_is_a_connection_error() -> None:
    grant = RefreshGrant(url="http://127.0.0.1:9/token", client_id="app")
    with pytest.raises(TokenError) as caught:
        await TokenSource(OAuthToken(OLD, OLD_REFRESH, 1.0), grant).current()
    assert caught.value.kind == "network"


@pytest.mark.anyio
async def test_a_failed_early_refresh_leaves_the_token_in_use(world: World) -> None:
    world.grant = lambda: Page({}, 500)
    world.accepted = OLD
    source = world.source(NOW + 30)
    assert (await ask(world.provider(source))).message.content == "Welcome."
    world.clock.advance(31)
    told = await ask(world.provider(source))
    assert (error_of(told.message) or {})["kind"] == "server_error"


@pytest.mark.anyio
async def test_who_stops_waiting_does_not_stop_the_refresh() -> None:
    begun, go_on = threading.Event(), threading.Event()
    kept: list[OAuthToken] = []

    def refresh(old: OAuthToken) -> OAuthToken:
        begun.set()
        go_on.wait(30)
        return OAuthToken(NEW)

    source = TokenSource(OAuthToken(OLD, OLD_REFRESH, 1.0), refresh, changed=kept.append)
    leaving = asyncio.create_task(source.current())
    await asyncio.to_thread(begun.wait, 30)
    leaving.cancel()
    staying = asyncio.create_task(source.current())
    await asyncio.sleep(0)
    go_on.set()
    assert await staying == NEW
    assert leaving.cancelled()
    assert kept == [OAuthToken(NEW)]


@pytest.mark.anyio
async def test_without_a_refresh_token_the_user_has_to_sign_in() -> None:
    async def never(old: OAuthToken) -> OAuthToken:
        raise AssertionError("nothing to refresh with")

    with pytest.raises(TokenError, match="no refresh token; sign in again"):
        await TokenSource(OAuthToken(OLD, None, 1.0), never).current()


@pytest.mark.anyio
async def test_a_server_that_keeps_the_refresh_token_does_not_repeat_it(world: World) -> None:
    world.grant = lambda: Page({"access_token": NEW})
    source = world.source(NOW - 1)
    await source.current()
    assert source.token == OAuthToken(NEW, OLD_REFRESH, None)


def test_no_repr_shows_a_token() -> None:
    shown = repr(OAuthToken(OLD, OLD_REFRESH, 1.0)) + repr(
        RefreshGrant(url="https://x", client_id="app", client_secret=NEW)
    )
    assert not any(secret in shown for secret in SECRETS)
