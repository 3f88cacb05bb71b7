"""What a langchain chat model tells of itself: the name that it asks for, the keys that it holds.

How it is asked is in `chat_model`.
"""

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr


def name_of(model: BaseChatModel) -> str:
    """The name that the model asks its server for, under one of the attributes in use."""
    for attribute in ("model_name", "model", "model_id"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return type(model).__name__


def secrets_of(model: BaseChatModel, key: str | None) -> list[str]:
    """The keys that an error text might repeat."""
    held = [value for value in vars(model).values() if isinstance(value, SecretStr)]
    return [secret.get_secret_value() for secret in held] + ([key] if key else [])
