"""Where a provider's key comes from: a fixed text, a function that is asked for every request, or
a source of tokens (`oauth`); and the HTTP client that asks.

Which key a name has is decided in `registry`.
"""

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from loopwright.errors import ModelError

KeyFunction = Callable[[], str | Awaitable[str]]
"""Gives a key, each time it is called; may be async."""

_KEYS_REMEMBERED = 64


@runtime_checkable
class KeySource(Protocol):
    """Something that knows the key of the moment. Used by all event loops and threads at once."""

    async def current(self) -> str:
        """The key for the next request. Raises ModelError (auth) if there is none."""
        ...

    async def renewed(self, refused: str) -> str | None:
        """Another key in the place of one that a server has refused; None: there is no other."""
        ...

    def secrets(self) -> list[str]:
        """What it has given so far: none of it may be written down."""
        ...


@dataclass(frozen=True)
class FixedKey:
    """One key for good; an empty one for a server that wants none."""

    key: str = field(repr=False)

    async def current(self) -> str:
        """The key."""
        return self.key

    async def renewed(self, refused: str) -> str | None:
        """There is no other."""
        return None

    def secrets(self) -> list[str]:
        """The key."""
        return [self.key] if self.key else []


class FunctionKeys:
    """The keys that a function gives; what it raises is an authentication error of the request."""

    def __init__(self, function: KeyFunction) -> None:
        self._function = function
        self._given: deque[str] = deque(maxlen=_KEYS_REMEMBERED)
        self._lock = threading.Lock()

    async def current(self) -> str:
        """What the function gives."""
        (key,) = await asyncio.gather(self._asked(), return_exceptions=True)
        if isinstance(key, BaseException) or not key:
            said = f"raised {type(key).__name__}: {key}" if key else "gave none"
            raise ModelError(f"the function that gives the API key {said}", kind="auth") from None
        with self._lock:
            if key not in self._given:
                self._given.append(key)
        return key

    async def _asked(self) -> str:
        """A plain function is called in a thread: it may read a file."""
        function: Callable[[], Any] = self._function
        if inspect.iscoroutinefunction(function):
            return str(await function() or "")
        answer = await asyncio.to_thread(function)
        return str((await answer if inspect.isawaitable(answer) else answer) or "")

    async def renewed(self, refused: str) -> str | None:
        """The function was just asked."""
        return None

    def secrets(self) -> list[str]:
        """The last keys."""
        with self._lock:
            return list(self._given)


class _Keyed:
    """In front of an HTTP client's class: each request is sent with the source's key, and once more
    with another key if the server refuses that one before it answers anything."""

    def __init__(self, source: KeySource, header: str, **options: Any) -> None:
        super().__init__(**options)
        self._source, self._header = source, header

    async def send(self, request: Any, **options: Any) -> Any:
        """Send with the key of the moment."""
        key = await self._source.current()
        response = await self._send(request, key, options)
        if response.status_code != 401:
            return response
        other = await self._source.renewed(key)
        if other is None:
            return response
        await response.aclose()
        return await self._send(request, other, options)

    async def _send(self, request: Any, key: str, options: dict[str, Any]) -> Any:
        bearer = self._header == "authorization"
        for name in ("authorization", "api-key", "x-api-key", "x-goog-api-key"):
            request.headers.pop(name, None)
        if key:
            request.headers[self._header] = f"Bearer {key}" if bearer else key
        return await super().send(request, **options)  # type: ignore[misc]


def keyed(client: type[Any], source: KeySource, header: str, **options: Any) -> Any:
    """An HTTP client of this class (httpx's or one like it) whose requests carry the source's key
    in this header."""
    return type("Keyed" + client.__name__, (_Keyed, client), {})(source, header, **options)
