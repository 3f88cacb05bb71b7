"""Which thread a request is for: as its body or its header says.

What a thread holds, and who may run it, is decided behind the entrance of the graph.
"""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from loopwright.errors import InputError

THREAD_HEADER = "X-Thread-Id"
"""Names the thread of a request whose body names none."""


async def with_thread(config: dict[str, Any], request: Request) -> dict[str, Any]:
    """The config of one input with its thread; without any the run begins a thread of its own."""
    thread = _named(config) or request.headers.get(THREAD_HEADER)
    return {**config, "configurable": {"thread_id": thread} if thread else {}}


async def check_body(request: Request) -> None:
    """Check what LangServe does not: that a body is JSON, and which threads a batch would run on.

    Raises InputError before anything runs.
    """
    if request.method != "POST":
        return
    try:
        body = await request.json()
    except ValueError as error:
        raise InputError("the body is not JSON") from error
    if request.url.path.endswith("/batch"):
        _refuse_shared_thread(request, body)


def _refuse_shared_thread(request: Request, body: Any) -> None:
    inputs = body.get("inputs") if isinstance(body, dict) else None
    if not isinstance(inputs, list):
        raise InputError("a batch has 'inputs', a list with one input for each run")
    given = body.get("config")
    configs = given if isinstance(given, list) else [given] * len(inputs)
    named = [_named(config) or request.headers.get(THREAD_HEADER) for config in configs]
    threads = [thread for thread in named if thread]
    if len({*threads}) < len(threads):
        raise InputError(
            "a batch runs its inputs side by side: give each a thread of its own, "
            "by a list of configs, or none"
        )


def _named(config: Any) -> str | None:
    """The thread that a config names, if it has the shape of one."""
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    thread = configurable.get("thread_id") if isinstance(configurable, Mapping) else None
    return thread if isinstance(thread, str) and thread else None
