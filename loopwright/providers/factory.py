"""What makes the langchain models behind a provider: the interface between `chat_model`, which asks
them, and `clients`, which knows how each is made.
"""

from typing import Protocol

from langchain_core.language_models import BaseChatModel


class ModelFactory(Protocol):
    """Makes the chat models of a provider: each has one key and is used in one event loop only."""

    def make(self, key: str) -> BaseChatModel:
        """A model for this key; an empty one stands for the configured key. Called in a thread."""
        ...

    async def close(self, model: BaseChatModel) -> None:
        """Close the connections of a model, in the event loop that used it."""
        ...

    async def check(self, model: BaseChatModel) -> None:
        """Ask the server for something cheap that it refuses to a wrong key."""
        ...

    def secrets(self) -> list[str]:
        """The keys that its models send and cannot tell themselves."""
        ...
