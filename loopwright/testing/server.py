"""A real HTTP server on loopback that speaks OpenAI's chat completions from a script.

The answers are described in `script`, their JSON in `completions`, the bytes in `http`.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from langchain_core.messages import AIMessage

from loopwright.clock import Clock, SystemClock
from loopwright.testing.completions import completion, stream
from loopwright.testing.gate import Gate
from loopwright.testing.http import Action, Drop, ServerRequest, read_request, write_answer
from loopwright.testing.script import (
    Pause,
    Response,
    Script,
    ScriptExhausted,
    as_response,
    timeline,
)


@dataclass(frozen=True, kw_only=True)
class HttpReply:
    """An answer with a status, an error as a rule. A body that is not a str is sent as JSON."""

    status: int = 500
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SseReply:
    """A stream of events: dicts are sent as JSON, strings as they are. `done` adds `[DONE]`.

    Waits and breaks may stand between the events.
    """

    events: Sequence[dict[str, Any] | str | Pause | Gate | Drop] = ()
    done: bool = True


@dataclass(frozen=True, kw_only=True)
class RawReply:
    """The body's bytes exactly as given, one network write for each item."""

    writes: Sequence[Action] = ()
    status: int = 200
    content_type: str = "text/event-stream"


Reply = str | AIMessage | Response | HttpReply | SseReply | RawReply
ScriptedReply = Reply | Callable[[Any], Reply]
"""A reply, or a function of the request's JSON body that gives one."""


class OpenAIServer:
    """Answers its n-th POST to `/v1/chat/completions` with the n-th item of `responses`.

    Streams when the request asks for it. Used with `with` or `async with`; it runs in a thread of
    its own, on a free port of loopback. A request past the script's end gets a 400 that says so.
    Each request has its own connection, unless `keep_alive` lets clients use one again.
    """

    def __init__(
        self,
        responses: Iterable[ScriptedReply] = (),
        *,
        clock: Clock | None = None,
        keep_alive: bool = False,
    ) -> None:
        self._script: Script[ServerRequest] = Script(responses)
        self._clock = clock or SystemClock()
        self._keep_alive = keep_alive
        self.connections = 0
        """How many connections clients have made."""
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] = lambda: None
        self._address = ""

    @property
    def requests(self) -> list[ServerRequest]:
        """The completion requests so far, in order."""
        return self._script.requests

    @property
    def base_url(self) -> str:
        """The address for a client, with `/v1`. Only while the server runs."""
        if not self._address:
            raise RuntimeError("the server is not running: use it with `with`")
        return f"{self._address}/v1"

    def start(self) -> None:
        """Listen. `with` does it."""
        ready: Future[str] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        self._address = ready.result()

    def close(self) -> None:
        """Drop what is open and stop listening; a second call does nothing."""
        self._stop()
        if self._thread is not None:
            self._thread.join()
        self._thread, self._stop, self._address = None, lambda: None, ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)

    async def _serve(self, ready: "Future[str]") -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        self._stop = lambda: loop.call_soon_threadsafe(stop.set)
        try:
            server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        except OSError as error:
            ready.set_exception(error)
            return
        ready.set_result(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await stop.wait()
        server.close()  # open connections end with the loop, which cancels their tasks

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (request := await read_request(reader)) is not None:
                finished = await self._answer(request, reader, writer)
                if not (finished and self._keep_alive):
                    break
        except asyncio.CancelledError:
            # The server closes. asyncio would report the end of a cancelled handler as an error.
            return
        finally:
            writer.close()

    async def _answer(
        self,
        request: ServerRequest,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        """Send the reply; whether it was sent to its end."""
        status, headers, actions = _wire(self._reply(request), request)
        if self._keep_alive:
            headers["connection"] = "keep-alive"
        answer = asyncio.create_task(write_answer(writer, status, headers, actions, self._clock))
        left = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait({answer, left}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() or answer.exception() is not None:
                request.gone.open()
                return False
            return answer.result()
        finally:
            for task in (answer, left):
                task.cancel()
            await asyncio.gather(answer, left, return_exceptions=True)

    def _reply(self, request: ServerRequest) -> Reply:
        if (request.method, request.path) != ("POST", "/v1/chat/completions"):
            return _error(404, f"unknown path {request.method} {request.path}")
        try:
            reply: Reply = self._script.take(request, lambda taken: taken.body)
        except ScriptExhausted as error:
            return _error(400, str(error))
        return reply


def _error(status: int, message: str) -> HttpReply:
    return HttpReply(status=status, body={"error": {"message": message, "type": "test_server"}})


def _wire(reply: Reply, request: ServerRequest) -> tuple[int, dict[str, str], Iterator[Action]]:
    """Status, headers and body of a reply."""
    if isinstance(reply, HttpReply):
        is_text = isinstance(reply.body, str)
        body = (reply.body if is_text else json.dumps(reply.body)).encode()
        kind = "text/plain" if is_text else "application/json"
        return reply.status, {"content-type": kind, **reply.headers}, iter([body])
    if isinstance(reply, RawReply):
        return reply.status, {"content-type": reply.content_type}, iter(reply.writes)
    if isinstance(reply, SseReply):
        end = ["[DONE]"] if reply.done else []
        return _events([*reply.events, *end])
    response = as_response(reply)
    asked = request.body if isinstance(request.body, dict) else {}
    if asked.get("stream"):
        return _events(stream(response, asked))
    body = json.dumps(completion(response, asked)).encode()
    steps = timeline(response, [body])
    return 200, {"content-type": "application/json"}, map(_action, steps)


def _events(events: Iterable[Any]) -> tuple[int, dict[str, str], Iterator[Action]]:
    return 200, {"content-type": "text/event-stream"}, map(_action, events)


def _action(step: Any) -> Action:
    """A payload becomes an event; whatever error a script raises, a server can only break off."""
    if isinstance(step, Exception):
        return Drop()
    if isinstance(step, dict | str):
        text = step if isinstance(step, str) else json.dumps(step)
        return f"data: {text}\n\n".encode()
    action: Action = step
    return action
