"""What an exception of any client carries: status, codes, text, headers, body, and where it arose.

Nothing of a client is imported, and nothing is judged here: that is `failures`.
"""

import errno
import re
from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from json import JSONDecodeError
from traceback import walk_tb
from typing import Any

_CLIENTS = re.compile(
    r"^(openai|anthropic|google|httpx2?|httpcore2?|h11|h2|aiohttp|requests|urllib3|grpc"
    r"|boto\w*|ollama|groq|mistralai|pydantic\w*|json|langchain_\w+)(\.|$)"
)
"""Modules that read what servers send."""


@dataclass(frozen=True)
class Facts:
    """An exception as far as it can be read."""

    error: BaseException
    status: int | None
    words: tuple[str, ...]
    """Machine-readable codes and types, as they were written."""

    text: str
    """The server's message if there is one, else the exception's with its cause."""

    headers: Mapping[str, str]
    """Names in lower case; empty if no answer came."""

    body: Any
    """The JSON of the answer, None if there is none."""

    names: tuple[str, ...]
    """Names of classes: the exception's own and those above it, then those of its causes."""

    @property
    def is_told(self) -> bool:
        """Whether a server wrote it: it has a status or a body."""
        return self.status is not None or isinstance(self.body, dict)

    @property
    def is_from_client(self) -> bool:
        """Whether it arose in code that reads what servers send."""
        frames = [frame for frame, _ in walk_tb(self.error.__traceback__)]
        return bool(frames) and bool(_CLIENTS.match(str(frames[-1].f_globals.get("__name__"))))


def facts_of(error: BaseException) -> Facts:
    """Read an exception and what it was caused by."""
    chain = list(_chain(error))
    body = getattr(error, "body", None)
    return Facts(
        error=error,
        status=_status(error),
        words=tuple(word for link in chain for word in _words(link)),
        text=_text(error, chain),
        headers=_headers(error),
        body=body,
        names=tuple(family.__name__ for link in chain for family in type(link).__mro__),
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and its causes. By a cancelled task clients make timeouts: it says nothing."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        if seen and isinstance(link, CancelledError):
            return
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _status(error: BaseException) -> int | None:
    """The HTTP status: on the error, on its response, or as the code of an error in a stream."""
    response, body = getattr(error, "response", None), getattr(error, "body", None)
    inside = body.get("code") if isinstance(body, dict) else None
    values = [getattr(error, "status_code", None), getattr(response, "status_code", None)]
    for value in (*values, getattr(error, "code", None), inside):
        if isinstance(value, str) and re.fullmatch(r"[45]\d\d", value):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
            return int(value)
    return None


def _words(error: BaseException) -> Iterator[str]:
    body = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, dict) else None
    for holder in (error, body, inner):
        for name in ("code", "type", "status"):
            value = holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)
            if isinstance(value, str) or (isinstance(value, int) and value >= 1000):
                yield str(value)
    if isinstance(error, OSError) and (code := errno.errorcode.get(error.errno or 0)):
        yield code


def _headers(error: BaseException) -> dict[str, str]:
    found: Any = getattr(getattr(error, "response", None), "headers", None)
    if not hasattr(found, "items"):
        return {}
    return {str(name).lower(): str(value) for name, value in found.items()}


def _text(error: BaseException, chain: list[BaseException]) -> str:
    body = getattr(error, "body", None)
    for holder in (body, body.get("error") if isinstance(body, dict) else None):
        if isinstance(holder, dict) and isinstance(holder.get("message"), str):
            return str(holder["message"])
        if isinstance(holder, str) and holder and holder is not body:
            return holder
    if isinstance(error, JSONDecodeError):
        return f"the server sent broken JSON: {error.msg}"
    if isinstance(error, ValueError) and "No generation chunks" in str(error):
        return "the server sent an empty answer"
    text = str(getattr(error, "message", "") or error) or type(error).__name__
    cause = str(chain[-1]) or type(chain[-1]).__name__
    return text if cause in text else f"{text} ({cause})"
