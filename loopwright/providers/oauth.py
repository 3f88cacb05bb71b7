"""OAuth tokens that stay fresh: one refresh at a time, ahead of their expiry and after a server has
refused one.

How a token gets into a request is said in `keys`. Nothing is stored: `changed` tells who wants to.
"""

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

import httpx

from loopwright.clock import Clock, SystemClock
from loopwright.errors import ModelErrorKind, TokenError
from loopwright.providers.failures import redacted

_EARLY_SECONDS = 60.0
"""How long before its expiry a token is refreshed: a request must not outlive it on the way."""

_REFRESH_SECONDS = 30.0
"""How long a refresh may take."""

_SECRETS_REMEMBERED = 64


@dataclass(frozen=True)
class OAuthToken:
    """An access token, what it is refreshed with, and until when it holds (seconds since the epoch;
    None: until a server refuses it). Neither token is part of its repr."""

    access: str = field(repr=False)
    refresh: str | None = field(default=None, repr=False)
    expires_at: float | None = None


Refresh = Callable[[OAuthToken], OAuthToken | Awaitable[OAuthToken]]
"""Gets the next token for one that is old; may be async. Called in a thread of its own, in an event
loop that ends with the call. Whatever it raises becomes a TokenError."""


@dataclass(frozen=True, kw_only=True)
class RefreshGrant:
    """The standard `refresh_token` grant (RFC 6749, section 6): a Refresh over HTTP.

    A server that gives no new refresh token means the old one to be used on.
    """

    url: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    scope: str | None = None
    clock: Clock = field(default_factory=SystemClock)

    async def __call__(self, token: OAuthToken) -> OAuthToken:
        """Raises TokenError, of a kind that says whether asking again can help."""
        form = {
            "grant_type": "refresh_token",
            "refresh_token": token.refresh,
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "scope": self.scope,
        }
        async with httpx.AsyncClient(timeout=_REFRESH_SECONDS) as client:
            sent = {name: value for name, value in form.items() if value}
            answer = await client.post(self.url, data=sent)
        return self._token(answer, token)

    def _token(self, answer: httpx.Response, old: OAuthToken) -> OAuthToken:
        try:
            body = answer.json()
        except ValueError:
            body = None
        fields = body if isinstance(body, dict) else {}
        access, refresh = fields.get("access_token"), fields.get("refresh_token")
        if answer.is_error or not isinstance(access, str) or not access:
            said = ": ".join(
                str(fields[name]) for name in ("error", "error_description") if name in fields
            )
            raise TokenError(
                f"HTTP {answer.status_code}: {said or 'no access token'}",
                kind=_kind(answer.status_code),
                status=answer.status_code,
            )
        seconds = fields.get("expires_in")
        until = None
        if isinstance(seconds, int | float) and not isinstance(seconds, bool):
            until = self.clock.now() + seconds
        return OAuthToken(
            access=access,
            refresh=refresh if isinstance(refresh, str) and refresh else old.refresh,
            expires_at=until,
        )


def _kind(status: int) -> ModelErrorKind:
    if status == 429:
        return "rate_limit"
    return "server_error" if status >= 500 else "auth"


class TokenSource:
    """The access token of the moment: a `keys.KeySource` that any number of runs, event loops and
    threads share.

    A token is refreshed when it has less than a minute left, and when a server answers 401 to it;
    of any number of requests that need the same refresh one asks and all wait. A refresh that fails
    while the token still holds is not a failure yet. `changed` is called with each new token, in
    the thread of the refresh, before anybody uses it: store it there.
    """

    def __init__(
        self,
        token: OAuthToken,
        refresh: Refresh,
        *,
        changed: Callable[[OAuthToken], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.token = token
        self._refresh, self._changed = refresh, changed
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._going_on: Future[OAuthToken] | None = None
        self._secrets: deque[str] = deque(maxlen=_SECRETS_REMEMBERED)
        self._remember(token)

    async def current(self) -> str:
        """The access token, refreshed first if it is about to expire. Raises TokenError."""
        token = self.token
        if not self._ends_within(token, _EARLY_SECONDS):
            return token.access
        try:
            return (await self._next(token)).access
        except TokenError:
            if self._ends_within(token, 0):
                raise
            return token.access

    async def renewed(self, refused: str) -> str | None:
        """The token that comes after a refused one: perhaps somebody has got it already."""
        token = self.token
        return token.access if token.access != refused else (await self._next(token)).access

    def secrets(self) -> list[str]:
        """The last tokens of both kinds."""
        with self._lock:
            return list(self._secrets)

    def _ends_within(self, token: OAuthToken, seconds: float) -> bool:
        return token.expires_at is not None and token.expires_at - self._clock.now() <= seconds

    async def _next(self, old: OAuthToken) -> OAuthToken:
        """The token after `old`. The refresh is no part of the run that asks for it: it goes on in
        a thread of its own if that run is cancelled, since others wait for it too."""
        with self._lock:
            if self.token is not old:
                return self.token
            waited = self._going_on
            if waited is None:
                waited = self._going_on = Future()
                waited.set_running_or_notify_cancel()
                threading.Thread(target=self._work, args=(old, waited), daemon=True).start()
        return await asyncio.wrap_future(waited)

    def _work(self, old: OAuthToken, waited: "Future[OAuthToken]") -> None:
        """Refresh, and let everybody know: with the new token, or with a TokenError."""
        outcome = asyncio.run(self._outcome(old))
        with self._lock:
            self._going_on = None
            if isinstance(outcome, OAuthToken):
                self.token = outcome
        if isinstance(outcome, OAuthToken):
            waited.set_result(outcome)
        else:
            waited.set_exception(outcome)

    async def _outcome(self, old: OAuthToken) -> OAuthToken | TokenError:
        (outcome,) = await asyncio.gather(self._refreshed(old), return_exceptions=True)
        if isinstance(outcome, OAuthToken):
            return outcome
        return self._failure(outcome)

    async def _refreshed(self, old: OAuthToken) -> OAuthToken:
        if old.refresh is None:
            raise TokenError("there is no refresh token", kind="auth")
        answer = self._refresh(old)
        token = await answer if inspect.isawaitable(answer) else answer
        self._remember(token)
        if self._changed is not None:
            self._changed(token)
        return token

    def _failure(self, error: BaseException) -> TokenError:
        """What is told of a failed refresh: never a token, even if the server repeats it."""
        kind: ModelErrorKind = "network" if isinstance(error, httpx.TransportError) else "auth"
        status = None
        if isinstance(error, TokenError):
            kind, status = error.kind, error.status
        said = redacted(str(error) or type(error).__name__, self.secrets())
        remedy = "; sign in again" if kind == "auth" else ""
        return TokenError(
            f"the access token could not be refreshed: {said}{remedy}", kind=kind, status=status
        )

    def _remember(self, token: OAuthToken) -> None:
        with self._lock:
            for secret in (token.access, token.refresh):
                if secret and secret not in self._secrets:
                    self._secrets.append(secret)
