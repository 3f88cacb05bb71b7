"""Secrets are found by their value, in whatever form a text holds them."""

import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from loopwright.settings import Environment
from loopwright.telemetry.redaction import REDACTED, Secrets, held

KEY = 'sk/Aß+9="x\\y\n z'
FORMS = {
    "as it is": KEY,
    "in JSON": json.dumps(KEY)[1:-1],
    "in JSON with its letters": json.dumps(KEY, ensure_ascii=False)[1:-1],
    "in JSON in JSON": json.dumps(json.dumps(KEY)[1:-1])[1:-1],
    "in a path": quote(KEY),
    "in a query": quote(KEY, safe=""),
    "in a form": quote_plus(KEY),
    "quoted in small letters": quote(KEY, safe="").lower().replace("sk%2fa", "sk%2fA"),
    "quoted twice": quote(quote(KEY, safe=""), safe=""),
    "as Python shows it": repr(KEY)[1:-1],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_found_in_every_form(form: str) -> None:
    text = Secrets([KEY]).redacted(f"before {FORMS[form]} behind")
    assert text == f"before {REDACTED} behind"


@given(secret=st.text(min_size=1), around=st.text())
def test_any_secret_is_found_in_json_within_json(secret: str, around: str) -> None:
    key = f"k-{secret}-k"
    value = json.dumps({"output": json.dumps([around, key, around])})
    found = json.loads(json.loads(Secrets([key]).redacted(value))["output"])
    assert found == [around.replace(key, REDACTED), REDACTED, around.replace(key, REDACTED)]


def test_the_longest_secret_is_found_first_and_more_may_come() -> None:
    secrets = Secrets(["abcd"])
    assert secrets.redacted("abcdefgh xyz1") == f"{REDACTED}efgh xyz1"
    secrets.add(["abcdefgh", " xyz1 "])
    assert secrets.redacted("abcdefgh xyz1") == f"{REDACTED} {REDACTED}"


def test_what_is_too_short_or_no_key_is_left() -> None:
    assert Secrets(["abc", "", "  ", "not-needed"]).redacted("abc not-needed") == "abc not-needed"


def test_the_environment_s_keys_are_held() -> None:
    environment = Environment(api_key=SecretStr("own-key-1"))
    variables = {"OPENAI_API_KEY": "sk-1234", "MY_API_KEY": "mine-5678", "HOME": "/home/me"}
    assert held(environment, variables) == ["own-key-1", "sk-1234", "mine-5678"]
