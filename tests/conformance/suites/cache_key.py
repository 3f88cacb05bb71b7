"""Suite `cache_key`: the key of a thread's requests, in the body that a server got."""

from collections.abc import Sequence
from typing import Any

from loopwright.providers.contract import ModelRequest
from loopwright.providers.dialect import Dialect
from tests.conformance.running import Case, difference, unknown_keys
from tests.conformance.sending import served


async def drive(case: Case) -> Sequence[str]:
    """Ask once in this session and once in each of the others, and compare the keys."""
    given, expect = case.input, case.expect
    unknown = unknown_keys("input", given, ["session_id", "limit", "distinct_from"])
    known = ["passthrough", "none", "max_length", "reference"]
    if unknown := unknown + unknown_keys("expected", expect, known):
        return unknown
    session, limit = given["session_id"], given["limit"]
    key = await _key(session, limit)
    others = [await _key(other, limit) for other in given["distinct_from"]]
    return [
        *difference("the key is none", key is None, expect["none"]),
        *difference("passthrough", key == session and bool(key), expect["passthrough"]),
        *difference("fits", len(key or "") <= expect["max_length"], True),
        *difference("the same again", await _key(session, limit), key),
        *difference("distinct", key is None or key not in others, True),
    ]


async def _key(session: str | None, limit: int) -> Any:
    """`prompt_cache_key` in the request of a run on the thread of this id; of no thread, asked of
    the provider itself."""
    dialect = Dialect(cache_key=limit)
    async with served(["fine"], dialect=dialect, thread=session or "none") as (agent, server):
        if session:
            await agent.prompt("go")
        else:
            provider = agent._models.resolve("test")
            request = ModelRequest(
                model="m", system_prompt="go", messages=[], session=session or ""
            )
            assert [event async for event in provider.stream(request)]
        return server.requests[0].body.get("prompt_cache_key")
