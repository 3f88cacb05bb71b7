"""What was found out in a case about storage, and the keys of `expect` that speak of it.

A fact has a name (`db_mb`); a key is that name, or a bound on it (`db_mb_max`, `max_write_ms`).
"""

from collections.abc import Callable, Mapping
from typing import Any

from tests.conformance.checks import PEOPLE, Check, equal, unmet
from tests.conformance.running import same

Facts = Mapping[str, Any]
"""By their names. What a case does not find out has none: a key about it is not known there."""

Relation = Callable[[Any, Any], bool]

_BOUNDS: dict[str, Relation] = {
    "{}": same,
    "{}_any_of": lambda value, wanted: any(same(value, one) for one in wanted),
    "{}_between": lambda value, wanted: wanted[0] <= value <= wanted[1],
    "{}_max": lambda value, most: value <= most,
    "{}_min": lambda value, least: value >= least,
    "max_{}": lambda value, most: value <= most,
    "min_{}": lambda value, least: value >= least,
}


def checks_of(facts: Facts) -> dict[str, Check]:
    """One check for each key that these facts can meet."""
    checks: dict[str, Check] = {**PEOPLE, "any_of": _any_of}
    for name, value in facts.items():
        for form, relation in _BOUNDS.items():
            checks[form.format(name)] = _check(value, relation)
        if name.endswith("_s"):
            checks[f"{name[:-2]}_within_s"] = _check(value, _BOUNDS["{}_max"])
    return checks


def _check(value: Any, relation: Relation) -> Check:
    def check(facts: Facts, wanted: Any) -> str | None:
        if isinstance(wanted, dict) and isinstance(value, dict):  # {thread: rows}
            return equal({name: value.get(name) for name in wanted}, wanted)
        return None if relation(value, wanted) else f"is {value!r}, expected {wanted!r}"

    return check


def _any_of(facts: Facts, expectations: list[dict[str, Any]]) -> str | None:
    reasons = [unmet(expect, facts, checks_of(facts)) for expect in expectations]
    return None if [] in reasons else f"none is met: {reasons}"


def reasons(expect: Mapping[str, Any], facts: Facts) -> list[str]:
    """Why the facts do not meet what is expected."""
    return unmet(expect, facts, checks_of(facts))
