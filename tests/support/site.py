"""A small HTTP site on loopback, in threads of its own: for protocols other than OpenAI's."""

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Page:
    """One answer: a value as JSON, or bytes as they are."""

    content: Any
    status: int = 200
    kind: str = "application/json"


def events(payloads: Iterable[dict[str, Any]], *, named: bool = False, done: bool = False) -> Page:
    """A stream of server-sent events; `named` gives each its `type` as its name."""
    lines = [
        (f"event: {payload['type']}\n" if named else "") + f"data: {json.dumps(payload)}\n\n"
        for payload in payloads
    ]
    text = "".join([*lines, "data: [DONE]\n\n" if done else ""])
    return Page(text.encode(), kind="text/event-stream")


@dataclass
class Site:
    """Answers every request with what `answer` makes of it; keeps the requests in `asked`."""

    answer: Callable[[Asked], Page]
    asked: list[Asked] = field(default_factory=list)

    def __enter__(self) -> Self:
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, self.path, headers, self.rfile.read(length))
                site.asked.append(asked)
                page = site.answer(asked)
                raw = page.content
                content = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
                self.send_response(page.status)
                self.send_header("content-type", page.kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST

            def log_message(self, format: str, *arguments: Any) -> None:
                """Nothing is printed."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"


def spoken(text: str) -> Page:
    """A streamed chat completion of OpenAI's kind."""
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas = [({"role": "assistant", "content": text}, None), ({}, "stop")]
    return events(
        (
            {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            for delta, reason in deltas
        ),
        done=True,
    )


def refused(text: str = "wrong key") -> Page:
    """What OpenAI-like servers answer to a wrong key."""
    return Page({"error": {"message": text, "type": "invalid_request_error"}}, status=401)
