"""What went wrong in a request: one table from the exceptions of any client to `ModelErrorKind`.

Nothing of a client is imported: its exceptions are known by what they carry (status, code, type)
and by the names of their classes. What the loop does about a failure is not decided here.
"""

import re
from collections.abc import Collection, Iterator
from json import JSONDecodeError
from typing import Any

from langchain_core import exceptions as langchain

from loopwright.errors import ContextOverflowError, ModelError, ModelErrorKind
from loopwright.text import clean_text

_LONGEST = 2_000
"""Characters of an error text that are kept: proxies answer with whole web pages."""

_CODES: dict[str, ModelErrorKind] = {
    "context_length_exceeded": "context_overflow",  # OpenAI, Groq
    "exceed_context_size_error": "context_overflow",  # llama.cpp
    "string_above_max_length": "context_overflow",  # OpenAI: one message above the limit
    "1261": "context_overflow",  # Zhipu
    "content_filter": "content_policy",  # Azure
    "content_policy_violation": "content_policy",  # OpenAI
    "invalid_api_key": "authentication",
    "api_key_invalid": "authentication",
    "unknown_parameter": "bad_request",
    "unsupported_parameter": "bad_request",
    "unsupported_value": "bad_request",
}
"""Codes and types that say more than the status they come with, so they win over it (K26)."""

_TYPES: dict[str, ModelErrorKind] = {
    "authentication_error": "authentication",
    "permission_error": "authentication",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "overloaded_error": "server",
    "server_error": "server",
    "api_error": "server",
    "timeout_error": "timeout",
    "invalid_request_error": "bad_request",
    "not_found_error": "bad_request",
}
"""Codes and types that count where there is no status: errors inside a stream that began well."""

_OVERFLOW = re.compile(
    r"maximum context length|context (window|size|length)|context_length_exceeded"
    r"|maximum( allowed)? input length|prompt (is )?too long|input is too long"
    r"|input token count.* exceeds|reduce the length of the messages|model token limit",
    re.IGNORECASE,
)
_POLICY = re.compile(r"content management policy|content policy|safety system", re.IGNORECASE)

_LANGCHAIN: tuple[tuple[type[Exception], ModelErrorKind], ...] = (
    (langchain.ContextOverflowError, "context_overflow"),
    (langchain.ModelAuthenticationError, "authentication"),
    (langchain.ModelPermissionDeniedError, "authentication"),
    (langchain.ModelRateLimitError, "rate_limit"),
    (langchain.ModelTimeoutError, "timeout"),
    (langchain.ModelConnectionError, "connection"),
    (langchain.ModelAPIError, "server"),
    (langchain.ModelInvalidRequestError, "bad_request"),
    (langchain.ModelNotFoundError, "bad_request"),
    (langchain.ModelRefusalError, "content_policy"),
    (langchain.ModelError, "unknown"),
)
_CLIENTS: tuple[tuple[re.Pattern[str], ModelErrorKind], ...] = (
    (re.compile(r"Timeout"), "timeout"),  # httpx, openai, anthropic, langchain-openai, asyncio
    (re.compile(r"UnsupportedProtocol|InvalidURL"), "bad_request"),
    (re.compile(r"Connect|Network|ReadError|WriteError|RemoteProtocol|Transport"), "connection"),
    (re.compile(r"^API(ResponseValidation)?Error$|ResponseError$"), "unknown"),
)
"""Names of exception classes, of the class itself or one above it."""

_PYTHON: tuple[tuple[type[Exception], ModelErrorKind], ...] = (
    (TimeoutError, "timeout"),
    (OSError, "connection"),
    (JSONDecodeError, "protocol"),
    (UnicodeError, "protocol"),
    # langchain raises ValueError for a stream without a chunk; the others are what a client comes
    # to when an answer does not have the form that it expects.
    (ValueError, "protocol"),
    (LookupError, "protocol"),
    (TypeError, "protocol"),
    (AttributeError, "protocol"),
    (RuntimeError, "unknown"),
)


