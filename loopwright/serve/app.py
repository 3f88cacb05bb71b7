"""The HTTP application: LangServe's routes for one graph, and the server's outermost layer.

What the routes carry is in `view`; listening on an address is `server`'s.
"""

import logging
from collections.abc import Sequence

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from langserve import add_routes
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loopwright.agent import Agent
from loopwright.graph.entrance import AgentGraph
from loopwright.serve.disconnect import CancelOnDisconnect
from loopwright.serve.foreign import RefuseForeignPages
from loopwright.serve.refusals import UNEXPECTED, invalid, refusal
from loopwright.serve.threads import check_body, with_thread
from loopwright.serve.view import ServedGraph

_log = logging.getLogger("loopwright.serve")


def create_app(
    served: Agent | AgentGraph, *, path: str = "", hosts: Sequence[str] | None = None
) -> FastAPI:
    """A FastAPI application with LangServe's routes for an agent or its graph below `path`.

    The agent is not closed with the application. `hosts` are the names under which the server may
    be asked for (`*.example.com` is one); None allows any. docs/serving.md says what goes in and
    out.
    """
    graph = served.graph if isinstance(served, Agent) else served
    # The documentation pages of FastAPI load scripts from elsewhere; the playground does not.
    app = FastAPI(title="Loopwright", docs_url=None, redoc_url=None)
    app.state.served = served  # an agent that nobody holds any more closes its database
    app.add_exception_handler(RequestValidationError, _refuse_shape)  # type: ignore[arg-type]
    app.add_middleware(CancelOnDisconnect)
    app.add_middleware(Answers)
    app.add_middleware(RefuseForeignPages)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=None if hosts is None else [*hosts])

    @app.get("/ok", include_in_schema=False)
    async def ok() -> dict[str, bool]:
        return {"ok": True}

    @app.get("/", include_in_schema=False)
    async def home() -> RedirectResponse:
        return RedirectResponse(f"{path}/playground/")

    add_routes(
        app,
        ServedGraph.of(graph),
        path=path,
        per_req_config_modifier=with_thread,
        dependencies=[Depends(check_body)],
    )
    return app


async def _refuse_shape(request: Request, error: RequestValidationError) -> JSONResponse:
    return JSONResponse({"detail": invalid(error.errors())}, 422)


class Answers:
    """ASGI middleware: every failure becomes a status and one line of JSON, and a line in the log.

    An answer begins with its first piece: a stream that fails before it has said anything is
    answered with an error's status too. Later the stream just ends behind LangServe's error event.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application; this is the place that catches everything."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        answer = _Answer(send)
        try:
            await self.app(scope, receive, answer.send)
        except Exception as error:
            status, detail = refusal(error)
            if status >= UNEXPECTED[0]:
                _log.exception("%s %s failed", scope["method"], scope["path"])
            if answer.begun:
                await answer.end()
            else:
                await JSONResponse({"detail": detail}, status)(scope, receive, send)


class _Answer:
    """An answer on its way out, held back until it has something to say."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._failed = False
        self.begun = False

    async def send(self, message: Message) -> None:
        """Pass a message on, the start together with the first piece that is no failure."""
        if message["type"] == "http.response.start":
            self._start = message
        elif self._start is None:
            await self._send(message)
        elif not self._failed and not message.get("body", b"").startswith(b"event: error"):
            start, self._start = self._start, None
            self.begun = True
            await self._send(start)
            await self._send(message)
        else:
            self._failed = True

    async def end(self) -> None:
        """Finish an answer that was broken off."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
