"""Kind `retry`: a request that fails with a status, or with an exception of the transport."""

import ssl
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import httpx2

from loopwright.testing import HttpReply
from loopwright.testing.server import Reply
from tests.conformance.asking import LONG, Asked, ask, client
from tests.conformance.checks import unmet
from tests.conformance.failing import FAILURE
from tests.conformance.running import Case, unknown_keys


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


EXCEPTIONS: dict[str, Callable[[], Exception]] = {
    "read_timeout": lambda: httpx2.ReadTimeout("timed out"),
    "write_timeout": lambda: httpx2.WriteTimeout("timed out"),
    "connect_timeout": lambda: httpx2.ConnectTimeout("timed out"),
    "pool_timeout": lambda: httpx2.PoolTimeout("timed out"),
    "connection_reset": lambda: _caused(
        httpx2.ReadError("read failed"), ConnectionResetError(104, "Connection reset by peer")
    ),
    "connection_refused": lambda: _caused(
        httpx2.ConnectError("connect failed"), ConnectionRefusedError(111, "Connection refused")
    ),
    "broken_pipe": lambda: _caused(httpx2.WriteError("failed"), BrokenPipeError(32, "Broken pipe")),
    "dns_failure": lambda: httpx2.ConnectError("[Errno -2] Name or service not known"),
    "incomplete_chunked_read": lambda: httpx2.RemoteProtocolError(
        "peer closed connection without sending complete message body (incomplete chunked read)"
    ),
    "server_disconnected": lambda: httpx2.RemoteProtocolError(
        "Server disconnected without sending a response."
    ),
    "tls_certificate_invalid": lambda: _caused(
        httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"),
        ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed certificate"),
    ),
    "unsupported_url_scheme": lambda: httpx2.UnsupportedProtocol(
        "Request URL has an unsupported protocol 'ftp://'."
    ),
    "invalid_url": lambda: httpx2.InvalidURL("Invalid port: 'x'"),
}
"""What a transport raises, by the words of the cases."""


async def drive(case: Case) -> Sequence[str]:
    """Let the first request fail so, and answer the second."""
    known = ["status", "headers", "body", "now_utc", "exception"]
    unknown = unknown_keys("input", case.input, known)
    unknown += unknown_keys(
        "exceptions", {case.input.get("exception", "read_timeout"): 0}, EXCEPTIONS
    )
    return unknown or unmet(case.expect, await failing(case.input), FAILURE)


async def failing(given: dict[str, Any]) -> Asked:
    """The run of a prompt whose first request fails."""
    if "exception" in given:
        error = EXCEPTIONS[given["exception"]]()
        http = httpx2.AsyncClient(transport=_Failing(error))
        return await ask(
            lambda number, body: "Done.", model=lambda url: client(url, http_async_client=http)
        )
    failed = HttpReply(
        status=given["status"], headers=given.get("headers", {}), body=given.get("body", "")
    )
    now = datetime.fromisoformat(given.get("now_utc", "2026-01-01T00:00:00Z")).timestamp()

    def reply(number: int, body: dict[str, Any]) -> Reply:
        return "Done." if number else failed

    return await ask(reply, now=now, history=LONG)


class _Failing(httpx2.AsyncHTTPTransport):
    """Raises for the first request; the others are sent."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error: Exception | None = error

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        error, self._error = self._error, None
        if error is not None:
            raise error
        return await super().handle_async_request(request)
