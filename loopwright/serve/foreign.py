"""Requests that a web page of someone else sends to a server on this machine: they are refused.

Who may reach the server at all is decided by the address it listens on.
"""

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class RefuseForeignPages:
    """ASGI middleware: a browser says in `Origin` which page a request is from, and a page may send
    one to any address without asking. Programs say nothing there and pass.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Compare the page's host with the host that the request is for."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            origin = headers.get("origin")
            if origin is not None and origin.partition("://")[2] != headers.get("host"):
                detail = "requests from other sites' pages are refused"
                return await JSONResponse({"detail": detail}, 403)(scope, receive, send)
        await self.app(scope, receive, send)
