"""What a caller can act on: one tree of exceptions that say what happened, where, and what to do.

What a *model* can put right (a bad argument, a failing tool) is a tool result, never one of these.

    LoopwrightError
    ├── ConfigurationError        a setting or argument is wrong: names the field
    │   ├── UnknownModelError     no provider answers to this model name
    │   ├── MissingKeyError       the provider needs a key and none was given
    │   └── MissingExtraError     an optional package is not installed
    ├── InputError                the input of a run cannot be admitted; the thread is unchanged
    │   └── TranscriptError       calls and results of the transcript do not belong together
    ├── ThreadError               a thread cannot do what was asked: names the thread
    │   ├── UnknownThreadError    nothing is stored under this id
    │   ├── ThreadExistsError     something is stored under this id already
    │   ├── UnknownMomentError    the thread's past has no such moment
    │   ├── BusyThreadError       a run of this thread is still going on: names who runs it
    │   ├── LeaseLostError        another process has taken the thread from this run
    │   └── ContinuationError     there is nothing to continue or resume
    ├── ThreadFileError           a file cannot take or give a thread: names file and line
    ├── TraceFileError            a trace cannot be read or replayed: names file and line
    ├── DatabaseError             the database file cannot be used: names the file
    ├── ModelError                a request to a model failed: names its kind
    │   ├── TokenError            the access token of a provider could not be refreshed
    │   ├── ContextOverflowError  the request did not fit the model's context window
    │   └── ProtocolError         an answer broke the protocol or a bound of one answer
    ├── OutputError               a run has given no valid answer: names thread and reason
    ├── FatalToolError            raised by a tool whose failure must end the run
    ├── StateError                a stored state holds something that no node writes
    └── NestedCallError           a blocking call from the very loop that it would block

The ones that a caller of a server can act on are also ValueErrors and RuntimeErrors: the dev server
shows a client the text of Python's own errors only.
"""

from collections.abc import Sequence
from typing import Literal, get_args

from loopwright.holder import Holder

_Lasting = Literal["auth", "bad_request", "billing", "content_policy", "storage_full", "tls"]
_OfOurs = Literal["bug", "cancelled"]
_Passing = Literal["network", "overloaded", "protocol", "rate_limit", "server_error", "timeout"]
ModelErrorKind = Literal[_Lasting, _OfOurs, _Passing, "context_overflow", "unknown"]
"""How a request to a model failed; `protocol` is an answer that was broken or cut off."""

ModelAction = Literal["retry", "fatal", "compact"]
"""What follows from a failure: the same request again, none, or one with a smaller context."""

RequestPart = Literal["images", "thinking"]
"""A part of a request without which it can be sent again, if a server refuses that part."""

_FATAL = get_args(Literal[_Lasting, _OfOurs])

ModelNameFault = Literal["EMPTY_MODEL", "INVALID_MODEL", "UNKNOWN_PROVIDER", "UNKNOWN_MODEL"]
"""What is wrong with the name of a model."""


class LoopwrightError(Exception):
    """Base of everything this package raises on purpose."""


class ConfigurationError(LoopwrightError, ValueError):
    """A setting or argument is wrong; the message names field, value and what is allowed."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class UnknownModelError(ConfigurationError):
    """No provider answers to this model name; `code` says what is wrong with it (S1-19)."""

    def __init__(self, model: str, known: str, *, code: ModelNameFault = "UNKNOWN_MODEL") -> None:
        said = code.replace("_", " ").lower()
        super().__init__(f"{said} {model!r}: use {known}", field="model")
        self.model = model
        self.code = code


class MissingKeyError(ConfigurationError):
    """The provider needs a key and none was given; `variable` is the one to set."""

    def __init__(self, model: str, variable: str) -> None:
        super().__init__(
            f"no API key for model {model!r}: set the environment variable {variable}, "
            "or use --model offline to try Loopwright without a key",
            field="api_key",
        )
        self.model = model
        self.variable = variable


class MissingExtraError(ConfigurationError):
    """An optional package is not installed; `extra` is what to install."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the extra {extra!r}: pip install 'loopwright[{extra}]'", field="extra"
        )
        self.extra = extra


class InputError(LoopwrightError, ValueError):
    """The input of a run cannot be admitted. Nothing was stored."""


