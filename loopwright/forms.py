"""The form of a run's final answer, as a setting that can be stored: a JSON schema and how to ask.

What is checked against it, and which Python type comes of it, is in `structured`.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for

from loopwright.errors import ConfigurationError

OutputMode = Literal["auto", "native", "tool"]
"""How a model is held to the form: by its provider (`response_format`), or by a tool that takes the
answer. `auto` is native where the provider is known to do it, else the tool."""

VALUE = "value"
"""The field under which an answer that is no object is sent: servers and tools take objects."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_AT_ROOT = ("$defs", "definitions")


@dataclass(frozen=True, kw_only=True)
class OutputForm:
    """What the final answer must look like. Raises ConfigurationError for what is no JSON schema.

    `schema` is any JSON schema. `name` names it in a request, and is the name of the tool. After
    `repairs` answers that were sent back, the next one that does not fit ends the run.
    """

    schema: dict[str, Any]
    name: str = "final_answer"
    description: str = "Give the final answer. Call it once, when nothing else is left to do."
    mode: OutputMode = "auto"
    repairs: int = 2

    def __post_init__(self) -> None:
        if self.mode not in get_args(OutputMode):
            raise _wrong(f"mode is {self.mode!r}: use {' or '.join(get_args(OutputMode))}")
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise _wrong(f"name is {self.name!r}: use at most 64 letters, digits, '_' and '-'")
        if isinstance(self.repairs, bool) or not isinstance(self.repairs, int) or self.repairs < 0:
            raise _wrong(f"repairs is {self.repairs!r}: use a whole number of at least 0")
        if not isinstance(self.schema, dict):
            raise _wrong(f"the schema is a {type(self.schema).__name__}, not an object")
        try:
            validator_for(self.schema, default=Draft202012Validator).check_schema(self.schema)
        except SchemaError as error:
            raise _wrong(f"the schema is no JSON schema: {error.message[:240]}") from error

    @property
    def is_object(self) -> bool:
        """Whether the schema says that the answer is an object, so that it is sent as it is."""
        return self.schema.get("type") == "object"

    @property
    def sent(self) -> dict[str, Any]:
        """The schema of what the model sends: an object, with the answer in it if it is none."""
        if self.is_object:
            return self.schema
        shared = {key: self.schema[key] for key in _AT_ROOT if key in self.schema}
        inner = {key: _moved(part) for key, part in self.schema.items() if key not in shared}
        return {
            "type": "object",
            "properties": {VALUE: inner},
            "required": [VALUE],
            "additionalProperties": False,
            **{key: _moved(part) for key, part in shared.items()},
        }

    def opened(self, sent: dict[str, Any]) -> Any:
        """The answer in what the model has sent."""
        return sent if self.is_object else sent[VALUE]


def is_strict(schema: Any) -> bool:
    """Whether the schema is one that OpenAI's strict mode takes: each object closes itself and
    requires all its fields.
    """
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, dict):
        return True
    fields = schema.get("properties")
    if schema.get("type") == "object" or isinstance(fields, dict):
        closed = schema.get("additionalProperties") is False
        if not closed or set(fields or ()) != set(schema.get("required", ())):
            return False
    return all(map(is_strict, schema.values()))


def _moved(schema: Any) -> Any:
    """A part of the schema with its references where they lead to inside the larger object."""
    if isinstance(schema, list):
        return [_moved(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {key: _moved(part) for key, part in schema.items()}
    target = schema.get("$ref")
    if isinstance(target, str) and target.startswith("#"):
        stays = target.startswith(tuple(f"#/{key}/" for key in _AT_ROOT))
        moved["$ref"] = target if stays else f"#/properties/{VALUE}{target[1:]}"
    return moved


def _wrong(reason: str) -> ConfigurationError:
    return ConfigurationError(f"output: {reason}", field="output")