def classify(error: BaseException) -> ModelError | None:
    """The error of ours that stands for a client's; None for what no client raises (a bug).

    A ContextOverflowError for a request that did not fit. The text is the server's where it gave
    one, and still holds whatever secrets the server repeated: see `redacted`.
    """
    if isinstance(error, ModelError):
        return error
    status = _status(error)
    text = _text(error)
    kind = _kind(error, status, text)
    if kind is None:
        return None
    said = clean_text(f"HTTP {status}: {text}" if status else text)[:_LONGEST]
    if kind == "context_overflow":
        return ContextOverflowError(said, status=status)
    return ModelError(said, kind=kind, status=status)


def redacted(text: str, secrets: Collection[str]) -> str:
    """The text without the secrets. Words of up to three letters are no secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) > 3:
            text = text.replace(secret, "***")
    return text


def _kind(error: BaseException, status: int | None, text: str) -> ModelErrorKind | None:
    words = list(_words(error))
    for word in words:
        if word in _CODES:
            return _CODES[word]
    by_text = _kind_of_text(text) if status != 429 and _is_servers_own(error, status) else None
    if by_text is not None:
        return by_text
    if status is not None:
        return _kind_of_status(status)
    for word in words:
        if word in _TYPES:
            return _TYPES[word]
    return _kind_of_class(error)


def _kind_of_text(text: str) -> ModelErrorKind | None:
    if _OVERFLOW.search(text):
        return "context_overflow"
    return "content_policy" if _POLICY.search(text) else None


def _kind_of_status(status: int) -> ModelErrorKind:
    if status in (401, 403):
        return "authentication"
    if status in (408, 504):
        return "timeout"
    if status == 429:
        return "rate_limit"
    return "server" if status >= 500 else "bad_request"


def _kind_of_class(error: BaseException) -> ModelErrorKind | None:
    for family, kind in _LANGCHAIN:
        if isinstance(error, family):
            return kind
    names = [family.__name__ for family in type(error).__mro__]
    for pattern, kind in _CLIENTS:
        if any(pattern.search(name) for name in names):
            return kind
    for family, kind in _PYTHON:
        if isinstance(error, family):
            return kind
    return None


def _is_servers_own(error: BaseException, status: int | None) -> bool:
    """Whether the text was written by a server: a client's own may quote anything."""
    return status is not None or isinstance(getattr(error, "body", None), dict)


def _status(error: BaseException) -> int | None:
    """The HTTP status: on the error, on its response, or as the code of an error in a stream."""
    response = getattr(error, "response", None)
    for holder, name in ((error, "status_code"), (response, "status_code"), (error, "code")):
        value = getattr(holder, name, None)
        if isinstance(value, str) and re.fullmatch(r"[45]\d\d", value):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
            return int(value)
    return None


def _words(error: BaseException) -> Iterator[str]:
    """The machine-readable words of an error: code and type, on it or in the body it came with."""
    body = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, dict) else None
    for holder in (error, body, inner):
        for name in ("code", "type"):
            value = holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)
            if isinstance(value, str | int):
                yield str(value).lower()


def _text(error: BaseException) -> str:
    """What happened: the server's message if there is one, else the exception and its cause."""
    body: Any = getattr(error, "body", None)
    for holder in (body, body.get("error") if isinstance(body, dict) else None):
        if isinstance(holder, dict) and isinstance(holder.get("message"), str):
            return str(holder["message"])
    if isinstance(error, JSONDecodeError):
        return f"the server sent broken JSON: {error.msg}"
    if isinstance(error, ValueError) and "No generation chunks" in str(error):
        return "the server sent an empty answer"
    text = str(getattr(error, "message", "") or error) or type(error).__name__
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    cause = str(first) or type(first).__name__
    return text if cause in text else f"{text} ({cause})"
