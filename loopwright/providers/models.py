"""The models of one agent by name: the objects it was given, and whatever routing finds.

How a name is understood lives in `registry`, how a chat model is spoken to in `chat_model`.
"""

from collections.abc import Callable
from copy import copy
from typing import Self

from langchain_core.language_models import BaseChatModel

from loopwright.providers.chat_model import ChatModelProvider
from loopwright.providers.contract import Provider
from loopwright.providers.registry import Registry
from loopwright.settings import Environment


class Models:
    """Names to providers; each name is resolved once."""

    def __init__(
        self, environment: Environment, find: Callable[[str], Provider] | None = None
    ) -> None:
        self.find = find or Registry(environment=environment)
        self._known: dict[str, Provider] = {}
        self._found: list[ChatModelProvider] = []

    def add(self, model: str | BaseChatModel | Provider) -> str:
        """Take a model and return its name. A name is resolved at its first use."""
        if isinstance(model, str):
            return model
        if isinstance(model, BaseChatModel):
            name = str(getattr(model, "model_name", None) or getattr(model, "model", None) or "")
            name = name or type(model).__name__
            self._known[name] = ChatModelProvider(model, id=model._llm_type, name=name)
            return name
        self._known[model.id] = model
        return model.id

    def with_model(self, model: str | BaseChatModel | Provider) -> tuple[Self, str]:
        """A copy that knows this model, and its name. Who has this one keeps what it knows."""
        other = copy(self)
        other._known = dict(self._known)
        return other, other.add(model)

    def resolve(self, name: str) -> Provider:
        """The provider of a name. Raises UnknownModelError and MissingKeyError."""
        if name not in self._known:
            self._known[name] = found = self.find(name)
            if isinstance(found, ChatModelProvider):
                self._found.append(found)
        return self._known[name]

    async def aclose(self) -> None:
        """Close the connections that found providers keep open; given models stay as they are."""
        for provider in self._found:
            await provider.aclose()
