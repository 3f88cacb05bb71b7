"""`loopwright auth` as a user calls it: a line and an exit code."""

from pathlib import Path

from tests.cli.running import loopwright
from tests.support.site import Page, Site, refused


def test_a_key_that_is_taken(tmp_path: Path) -> None:
    with Site(lambda asked: Page({"id": "c", "object": "chat.completion", "choices": []})) as site:
        given = {"LOOPWRIGHT_BASE_URL": f"{site.url}/v1", "LOOPWRIGHT_API_KEY": "sk-good"}
        done = loopwright(tmp_path, "auth", "custom/m", **given)
        (asked,) = site.asked
    assert asked.headers["authorization"] == "Bearer sk-good"
    assert (done.code, done.out, done.err) == (0, "custom/m: ok\n", "")


def test_a_key_that_is_refused_is_not_shown(tmp_path: Path) -> None:
    with Site(lambda asked: refused(f"no: {asked.headers['authorization']}")) as site:
        given = {"LOOPWRIGHT_BASE_URL": f"{site.url}/v1", "LOOPWRIGHT_API_KEY": "sk-secret"}
        done = loopwright(tmp_path, "auth", LOOPWRIGHT_MODEL="custom/m", **given)
    assert (done.code, done.out) == (1, "")
    assert done.err == "custom/m: refused: custom: HTTP 401: no: Bearer ***\n"


def test_a_server_that_is_not_there_and_a_missing_key_are_failures(tmp_path: Path) -> None:
    away = loopwright(tmp_path, "auth", "custom/m", LOOPWRIGHT_BASE_URL="http://127.0.0.1:9/v1")
    assert (away.code, away.out) == (2, "") and "onnect" in away.err
    keyless = loopwright(tmp_path, "auth", "groq/m")
    assert keyless.code == 2 and "GROQ_API_KEY" in keyless.err


def test_the_offline_model_is_always_there(tmp_path: Path) -> None:
    assert loopwright(tmp_path, "auth").out == "offline: ok\n"
