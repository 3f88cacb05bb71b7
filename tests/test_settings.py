"""What may be set: checked when it is set, JSON and back, nothing read before it is asked for."""

import json
from pathlib import Path
from typing import Any

import pytest

from loopwright.errors import ConfigurationError
from loopwright.settings import Environment, Limits, Settings


@pytest.mark.parametrize("turns", [0, -1, True, False, 3.0, float("nan"), "3", None])
def test_a_limit_is_a_whole_number_of_at_least_one(turns: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"limits\.turns is .* at least 1") as error:
        Limits(turns=turns)
    assert error.value.field == "limits.turns"


def limit(name: str, value: Any) -> Any:
    """What limits make of one of them."""
    return getattr(Limits(**{name: value}), name)


OPTIONAL = ("tokens", "chunks", "text", "blocks", "initial_messages", "result_characters")
NEEDED = ("argument_depth", "argument_values", "argument_entries", "argument_characters")


@pytest.mark.parametrize("name", [*OPTIONAL, *NEEDED])
@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", float("nan"), float("inf"), 2**53])
def test_a_bound_is_a_whole_number_or_absent(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"limits\.{name} is .*: use a whole number") as e:
        limit(name, value)
    assert e.value.field == f"limits.{name}"
    assert limit(name, 2**53 - 1) == 2**53 - 1


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_bound_may_be_absent(name: str) -> None:
    assert limit(name, None) is None


@pytest.mark.parametrize("name", NEEDED)
def test_the_bounds_of_arguments_may_not_be_absent(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is None"):
        limit(name, None)


@pytest.mark.parametrize("name", ["seconds", "cost"])
@pytest.mark.parametrize("value", [0, -1.5, True, "1", float("nan"), float("inf")])
def test_an_amount_is_a_number_above_zero(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"limits\.{name} is .*: use a number above 0"):
        limit(name, value)
    assert limit(name, 0.5) == 0.5
    assert limit(name, 3) == 3


@pytest.mark.parametrize("value", [1, None, "yes"])
def test_a_switch_is_true_or_false(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"limits\.last_answer is .*: use True or False"):
        Limits(last_answer=value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("request_offset", -1),
        ("request_offset", True),
        ("request_offset", 1.5),
        ("tool_timeout", 0),
        ("tool_timeout", float("nan")),
        ("tool_timeout", "1"),
        ("compaction_threshold", 0),
        ("compaction_threshold", 1.1),
        ("compaction_tail", 0),
        ("compaction_tail", True),
        ("context_window", 0),
        ("context_window", 1.5),
    ],
)
def test_a_setting_out_of_its_range_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=field) as error:
        Settings(**{field: value})
    assert error.value.field == field


def test_settings_come_back_equal_from_their_json() -> None:
    limits = Limits(turns=3, last_answer=True, seconds=1.5, cost=2, tokens=9, chunks=8)
    settings = Settings(model="m", tools=("a", "b"), limits=limits, tool_timeout=1.5)
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings
    assert Settings.from_json({}) == Settings()


def test_an_unknown_setting_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="unknown setting 'turns'"):
        Settings.from_json({"turns": 3, "wrong": 1})


def test_an_unknown_limit_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="unknown limit 'rounds'"):
        Settings.from_json({"limits": {"rounds": 3}})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tool_execution", "side by side"),
        ("steering_mode", "some"),
        ("follow_up_mode", "none"),
        ("cancel_policy", "forget"),
        ("repair_policy", "sometimes"),
        ("journal_sync", "twice"),
        ("protocol", "loose"),
    ],
)
def test_a_policy_that_does_not_exist_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{field} is '{value}': use ") as error:
        Settings(**{field: value})
    assert error.value.field == field


def test_settings_cannot_change_under_a_run() -> None:
    with pytest.raises(AttributeError):
        Settings().model = "other"  # type: ignore[misc]


def test_the_environment_is_read_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPWRIGHT_MODEL", "openai/x")
    monkeypatch.setenv("LOOPWRIGHT_DATABASE", str(tmp_path / "t.db"))
    monkeypatch.setenv("LOOPWRIGHT_API_KEY", "secret")
    environment = Environment()
    assert (environment.model, environment.database_path()) == ("openai/x", tmp_path / "t.db")
    assert "secret" not in repr(environment)
    monkeypatch.delenv("LOOPWRIGHT_DATABASE")
    assert Environment().database_path().name == "threads.db"


def test_tracing_is_off_unless_our_own_variable_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    assert Environment().tracing is False
    monkeypatch.setenv("LOOPWRIGHT_TRACING", "1")
    assert Environment().tracing is True
