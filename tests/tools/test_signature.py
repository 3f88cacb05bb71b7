"""What a signature says about reading and binding that tools from functions do not show."""

import pytest
from pydantic import Field, ValidationError

from loopwright.errors import ConfigurationError
from loopwright.tools.signature import read
from tests.tools.running import context


def test_bound_arguments_wait_for_the_call() -> None:
    called: list[int] = []

    def body(n: int) -> None:
        called.append(n)

    bound = read("body", body).bound({"n": 1}, context())
    assert called == []
    bound()
    assert called == [1]


def test_an_alias_of_a_field_is_the_name_that_the_model_uses() -> None:
    def send(from_: str = Field(alias="from"), to: str = "me") -> str:
        return f"{from_} {to}"

    signature = read("send", send)
    assert list(signature.schema["properties"]) == ["from", "to"]
    assert signature.bound({"from": "you"}, context())() == "you me"


def test_arguments_that_do_not_fit_raise_before_anything_is_called() -> None:
    def body(n: int) -> None:
        raise AssertionError

    for wrong in ({"n": "x"}, {}, {"n": 1, "more": 2}):
        with pytest.raises(ValidationError):
            read("body", body).bound(wrong, context())


def test_a_builtin_without_a_signature_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="signature cannot be read"):
        read("dict", dict)
