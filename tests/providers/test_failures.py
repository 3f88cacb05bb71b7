"""What the exceptions of clients mean, whichever client raises them."""

import asyncio
import json
import ssl
from typing import Any

import pytest
from langchain_core import exceptions as langchain

from loopwright.errors import ContextOverflowError, ModelError
from loopwright.providers import failures
from loopwright.providers.failures import redacted


class StatusError(Exception):
    """As the SDKs have it: a status, a code, a type and the body."""

    def __init__(self, message: str = "failed", **fields: Any) -> None:
        super().__init__(message)
        for name, value in fields.items():
            setattr(self, name, value)


def named(name: str, *bases: type[Exception]) -> Exception:
    """An exception of a client that is not installed here, known by its name."""
    error: Exception = type(name, bases or (Exception,), {})("it happened")
    return error


def classify(error: BaseException) -> ModelError:
    return failures.classify(error, now=0.0)


def kind(error: BaseException) -> str:
    return classify(error).kind


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, "bad_request"),
        (401, "auth"),
        (403, "auth"),
        (404, "bad_request"),
        (408, "timeout"),
        (429, "rate_limit"),
        (500, "server_error"),
        (503, "overloaded"),
        (504, "timeout"),
        (529, "overloaded"),
    ],
)
def test_a_status_says_the_kind_and_is_kept(status: int, expected: str) -> None:
    found = classify(StatusError(status_code=status))
    assert (found.kind, found.status) == (expected, status)
    assert str(found) == f"HTTP {status}: failed"


def test_a_status_is_found_on_the_response_and_in_the_code_of_an_event() -> None:
    response = type("Response", (), {"status_code": 503})()
    assert kind(StatusError(response=response)) == "overloaded"
    assert kind(StatusError(code="529")) == "overloaded"
    assert kind(StatusError(code=529, body={"message": "busy"})) == "overloaded"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status_code": 502, "code": "unknown_parameter"}, "bad_request"),
        ({"status_code": 500, "code": "context_length_exceeded"}, "context_overflow"),
        ({"status_code": 400, "body": {"error": {"code": "content_filter"}}}, "content_policy"),
        ({"status_code": 400, "body": {"type": "exceed_context_size_error"}}, "context_overflow"),
        ({"type": "overloaded_error"}, "overloaded"),
        ({"type": "rate_limit_error"}, "rate_limit"),
        ({"type": "invalid_request_error", "status_code": 500}, "server_error"),
        ({"type": "invalid_request_error"}, "bad_request"),
    ],
)
def test_codes_win_over_the_status_and_types_stand_in_for_it(
    fields: dict[str, Any], expected: str
) -> None:
    assert kind(StatusError(**fields)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 4096 tokens.",
        "Prompt has 33,100 tokens, but the configured context size is 32,768 tokens",
        "prompt is too long: 210345 tokens > 200000 maximum",
        "The input token count (1100001) exceeds the maximum number of tokens allowed (1048576).",
        "Your request exceeded model token limit: 262144 (requested: 270001)",
        "Input is too long for requested model.",
    ],
)
def test_a_server_s_words_for_an_overflow_are_known(text: str) -> None:
    found = classify(StatusError(text, status_code=400))
    assert isinstance(found, ContextOverflowError)
    assert text in str(found)
    assert kind(StatusError(text, status_code=429)) == "rate_limit"


def test_other_limits_are_no_overflow() -> None:
    text = "max_tokens is too large: 99999. This model supports at most 4096 completion tokens."
    assert kind(StatusError(text, status_code=400)) == "bad_request"


def test_an_exception_of_the_client_itself_is_not_judged_by_its_words() -> None:
    assert kind(ValueError("a tool said: maximum context length")) == "protocol"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (langchain.ContextOverflowError("x"), "context_overflow"),
        (langchain.ModelAuthenticationError("x"), "auth"),
        (langchain.ModelRateLimitError("x"), "rate_limit"),
        (langchain.ModelTimeoutError("x"), "timeout"),
        (langchain.ModelConnectionError("x"), "network"),
        (langchain.ModelAPIError("x"), "server_error"),
        (langchain.ModelNotFoundError("x"), "bad_request"),
        (langchain.ModelRefusalError("x"), "content_policy"),
        (langchain.ModelError("x"), "unknown"),
    ],
)
def test_langchain_s_own_errors_are_known(error: Exception, expected: str) -> None:
    assert kind(error) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TimeoutError(), "timeout"),
        (ConnectionResetError("reset"), "network"),
        (ssl.SSLCertVerificationError("bad"), "tls"),
        (named("ReadTimeout"), "timeout"),
        (named("APITimeoutError", named("APIConnectionError").__class__), "timeout"),
        (named("RemoteProtocolError"), "network"),
        (named("ConnectError"), "network"),
        (named("UnsupportedProtocol", named("TransportError").__class__), "bad_request"),
        (named("APIError"), "unknown"),
        (json.JSONDecodeError("bad", "{", 1), "protocol"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "protocol"),
        (KeyError("choices"), "protocol"),
        (RuntimeError("odd"), "unknown"),
    ],
)
def test_the_exceptions_of_clients_are_known_by_family_and_name(
    error: Exception, expected: str
) -> None:
    assert kind(error) == expected


def test_a_mistake_in_a_program_is_a_bug_unless_a_client_made_it_of_an_answer() -> None:
    with pytest.raises(TypeError) as raised:
        len(5)  # type: ignore[arg-type]
    assert kind(raised.value) == "bug"
    assert str(classify(AssertionError("no"))) == "AssertionError: no"
    with pytest.raises(TypeError) as raised:
        json.dumps({1, 2})
    assert kind(raised.value) == "protocol"


def test_what_nothing_knows_may_pass() -> None:
    assert (kind(named("Surprise")), classify(named("Surprise")).action) == ("unknown", "retry")
    assert kind(asyncio.CancelledError()) == "cancelled"


def test_an_error_of_ours_stays_itself() -> None:
    ours = ModelError("x", kind="server_error")
    assert classify(ours) is ours


def test_the_server_s_message_is_the_text_and_a_cause_is_added() -> None:
    body = {"error": {"message": "no such model"}}
    assert "HTTP 404: no such model" == str(classify(StatusError(status_code=404, body=body)))
    outer = ConnectionError("Connection error.")
    outer.__cause__ = OSError("no route to host")
    assert str(classify(outer)) == "Connection error. (no route to host)"
    assert str(classify(TimeoutError())) == "TimeoutError"


def test_a_web_page_as_an_answer_is_cut() -> None:
    assert len(str(classify(StatusError("<html>" * 10_000, status_code=502)))) == 2_000


def test_secrets_are_taken_out_of_a_text() -> None:
    assert redacted("key sk-abc and sk-abcdef", ["sk-abc", "sk-abcdef"]) == "key *** and ***"
    assert redacted("a bad key", ["a", ""]) == "a bad key"