class TranscriptError(InputError):
    """Calls and results of a transcript do not belong together; `kinds` names each fault once."""

    def __init__(self, message: str, *, kinds: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.kinds = tuple(kinds)


class ThreadError(LoopwrightError, RuntimeError):
    """A thread cannot do what was asked; `thread` is its id."""

    def __init__(self, message: str, *, thread: str) -> None:
        super().__init__(message)
        self.thread = thread


class UnknownThreadError(ThreadError):
    """Nothing is stored under this thread id."""

    def __init__(self, thread: str) -> None:
        super().__init__(
            f"unknown thread {thread!r}: `loopwright threads` lists the stored ones", thread=thread
        )


class ThreadExistsError(ThreadError):
    """Something is stored under this thread id already; nothing was changed."""

    def __init__(self, thread: str) -> None:
        super().__init__(
            f"thread {thread!r} exists already: choose another name, or delete it first",
            thread=thread,
        )


class UnknownMomentError(ThreadError):
    """The thread's past has no such moment, or more than one; `at` is what was asked for."""

    def __init__(self, thread: str, at: object, *, several: bool = False) -> None:
        what = "more than one moment that begins with" if several else "no moment"
        super().__init__(
            f"thread {thread!r} has {what} {at!r}: `loopwright history {thread}` lists them; "
            "give a moment of agent.history(), its id, or a number of messages",
            thread=thread,
        )
        self.at = at


class BusyThreadError(ThreadError):
    """A run of this thread is still going on, here or in another process; `holder` is whose."""

    def __init__(self, thread: str, holder: Holder | None = None) -> None:
        who = "" if holder is None else f"{holder}; "
        super().__init__(
            f"thread {thread!r} is busy: {who}wait for its run to end, or queue the message "
            "with steer() or follow_up()",
            thread=thread,
        )
        self.holder = holder


class LeaseLostError(ThreadError):
    """This run was silent for so long that another process has taken its thread; what it did since
    then is not stored. `run_id` is this run's."""

    def __init__(self, thread: str, run_id: str) -> None:
        super().__init__(
            f"run {run_id} of thread {thread!r} was suspended or cut off for longer than its lease "
            "holds, and the thread was taken over: nothing more of this run is stored; "
            "look at the thread's history before you prompt again",
            thread=thread,
        )
        self.run_id = run_id


class ContinuationError(ThreadError):
    """There is nothing to continue or resume on this thread."""


class ThreadFileError(LoopwrightError, ValueError):
    """A file with a thread cannot be written or imported, and nothing was; `line` counts from 1."""

    def __init__(self, path: str, reason: str, *, line: int = 0) -> None:
        where = f"line {line} of {path!r}" if line else repr(path)
        super().__init__(f"cannot use {where}: {reason}")
        self.path = path
        self.line = line


class TraceFileError(LoopwrightError, ValueError):
    """A trace cannot be read or replayed; `line` counts from 1, 0 stands for the whole file."""

    def __init__(self, path: str, reason: str, *, line: int = 0) -> None:
        where = f"line {line} of trace {path!r}" if line else f"trace {path!r}"
        super().__init__(f"cannot use {where}: {reason}")
        self.path = path
        self.line = line


class DatabaseError(LoopwrightError):
    """The database file cannot be used; `path` is the file."""

    def __init__(self, path: str, reason: str, remedy: str) -> None:
        super().__init__(f"cannot use database {path!r}: {reason}; {remedy}")
        self.path = path


class ModelError(LoopwrightError):
    """A request to a model failed.

    `kind` says how, `status` is the HTTP status if there was one, `retry_after` the seconds that
    the server asks to wait (None: it names none that counts), `refused` the part of the request
    that the server does not take.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ModelErrorKind = "unknown",
        status: int | None = None,
        retry_after: float | None = None,
        refused: RequestPart | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
        self.refused = refused

    @property
    def action(self) -> ModelAction:
        """What follows from the kind alone."""
        if self.kind == "context_overflow":
            return "compact"
        return "fatal" if self.kind in _FATAL else "retry"


class ContextOverflowError(ModelError):
    """The request did not fit the model's context window; a run compacts once and asks again."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message, kind="context_overflow", status=status)


class TokenError(ModelError):
    """The access token of a provider could not be refreshed. `kind` is `auth` if the user has to
    sign in again; another one says that asking again can help."""


class ProtocolError(ModelError):
    """An answer broke the protocol, or a bound of one answer; nothing of it has taken effect."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="protocol")


class OutputError(LoopwrightError, ValueError):
    """A run that had to answer in a form gave no valid answer; `reason` names what ended it."""

    def __init__(self, thread: str, status: str, reason: str, text: str = "") -> None:
        why = f": {text}" if text else ""
        super().__init__(
            f"the run of thread {thread!r} has no output: it is {status} ({reason}){why}; look at "
            "its messages, or give the model more repairs or a simpler schema"
        )
        self.thread, self.reason = thread, reason


class FatalToolError(LoopwrightError):
    """Raised by a tool whose failure must end the run: the call gets no result, the model is not
    asked again, and the run fails.
    """


class StateError(LoopwrightError):
    """A stored state holds something that no node writes: a newer version, or an edit by hand."""


class NestedCallError(LoopwrightError):
    """A blocking call from the very event loop that it would block."""
