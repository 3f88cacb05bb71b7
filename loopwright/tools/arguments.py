"""Checks the arguments of a call before its tool sees them: bounds, coercion, JSON schema.

How a value is coerced lives in `coercion`; raw text that a model sent is parsed by the providers.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from pydantic import ValidationError as ModelValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from loopwright.errors import ConfigurationError
from loopwright.settings import Limits
from loopwright.tools.coercion import Coercion, copied
from loopwright.tools.contract import JsonObject, Tool

MOST_FAULTS = 20
"""Faults that one error text lists."""

MOST_FAULT_TEXT = 240
"""Characters of one fault in an error text."""


@dataclass(frozen=True, kw_only=True)
class ArgumentRules:
    """What arguments may look like. The defaults only stop the absurd; a preset may be stricter.

    Depth, values, entries and characters count as S0-13 says: `depth` containers below the root,
    `values` with the root, `entries` are object fields and array slots, `characters` are the code
    points of all keys and strings.
    """

    depth: int = 64
    values: int = 200_001
    entries: int = 200_000
    characters: int = 4_000_000

    coerce: bool = True
    """Whether a value of the wrong type is converted where that is certain ("5" for a number)."""

    fill_nulls: bool = False
    """Whether a null for a required text, number or boolean becomes "", 0 or false."""

    def within(self, limits: Limits) -> Self:
        """The same rules, or the limits where those are tighter."""
        return replace(
            self,
            depth=min(self.depth, limits.argument_depth),
            values=min(self.values, limits.argument_values),
            entries=min(self.entries, limits.argument_entries),
            characters=min(self.characters, limits.argument_characters),
        )


DEFAULT_RULES = ArgumentRules()
"""The rules of a runtime without a preset."""


class InvalidArguments(ValueError):
    """The arguments do not fit the tool; the message is for the model, one fault per line."""

    def __init__(self, tool: str, faults: Iterable[str]) -> None:
        super().__init__("\n".join([f'Validation failed for tool "{tool}":', *_bounded(faults)]))


def validate(tool: Tool, arguments: Any, rules: ArgumentRules = DEFAULT_RULES) -> JsonObject:
    """A checked copy of the arguments, coerced to the tool's schema.

    The given arguments are not changed. Raises InvalidArguments, whose text starts
    `Validation failed for tool "NAME":` and then says path and reason, one fault per line.
    """
    if found := violations(arguments, rules):
        raise InvalidArguments(tool.name, found.values())
    validator = _validator(tool.parameters)
    try:
        if rules.coerce:
            checked: JsonObject = Coercion(validator, rules.fill_nulls).apply(arguments)
        else:
            checked = copied(arguments)
        faults = [_fault(error) for error in validator.iter_errors(checked)]
    except Unresolvable as error:
        raise InvalidArguments(tool.name, [f"the tool's schema is broken: {error}"]) from error
    except RecursionError as error:  # JSON inside a text may be deeper than the bounds allow
        raise InvalidArguments(tool.name, ["too many containers inside one another"]) from error
    if faults:
        raise InvalidArguments(tool.name, faults)
    return checked


def violations(arguments: Any, rules: ArgumentRules) -> dict[str, str]:
    """The bounds that the arguments break, each with a text: TYPE, DEPTH, VALUES, ENTRIES, STRING.

    Looks at no more of them than it takes to know, so that a cycle ends too (S0-13).
    """
    if not isinstance(arguments, dict):
        name = "null" if arguments is None else type(arguments).__name__
        return {"TYPE": f"the arguments must be a JSON object, not {name}"}
    tally = _Tally(rules)
    pending: list[tuple[Any, int]] = [(arguments, 0)]
    while pending and tally.entries <= rules.entries:
        value, depth = pending.pop()
        if tally.takes(value, depth):
            children = value.values() if isinstance(value, dict) else value
            pending.extend((child, depth + 1) for child in children)
    return tally.found()


class _Tally:
    """Counts what arguments hold, value by value."""

    def __init__(self, rules: ArgumentRules) -> None:
        self.entries = 0
        self._rules = rules
        self._characters = 0
        self._faults: dict[str, str] = {}

    def takes(self, value: Any, depth: int) -> bool:
        """Count one value; whether it is a container to go into."""
        self._characters += _characters(value)
        if not _is_json(value):
            self._faults["TYPE"] = f"a value of type {type(value).__name__} is not JSON"
        if not isinstance(value, dict | list):
            return False
        if depth > self._rules.depth:
            self._faults["DEPTH"] = f"more than {self._rules.depth} containers inside one another"
            return False
        self.entries += len(value)
        return True

    def found(self) -> dict[str, str]:
        for name, count, most, what in (
            ("ENTRIES", self.entries, self._rules.entries, "fields and items"),
            ("VALUES", self.entries + 1, self._rules.values, "values"),
            ("STRING", self._characters, self._rules.characters, "characters"),
        ):
            if count > most:
                self._faults[name] = f"more than {most:,} {what}"
        return self._faults


def check_schema(tool: Tool) -> None:
    """Raises ConfigurationError when the tool's parameters are no JSON schema of an object."""
    kind = tool.parameters.get("type", "object")
    if kind != "object":
        raise ConfigurationError(
            f"tool {tool.name!r}: its parameters are of type {kind!r}: use a schema of type object",
            field="tools",
        )
    validator = validator_for(tool.parameters, default=Draft202012Validator)
    try:
        validator.check_schema(tool.parameters)
    except SchemaError as error:
        raise ConfigurationError(
            f"tool {tool.name!r}: its parameters are no JSON schema: "
            f"{_path(error.absolute_path)}: {error.message[:MOST_FAULT_TEXT]}",
            field="tools",
        ) from error


def model_faults(error: ModelValidationError) -> list[str]:
    """The faults that pydantic found, in the form of an InvalidArguments's lines."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [f"{_path(fault['loc'])}: {fault['msg']}" for fault in found]


def _validator(schema: JsonObject) -> Validator:
    """References are looked up in the schema itself only, never fetched from anywhere.

    The last schemas' validators are kept; each holds its schema, so the id is not another's.
    """
    known = _validators.get(id(schema))
    if known is None:
        if len(_validators) >= _VALIDATORS_KEPT:
            _validators.clear()
        known = validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())
        _validators[id(schema)] = known
    return known


_VALIDATORS_KEPT = 256
_validators: dict[int, Validator] = {}


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int | list)


def _characters(value: Any) -> int:
    if isinstance(value, dict):
        return sum(len(key) for key in value if isinstance(key, str))
    return len(value) if isinstance(value, str) else 0


def _fault(error: ValidationError) -> str:
    """The most telling fault: of a union, the one in the branch that came closest."""
    deepest = best_match([error]) or error
    return f"{_path(deepest.absolute_path)}: {deepest.message}"


def _path(steps: Iterable[str | int]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.lstrip(".") or "arguments"


def _bounded(faults: Iterable[str]) -> Iterator[str]:
    every = list(faults)
    for fault in every[:MOST_FAULTS]:
        line = " ".join(fault.split())
        yield f"- {line[:MOST_FAULT_TEXT]}{' ...' if len(line) > MOST_FAULT_TEXT else ''}"
    if len(every) > MOST_FAULTS:
        yield f"- ... and {len(every) - MOST_FAULTS} more"
