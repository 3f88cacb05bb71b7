"""A small HTTP/1.1 layer on asyncio for the test server: requests in, chunked answers out.

It is exact where faults are scripted (each piece is one write) and knows nothing of OpenAI.
"""

import asyncio
import json
import socket
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from loopwright.clock import Clock
from loopwright.testing.gate import Gate
from loopwright.testing.script import Pause


@dataclass(frozen=True)
class Drop:
    """The connection breaks at this point: with a TCP reset, or quietly (`reset=False`)."""

    reset: bool = True


Action = bytes | Pause | Gate | Drop
"""One step of an answer's body: bytes to send in one piece, a wait, or a break."""


@dataclass(eq=False)
class ServerRequest:
    """A request as the server got it. `gone` opens if the client left before the answer's end."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: Any
    """The JSON value that was sent, None if it was none."""
    raw: bytes = b""
    """The body as it came."""
    gone: Gate = field(default_factory=Gate)


async def read_request(reader: asyncio.StreamReader) -> ServerRequest | None:
    """The next request of a connection, None if it was closed."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    return ServerRequest(method, path, headers, body, raw)


async def write_answer(
    writer: asyncio.StreamWriter,
    status: int,
    headers: Mapping[str, str],
    actions: Iterable[Action],
    clock: Clock,
) -> bool:
    """Send a chunked answer, each bytes action as one piece. False if a break cut it short.

    Raises ConnectionError if the client has left.
    """
    known = status in HTTPStatus.__members__.values()
    reason = HTTPStatus(status).phrase if known else "Unknown"
    fields = {"connection": "close", **headers, "transfer-encoding": "chunked"}
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {fields[name]}" for name in fields)]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    for action in actions:
        if isinstance(action, Pause):
            await clock.sleep(action.seconds)
        elif isinstance(action, Gate):
            await action.wait()
        elif isinstance(action, Drop):
            if action.reset:
                _reset(writer)
            return False
        elif action:
            writer.write(f"{len(action):x}\r\n".encode() + action + b"\r\n")
            await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a TCP reset: closing a socket that may not linger sends one."""
    no_lingering = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_lingering)
    writer.transport.abort()
