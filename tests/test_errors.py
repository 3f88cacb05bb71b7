"""One tree of exceptions: all caught by its root, each naming what a caller can act on."""

import inspect

import pytest

from loopwright import errors
from loopwright.errors import (
    BusyThreadError,
    ConfigurationError,
    ContextOverflowError,
    DatabaseError,
    LeaseLostError,
    LoopwrightError,
    MissingExtraError,
    MissingKeyError,
    ModelError,
    UnknownModelError,
    UnknownThreadError,
)
from loopwright.holder import Holder

ALL = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, Exception)
]


def test_every_error_has_one_root_and_a_sentence() -> None:
    assert len(ALL) > 10
    for error in ALL:
        assert issubclass(error, LoopwrightError)
        assert inspect.getdoc(error)


def test_the_tree_at_the_top_of_the_module_is_the_tree_of_the_classes() -> None:
    drawn = [line.split()[-1] if "──" not in line else line for line in tree()]
    names = {name for line in drawn for name in line.replace("─", " ").split()}
    assert {error.__name__ for error in ALL} <= names


def tree() -> list[str]:
    return [line for line in str(errors.__doc__).splitlines() if "Error" in line]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (UnknownModelError("m", "a or b"), "unknown model 'm': use a or b"),
        (MissingKeyError("m", "KEY"), "set the environment variable KEY"),
        (MissingExtraError("serving", "serve"), r"pip install 'loopwright\[serve\]'"),
        (UnknownThreadError("t"), "unknown thread 't'"),
        (BusyThreadError("t"), "thread 't' is busy: wait .* steer.* follow_up"),
        (
            BusyThreadError("t", Holder(host="box", process=7, since=0)),
            "thread 't' is busy: process 7 on box has run it since 1970-01-01 00:00:00 UTC; wait",
        ),
        (
            BusyThreadError("t", Holder(host="box", process=7, since=0, expires=90)),
            "00:00:00 UTC, with a lease until 1970-01-01 00:01:30 UTC; wait",
        ),
        (LeaseLostError("t", "r"), "run r of thread 't' .* was taken over: .* history"),
        (DatabaseError("f.db", "no", "do this"), "cannot use database 'f.db': no; do this"),
    ],
)
def test_a_message_names_the_thing_and_the_way_out(error: Exception, says: str) -> None:
    with pytest.raises(LoopwrightError, match=says):
        raise error


def test_errors_carry_what_a_program_needs() -> None:
    assert ConfigurationError("x", field="f").field == "f"
    assert MissingKeyError("m", "KEY").variable == "KEY"
    assert DatabaseError("f.db", "no", "do").path == "f.db"
    assert (ModelError("x").kind, ModelError("x", kind="server_error", status=500).status) == (
        "unknown",
        500,
    )
    assert ContextOverflowError("x").kind == "context_overflow"
