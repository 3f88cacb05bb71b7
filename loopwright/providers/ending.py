"""What an answer that was read to its end came to: it may be used, or why not.

What exceptions mean is known in `failures`, finish reasons in `finish`.
"""

import asyncio
from collections.abc import Collection
from typing import Any

from loopwright.errors import ContextOverflowError, LoopwrightError, ModelError
from loopwright.providers import finish
from loopwright.providers.assembly import Answer
from loopwright.providers.contract import ModelRequest
from loopwright.providers.failures import classify, redacted
from loopwright.providers.reading import AbortableReader


def failure_of(
    answer: Answer,
    chunks: AbortableReader[Any],
    request: ModelRequest,
    secrets: Collection[str],
) -> ModelError | None:
    """Why the answer must not be used; None if it is complete.

    An error or a silence behind the finish reason takes nothing away from the answer. Raises
    ContextOverflowError, and what is no failure of a request: an error of ours, the process's end.
    """
    if answer.finish_reason is None and chunks.is_stale:
        return ModelError(
            f"nothing came from the server for {request.patience:g} s, so the connection was "
            "closed (settings.stall_timeout)",
            kind="timeout",
        )
    error = chunks.error
    if error is None or answer.finish_reason is not None:
        return _incomplete(answer)
    if isinstance(error, asyncio.CancelledError):
        return ModelError("the model's client cancelled its own request", kind="network")
    is_ours = isinstance(error, LoopwrightError) and not isinstance(error, ModelError)
    if is_ours or not isinstance(error, Exception):
        raise error
    found = classify(error, now=request.clock.now())
    found.args = (redacted(str(found), secrets),)
    if isinstance(found, ContextOverflowError):
        raise found from None
    return found


def _incomplete(answer: Answer) -> ModelError | None:
    """The failure of an answer that ended without an error, but not well."""
    if finish.is_failure(answer.finish_reason):
        return ModelError(
            f"the provider broke the answer off: {answer.finish_reason}", kind="server_error"
        )
    if answer.is_complete:
        return None
    lost = f"; its {answer.calls} tool call(s) were not run" if answer.calls else ""
    return ModelError(
        f"the answer ended without a finish reason, so it was cut off{lost}", kind="protocol"
    )
