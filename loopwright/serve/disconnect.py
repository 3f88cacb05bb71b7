"""A client that leaves before its answer is ready: what was being made for it is cancelled.

LangServe does this for its streams only. What a cancelled run leaves behind is the transcript's.
"""

import asyncio
from collections import deque
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class CancelOnDisconnect:
    """ASGI middleware: cancels the application's work on a request whose client has gone."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the whole request first: whatever is received after it is the disconnect."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        request = await _whole(receive)
        gone: asyncio.Future[Any] = asyncio.ensure_future(receive())

        async def replay() -> Message:
            return request.popleft() if request else await asyncio.shield(gone)

        work = asyncio.ensure_future(self.app(scope, replay, send))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
        finally:
            gone.cancel()
            await _ended(work)


async def _whole(receive: Receive) -> deque[Message]:
    messages = deque([await receive()])
    while messages[-1].get("more_body"):
        messages.append(await receive())
    return messages


async def _ended(work: "asyncio.Future[Any]") -> None:
    """Cancel the work if it goes on, and wait for its end; nobody is left to hear how it ended."""
    if not work.done():
        work.cancel()
        await asyncio.wait({work})
        if not work.cancelled():
            work.exception()
