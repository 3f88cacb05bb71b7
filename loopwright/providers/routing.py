"""From the name of a model to the provider that it means: a table of prefixes, no silent fallback.

What is known of a provider stands in `servers`; what is made of a route, in `registry`.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from loopwright.errors import UnknownModelError
from loopwright.providers.servers import SERVERS

OFFLINE = "offline"
"""Name of the built-in model that needs neither key nor network."""

CUSTOM = "custom"
"""Provider of the server at LOOPWRIGHT_BASE_URL."""

_PREFIXES: tuple[tuple[str, str], ...] = (
    ("claude", "anthropic"),
    ("gpt-|chatgpt-", "openai"),
    (r"o\d", "openai"),
    ("gemini", "google"),
    ("mistral|mixtral|codestral|ministral|pixtral|magistral|devstral", "mistral"),
    ("grok", "xai"),
    ("deepseek", "deepseek"),
)
"""Bare names by their first word; openrouter and the local servers are always named in front."""


@dataclass(frozen=True)
class Route:
    """Where a model name leads: the provider, and the model's name there."""

    provider: str
    model: str


def route(name: str, providers: Collection[str] = SERVERS) -> Route:
    """Split `provider/model` at the first slash, or find the provider of a bare name by its prefix.

    Provider names are not case-sensitive, model names are. Raises UnknownModelError, whose `code`
    says what is wrong with the name; it never picks some other provider (S1-19).
    """
    wanted = name.strip()
    if not wanted:
        raise UnknownModelError(name, known(providers), code="EMPTY_MODEL")
    provider, slash, model = wanted.partition("/")
    provider, model = provider.strip().lower(), model.strip()
    if slash:
        if not provider or not model:
            raise UnknownModelError(name, known(providers), code="INVALID_MODEL")
        if provider not in {*providers, CUSTOM}:
            raise UnknownModelError(name, known(providers), code="UNKNOWN_PROVIDER")
        return Route(provider, model)
    for words, owner in _PREFIXES:
        if owner in providers and re.match(rf"({words})(-|$|(?<=-))", wanted, re.IGNORECASE):
            return Route(owner, wanted)
    raise UnknownModelError(name, known(providers))


def known(providers: Collection[str]) -> str:
    """What may be written instead, for an error."""
    return (
        f"'offline', 'PROVIDER/MODEL' with one of {', '.join(providers)}, "
        "or 'custom/MODEL' with LOOPWRIGHT_BASE_URL set"
    )
