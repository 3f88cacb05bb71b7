"""Any langchain chat model as a provider: requests go out, raw chunks come back and are assembled.

What chunks mean is known in `assembly`, what exceptions mean in `failures`. Nothing is retried.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import Runnable

from loopwright.clock import SystemClock
from loopwright.errors import (
    ConfigurationError,
    ModelError,
    RequestPart,
)
from loopwright.providers.assembly import Answer
from loopwright.providers.contract import (
    ModelRequest,
    Provider,
    SchemaSupport,
    StreamEnd,
    StreamEvent,
    StreamStart,
)
from loopwright.providers.dialect import GENERIC, Dialect
from loopwright.providers.ending import failure_of
from loopwright.providers.estimates import counted
from loopwright.providers.factory import ModelFactory
from loopwright.providers.failures import classify, redacted
from loopwright.providers.formats import asked_for, support_of
from loopwright.providers.model_objects import name_of, secrets_of
from loopwright.providers.outgoing import Outgoing
from loopwright.providers.reading import AbortableReader
from loopwright.providers.wire.cache import cache_key
from loopwright.providers.wire.names import ToolNames
from loopwright.providers.wire.schemas import tool_form
from loopwright.providers.wire.target import DIALECTS, Producer, Target, api_of
from loopwright.signals import AbortSignal
from loopwright.tools.contract import Tool

Bound = Runnable[LanguageModelInput, AIMessage]

_TOOL_SETS_KEPT = 8


class ChatModelProvider(Provider):
    """A Provider over a langchain chat model; safe to share between runs and threads.

    `id` and `name` are stored with every message as its provider and model; they default to the
    model's class and to the name that it asks its server for. `thinking` holds, per thinking level,
    what is added to a request; a level that it does not name adds nothing. With a `factory`, which
    must be the one that made `model`, requests may bring their own keys, and each event loop gets a
    model of its own: the connections that a client keeps open cannot be used from a second loop.
    `schemas` says whether its server holds an answer to a JSON schema; None asks `formats`.

    `api` names the protocol that the model speaks and is stored with every message too; it defaults
    to what is known of the model's class. `dialect` is how the server wants its requests; None
    takes the one that goes with the protocol.

    A model whose streams end without a finish reason is taken for cut off, unless its last chunk
    says that it is the last (`chunk_position`).
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        id: str | None = None,
        name: str | None = None,
        factory: ModelFactory | None = None,
        thinking: Mapping[str, Mapping[str, Any]] | None = None,
        context_window: int | None = None,
        api: str | None = None,
        dialect: Dialect | None = None,
        schemas: SchemaSupport | None = None,
    ) -> None:
        self.model = model
        self.id = id or type(model).__name__
        self.name = name or name_of(model)
        self.api = api or api_of(model)
        self.dialect = dialect or _dialect(model, self.api)
        self._factory = factory
        self._thinking = thinking or {}
        self._context_window = context_window
        self._schemas = support_of(model) if schemas is None else schemas
        self._models: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, BaseChatModel]]
        self._models = WeakKeyDictionary()
        self._outgoing: WeakKeyDictionary[AbortSignal, Outgoing] = WeakKeyDictionary()
        self._unused: BaseChatModel | None = model
        self._lock = threading.Lock()
        self._bound: tuple[tuple[BaseChatModel, tuple[Tool, ...], Bound], ...] = ()

    def secrets(self) -> list[str]:
        """The keys that this provider sends; what is written down about it must not hold them."""
        with self._lock:
            made = [model for models in self._models.values() for model in models.values()]
        held = [secret for model in (self.model, *made) for secret in secrets_of(model, None)]
        return [*held, *(self._factory.secrets() if self._factory else ())]

    def context_window(self, model: str) -> int | None:
        """What was given, else what langchain knows about the model."""
        profile = self.model.profile or {}
        return self._context_window or profile.get("max_input_tokens")

    def schema_support(self, model: str) -> SchemaSupport:
        """What was given, else what is known of the model object."""
        return self._schemas

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Send the request; see `Provider.stream`.

        Raises ConfigurationError, before anything is sent, for a key or tools that the model cannot
        take, and an exception of the model that no client raises as it is.
        """
        names = ToolNames.of(tool.name for tool in request.tools)
        async with aclosing(self._events(request, names)) as events:
            async for event in events:
                yield _marked(names.read(event), request.withheld)

    async def _events(
        self, request: ModelRequest, names: ToolNames
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of the answer as the model says them."""
        model = await self._model(request.api_key or "")
        bound = self._with_tools(model, request.tools, names)
        outgoing = self._outgoing.setdefault(request.signal, Outgoing())
        target = self._target(request, names)
        messages = outgoing.messages(request.system_prompt, request.messages, target)
        # Not validated: of a plain list langchain would convert and check every message again.
        given = ChatPromptValue.model_construct(messages=messages)
        source = bound.astream(given, **self._options(request, model))
        answer = Answer(provider=self.id, model=self.name, api=self.api)
        started = False
        async with AbortableReader(
            source, request.signal, patience=request.patience, clock=request.clock
        ) as chunks:
            async for chunk in chunks:
                pieces = answer.add(chunk)
                if not started:
                    started = True
                    yield StreamStart(message_id=answer.message_id)
                for piece in pieces:
                    yield piece
            if request.signal.aborted:
                yield StreamEnd(message=counted(answer.aborted(), request))
                return
            secrets = [*secrets_of(model, request.api_key), *self.secrets()]
            failure = failure_of(answer, chunks, request, secrets)
        if failure is not None:
            yield StreamEnd(message=counted(answer.failed(failure), request), failure=failure)
            return
        for piece in answer.close():
            yield piece
        yield StreamEnd(message=counted(answer.message(), request))

    def _target(self, request: ModelRequest, names: ToolNames) -> Target:
        return Target(
            producer=Producer(self.id, self.api, self.name),
            dialect=self.dialect,
            foreign_thinking=request.foreign_thinking,
            withheld=request.withheld,
            names=names,
        )

    def _options(self, request: ModelRequest, model: BaseChatModel) -> dict[str, Any]:
        """What is added to a request beside messages and tools."""
        options = dict(self._thinking.get(request.thinking_level, {}))
        key = cache_key(request.session, self.dialect.cache_key or 0)
        if key is not None:
            options["prompt_cache_key"] = key
        if self.dialect.cache_control:
            options["cache_control"] = {"type": "ephemeral"}
        if request.output is not None:
            options |= asked_for(model, request.output)
        return options

    async def validate_auth(self, api_key: str | None = None) -> None:
        """See `Provider.validate_auth`; a provider of the table asks what its row names."""
        if self._factory is None:
            await super().validate_auth(api_key)
            return
        model = await self._model(api_key or "")
        (error,) = await asyncio.gather(self._factory.check(model), return_exceptions=True)
        if error is None:
            return
        found = classify(error, now=SystemClock().now())
        text = redacted(str(found), [*secrets_of(model, api_key), *self.secrets()])
        raise ModelError(f"{self.id}: {text}", kind=found.kind, status=found.status)

    async def aclose(self) -> None:
        """Close the connections that requests of the running event loop have left open."""
        with self._lock:
            models = self._models.pop(asyncio.get_running_loop(), {})
        for model in models.values():
            if self._factory is not None:
                await self._factory.close(model)

    async def _model(self, key: str) -> BaseChatModel:
        """The model for this key and the running event loop."""
        if self._factory is None:
            if key:
                raise ConfigurationError(
                    f"the model {self.name!r} was given with its own key and cannot take another: "
                    "name the model as 'provider/model', or leave the key out",
                    field="api_key",
                )
            return self.model
        with self._lock:
            models = self._models.setdefault(asyncio.get_running_loop(), {})
            if not key and self._unused is not None:
                models[key], self._unused = self._unused, None
        if key not in models:
            models[key] = await asyncio.to_thread(self._factory.make, key)
        return models[key]

    def _with_tools(self, model: BaseChatModel, tools: Sequence[Tool], names: ToolNames) -> Bound:
        """The model with these tools, in an order that does not depend on who registered first."""
        if not tools:
            return model
        wanted = tuple(sorted(tools, key=lambda tool: tool.name))
        for owner, kept, bound in self._bound:
            if owner is model and kept == wanted:
                return bound
        try:
            bound = model.bind_tools([tool_form(tool, names, self.dialect) for tool in wanted])
        except NotImplementedError:
            raise ConfigurationError(
                f"the model {self.name!r} cannot call tools: give the agent no tools, or a model "
                "whose class has bind_tools()",
                field="model",
            ) from None
        self._bound = ((model, wanted, bound), *self._bound[: _TOOL_SETS_KEPT - 1])
        return bound


def _dialect(model: BaseChatModel, api: str) -> Dialect:
    """The dialect of a protocol, without images if langchain knows that the model takes none."""
    dialect = DIALECTS.get(api, GENERIC)
    sees = (model.profile or {}).get("image_inputs", True)
    return dialect if sees else replace(dialect, images=False)


def _marked(event: StreamEvent, withheld: Collection[RequestPart]) -> StreamEvent:
    """The event; an answer to a request from which something was withheld says so."""
    if not withheld or not isinstance(event, StreamEnd):
        return event
    metadata = {**event.message.response_metadata, "withheld": sorted(withheld)}
    message = event.message.model_copy(update={"response_metadata": metadata})
    return replace(event, message=message)
