"""One question to a model until it is answered: attempts, the waits between them, other models.

The only place where a request is sent again: clients, SDKs and providers send it once. What a
failure means is said in `providers.failures`, what an answer leads to is decided by the nodes.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Protocol

from langchain_core.messages import AIMessage
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt

from loopwright.budgets import drawn, refunding
from loopwright.cancelling import until_cut
from loopwright.errors import ConfigurationError, ContextOverflowError, ModelError, RequestPart
from loopwright.events import Fallback, Retry
from loopwright.failpoints import reach
from loopwright.hooks import settled
from loopwright.planning import speaking
from loopwright.providers.contract import (
    ModelRequest,
    Provider,
    StreamEnd,
    StreamEvent,
)
from loopwright.providers.parts import holds
from loopwright.providers.protocol import bounds_answers, checked
from loopwright.providers.reading import closing
from loopwright.providers.waits import LONGEST_ASKED, back_off
from loopwright.runs import Run
from loopwright.settings import Settings
from loopwright.state.schema import AgentState
from loopwright.structured import suited

_HELPLESS = frozenset({"bug", "cancelled", "content_policy", "context_overflow", "storage_full"})
"""Kinds of failures that another model would not mend. A bad request is one as well, unless the
server says that it has no such model."""


class Telling(Protocol):
    """What is told of an answer while it comes in."""

    @property
    def begun(self) -> str | None:
        """The id of the message that was begun, None if there is none yet."""
        ...

    async def tell(self, event: StreamEvent) -> None:
        """Tell a start or a piece."""
        ...


class Silence:
    """Nothing is told."""

    begun = None

    async def tell(self, event: StreamEvent) -> None:
        """Let the event pass."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What one request came to: a `message`, which is a failed one if there is a `failure`.

    A request that did not fit, or could not be sent to a model in whose place another one can be
    asked, has a failure only. With neither, nothing was sent: the wallet was empty.
    """

    message: AIMessage | None = None
    failure: ModelError | None = None
    told: Telling = field(default_factory=Silence)


@dataclass(kw_only=True)
class Question:
    """What is asked, by whoever speaks in this turn, until there is an answer or none is to be had.

    `prepare` makes the request to a provider; it is called for each attempt, since keys may change.
    `tell` makes what the answer of an attempt is told by.
    """

    state: AgentState
    run: Run
    prepare: Callable[[Provider], Awaitable[ModelRequest]]
    tell: Callable[[Provider], Telling] = lambda provider: Silence()
    retried: int = 0
    """How often it was sent again; not counting what was changed in between."""

    withheld: frozenset[RequestPart] = frozenset()
    last: Attempt = field(default_factory=Attempt)
    request: ModelRequest | None = None
    """The last one that was sent."""

    async def answer(self) -> Attempt:
        """Ask, and ask again as long as a failure allows it. Raises Aborted if the run is cancelled
        in a wait, and what the provider raises.

        A failure that may pass is waited for (S1-11); a part that a server refuses is left out and
        the request sent once more; then the models of `settings.fallback` are asked.
        """
        while True:
            attempt: Attempt = await self._retrying()(self._send)
            failure = attempt.failure
            if failure is None or self._is_over():
                return attempt
            if not (await self._left_out(failure) or await self._passed_on(failure)):
                return attempt

    def _retrying(self) -> AsyncRetrying:
        run = self.run
        return AsyncRetrying(
            retry=retry_if_result(self._may_pass),
            stop=stop_after_attempt(1 + max(0, run.settings.retries - self.retried)),
            wait=lambda call: _wait(_failure(call), self.retried),
            before_sleep=self._announce,
            sleep=lambda seconds: run.signal.race(run.dependencies.clock.sleep(float(seconds))),
            retry_error_callback=lambda call: call.outcome and call.outcome.result(),
        )

    def _may_pass(self, attempt: Attempt) -> bool:
        """Whether the same request may be sent again: never once the run is cancelled (S1-15)."""
        failure = attempt.failure
        if failure is None or failure.action != "retry" or self._is_over():
            return False
        return (failure.retry_after or 0.0) <= min(LONGEST_ASKED, self._seconds_left())

    def _seconds_left(self) -> float:
        run, most = self.run, self.run.settings.limits.seconds
        return inf if most is None else run.started + most - run.dependencies.clock.now()

    def _is_over(self) -> bool:
        return self.run.signal.aborted or self.run.watch.calls_left == 0

    async def _announce(self, call: RetryCallState) -> None:
        wait = 0.0 if call.next_action is None else call.next_action.sleep
        await self._tell_retry(_failure(call), wait)
        self.retried += 1

    async def _tell_retry(self, failure: ModelError, wait: float) -> None:
        voided = self._voided()
        await self.run.emit(
            Retry(
                attempt=self.retried + 1,
                kind=failure.kind,
                reason=str(failure),
                wait=wait,
                message_id=voided,
            )
        )

    def _voided(self) -> str | None:
        """The id of what was told of the last attempt, which is paid for all the same."""
        if self.last.message is not None:
            self.run.spend(self.last.message)
        return self.last.told.begun

    async def _send(self) -> Attempt:
        """One request, paid for from the wallet; one that a server has answered stays paid."""
        run = self.run
        told: Telling = Silence()
        try:
            name, _ = speaking(self.state, run)
            provider = run.dependencies.resolve(name)
            if name == run.settings.model:
                run.settings = suited(run.settings, provider.schema_support(name))
            request = replace(await self.prepare(provider), withheld=self.withheld)
            if await drawn(self.state, run):
                self.request, told = request, self.tell(provider)
                answer = _answered(provider, request, run, told)
                self.last = await refunding(self.state, run, answer)
        except ContextOverflowError as error:
            self.last = Attempt(failure=error, told=told)
        except ConfigurationError as error:
            if not run.settings.fallback:
                raise
            self.last = Attempt(failure=ModelError(str(error), kind="auth"), told=told)
        return self.last

    async def retract(self, failure: ModelError) -> None:
        """Say that what was told of the last answer is void, if it had begun."""
        if self.last.told.begun is not None:
            await self._tell_retry(failure, 0.0)

    async def _left_out(self, failure: ModelError) -> bool:
        """Leave out what the server refuses, if there is any; the same body is never sent again."""
        part, request = failure.refused, self.request
        if part is None or request is None or part in self.withheld:
            return False
        if not holds(request.messages, part) or self.run.settings.retries == 0:
            return False
        self.withheld |= {part}
        await self._tell_retry(failure, 0.0)
        return True

    async def _passed_on(self, failure: ModelError) -> bool:
        """Let the next model speak for the rest of the run, if it could mend the failure."""
        run = self.run
        missing = failure.kind == "bad_request" and failure.status == 404
        helpless = failure.kind in _HELPLESS or failure.kind == "bad_request"
        if not run.settings.fallback or (helpless and not missing):
            return False
        name, _ = speaking(self.state, run)
        run.settings, other = _with_next(run.settings, name)
        self.withheld, self.retried = frozenset(), 0
        voided, reason = self._voided(), str(failure)
        await run.emit(Fallback(from_model=name, to_model=other, reason=reason, message_id=voided))
        return True


async def key_for(run: Run, provider: Provider) -> str | None:
    """The key for a request, if a hook gives one; None: the provider has its own (S2-03)."""
    hook = run.dependencies.hooks.get_api_key
    key: str | None = None if hook is None else await settled(hook(provider.id))
    return key or None


def settings_changed(state: AgentState, run: Run) -> dict[str, Any]:
    """The channel with the settings of a run whose model was changed; nothing if it was not."""
    settings, stored = run.settings, state.get("settings", {})
    mode = None if settings.output is None else settings.output.mode
    same_mode = (stored.get("output") or {}).get("mode") == mode
    same_models = tuple(stored.get("fallback", ())) == settings.fallback
    return {} if same_mode and same_models else {"settings": settings.to_json()}


def _with_next(settings: Settings, name: str) -> tuple[Settings, str]:
    """The settings in which the next model speaks in place of this one, and its name."""
    other, *rest = settings.fallback
    plans = other if settings.plan_model == name else settings.plan_model
    speaks = other if settings.model == name else settings.model
    return replace(settings, model=speaks, plan_model=plans, fallback=tuple(rest)), other


async def _answered(provider: Provider, request: ModelRequest, run: Run, told: Telling) -> Attempt:
    """Stream one answer. Raises what the provider raises."""
    async with closing(_events(provider, request, run)) as events:
        async for event in events:
            reach("model")
            if isinstance(event, StreamEnd):
                return Attempt(message=event.message, failure=event.failure, told=told)
            await told.tell(event)
    raise ModelError(f"the stream of provider {provider.id!r} ended without an answer")


def _events(provider: Provider, request: ModelRequest, run: Run) -> AsyncIterator[StreamEvent]:
    """The events of the answer, with what the settings ask of them."""
    events = provider.stream(request)
    if run.settings.cancel_policy == "cut":
        events = until_cut(run, events)
    if bounds_answers(run.settings):
        used = set() if run.ids is None else run.ids.calls
        events = checked(events, request, run.settings, used)
    return events


def _failure(call: RetryCallState) -> ModelError:
    """The failure of the attempt that has just been made."""
    attempt = call.outcome.result() if call.outcome is not None else Attempt()
    assert isinstance(attempt, Attempt) and attempt.failure is not None
    return attempt.failure


def _wait(failure: ModelError, retried: int) -> float:
    """What the server asks for, else our own back-off."""
    return back_off(retried) if failure.retry_after is None else failure.retry_after
