"""Tools' schemas in the words that every server understands; and a tool as it is sent.

Arguments are checked against the schema as it was given (`tools.arguments`), never against this.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from loopwright.providers.dialect import Dialect
from loopwright.providers.wire.names import ToolNames
from loopwright.text import clean_json, clean_text
from loopwright.tools.contract import Tool

Schema = dict[str, Any]

MOST_NESTED = 1
"""How often a schema that refers to itself is written out inside itself."""

MOST_REFERRED = 1_000
"""Subschemas of one tool that are written out for references; the next ones are left open."""

MOST_DEPTH = 40
"""Subschemas inside one another; what lies below is left open."""

_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_UNIONS = ("anyOf", "oneOf")
_OF_OBJECTS = frozenset({"properties", "required", "additionalProperties"})
_OF_ARRAYS = frozenset({"items", "prefixItems"})
_KEPT = frozenset(
    {
        *("title", "description", "default", "examples", "deprecated", "format", "pattern"),
        *("minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
    }
)
"""Words that are sent as they stand. Without any other a schema allows more, never less."""

_ABOUT = ("title", "description", "default", "examples")
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (str, "string"),
    (int, "integer"),
    (float, "number"),
)


def tool_form(tool: Tool, names: ToolNames, dialect: Dialect) -> dict[str, Any]:
    """A tool in OpenAI's words, which langchain's models all understand."""
    schema = tool.parameters if dialect.schemas == "full" else simple_schema(tool.parameters)
    function = {
        "name": names.sent(tool.name),
        "description": clean_text(tool.description),
        "parameters": clean_json(schema),
    }
    return {"type": "function", "function": function}


def simple_schema(schema: Schema) -> Schema:
    """The schema of a tool's arguments without what servers refuse.

    An object on top and no union beside it; references written out, to a bounded depth; no null
    among types and values; `items` in every array. What fits the given schema fits this one too,
    but for nulls, which an optional field says by not being there.
    """
    simple = _Writer(schema).write(schema, (), 0) or {}
    about: Schema = {key: simple[key] for key in ("title", "description") if key in simple}
    return {"type": "object", **about, **_one_object(list(_objects(simple)))}


class _Writer:
    """Writes one schema anew, part by part. A part that allows null alone is None."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = MOST_REFERRED

    def write(self, schema: Any, inside: tuple[str, ...], depth: int) -> Schema | None:
        """A part; `inside` are the references that led to it."""
        self._left -= bool(inside)
        if not isinstance(schema, dict) or depth > MOST_DEPTH or self._left < 0:
            return {}  # also `true` and `false`: nothing is said of it
        if _REFERENCES & schema.keys():
            return self._referred(schema, inside, depth)
        if "allOf" in schema:
            return self._all(schema, inside, depth)
        if unions := [name for name in _UNIONS if isinstance(schema.get(name), list)]:
            return self._union(schema, unions, inside, depth)
        return self._single(schema, inside, depth)

    def _referred(self, schema: Schema, inside: tuple[str, ...], depth: int) -> Schema | None:
        """What a reference leads to, with what stands beside it."""
        reference = schema.get("$ref")
        rest = {key: value for key, value in schema.items() if key not in _REFERENCES}
        target = _target(self._root, reference)
        if inside.count(str(reference)) > MOST_NESTED:
            kind = target.get("type") if isinstance(target, dict) else None
            target = {"type": kind} if isinstance(kind, str) else {}
        found = self.write(target, (*inside, str(reference)), depth + 1)
        beside = self.write(rest, inside, depth + 1)
        return None if found is None or beside is None else _both(beside, found)

    def _all(self, schema: Schema, inside: tuple[str, ...], depth: int) -> Schema | None:
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        whole = self.write(rest, inside, depth + 1)
        for part in _listed(schema["allOf"]):
            written = self.write(part, inside, depth + 1)
            if whole is None or written is None:
                return None
            whole = _both(whole, written)
        return whole

    def _union(
        self, schema: Schema, unions: list[str], inside: tuple[str, ...], depth: int
    ) -> Schema | None:
        """The branches that are not null; a second union beside the first one is left out."""
        rest = {key: value for key, value in schema.items() if key not in _UNIONS}
        base = self.write(rest, inside, depth + 1)
        written = [self.write(part, inside, depth + 1) for part in schema[unions[0]]]
        branches = _distinct(branch for branch in written if branch is not None)
        if base is None or not branches:
            return None
        if len(branches) == 1:
            return _both(base, branches[0])
        if base.keys() <= {"type"}:  # said by the branches more exactly
            base = {}
        return {**base, "anyOf": branches} if {} not in branches else base

    def _single(self, schema: Schema, inside: tuple[str, ...], depth: int) -> Schema | None:
        kinds, values = _kinds(schema), _values(schema)
        if kinds == [] or values == []:
            return None
        if len(kinds or ()) > 1 and values is None:
            about = {key: schema[key] for key in _ABOUT if key in schema}
            rest = {key: value for key, value in schema.items() if key not in _ABOUT}
            split = [{**rest, "type": kind} for kind in kinds or ()]
            return self._union({**about, "anyOf": split}, ["anyOf"], inside, depth)
        simple: Schema = {"type": kinds[0]} if kinds is not None and len(kinds) == 1 else {}
        simple |= {k: v for k, v in schema.items() if k in _KEPT and (k, v) != ("default", None)}
        if values is not None:
            simple |= {**_kind_of(values), **simple, "enum": values}
        if simple.get("type") == "object":
            simple |= self._object(schema, inside, depth)
        if simple.get("type") == "array":
            simple["items"] = self._items(schema, inside, depth)
        return simple

    def _object(self, schema: Schema, inside: tuple[str, ...], depth: int) -> Schema:
        made: Schema = {}
        properties = schema.get("properties")
        if isinstance(properties, dict):
            made["properties"] = {
                name: self.write(part, inside, depth + 1) or {} for name, part in properties.items()
            }
            required = [name for name in _listed(schema.get("required")) if name in properties]
            made |= {"required": required} if required else {}
        rest = schema.get("additionalProperties")
        if isinstance(rest, dict):
            rest = self.write(rest, inside, depth + 1) or True
        return made if rest is None else {**made, "additionalProperties": rest}

    def _items(self, schema: Schema, inside: tuple[str, ...], depth: int) -> Schema:
        """What any item may be; of a tuple, whatever one of its items may be."""
        items = schema.get("items")
        parts = [*_listed(schema.get("prefixItems")), *_listed(items)]
        parts += [items] if isinstance(items, dict) else []
        written = [self.write(part, inside, depth + 1) or {} for part in parts]
        branches = _distinct(written)
        if len(branches) < 2 or {} in branches:
            return branches[0] if len(branches) == 1 else {}
        return {"anyOf": branches}


def _target(root: Schema, reference: Any) -> Any:
    """What a reference into the schema itself leads to; nothing is ever fetched."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return {}
    target: Any = root
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and name.isdecimal():
            target = dict(enumerate(target)).get(int(name))
        else:
            target = target.get(name) if isinstance(target, dict) else None
    return target


def _kinds(schema: Schema) -> list[str] | None:
    """The types that a schema names or means, without null; None if it means none."""
    named = schema.get("type")
    if isinstance(named, str):
        named = [named]
    if isinstance(named, list):
        return [kind for kind in named if kind != "null"]
    if _OF_OBJECTS & schema.keys():
        return ["object"]
    return ["array"] if _OF_ARRAYS & schema.keys() else None


def _values(schema: Schema) -> list[Any] | None:
    """The values that a schema allows, without null; None if it names none."""
    if "const" in schema:
        return [] if schema["const"] is None else [schema["const"]]
    values = schema.get("enum")
    return [value for value in values if value is not None] if isinstance(values, list) else None


def _kind_of(values: list[Any]) -> Schema:
    """The type of all of these values, if they have one."""
    found = {next((n for t, n in _TYPES if isinstance(value, t)), "") for value in values}
    return {"type": found.pop()} if len(found) == 1 and "" not in found else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _distinct(schemas: Iterable[Schema]) -> list[Schema]:
    """Each once, unions inside unions opened."""
    found: list[Schema] = []
    for schema in schemas:
        inner = schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
        found += [branch for branch in inner if branch not in found]
    return found


def _both(first: Schema, second: Schema) -> Schema:
    """A schema for what has to fit both; where they disagree, the first one's word."""
    both = {**second, **first}
    if "properties" in first and "properties" in second:
        names = [*second["properties"], *first["properties"]]
        both["properties"] = {
            name: _both(first["properties"].get(name, {}), second["properties"].get(name, {}))
            for name in names
        }
    if "required" in first and "required" in second:
        both["required"] = list(dict.fromkeys([*second["required"], *first["required"]]))
    return both


def _objects(schema: Schema) -> Iterator[Schema]:
    """The objects that a union on top allows, each whole."""
    branches = schema.get("anyOf")
    if branches is None:
        yield schema
        return
    base = {key: value for key, value in schema.items() if key != "anyOf"}
    for branch in branches:
        yield from _objects(_both(base, branch))


def _one_object(objects: list[Schema]) -> Schema:
    """One object for any of these: their fields together, required what all of them require."""
    properties: dict[str, list[Schema]] = {}
    for schema in objects:
        for name, part in schema.get("properties", {}).items():
            properties.setdefault(name, []).append(part)
    made: Schema = {"properties": {name: _any(parts) for name, parts in properties.items()}}
    first, *others = (schema.get("required", []) for schema in objects)
    if required := [name for name in first if all(name in other for other in others)]:
        made["required"] = required
    rests = _distinct({"rest": schema.get("additionalProperties", True)} for schema in objects)
    return made if rests == [{"rest": True}] or len(rests) > 1 else made | _rest(rests[0]["rest"])


def _rest(value: Any) -> Schema:
    return {"additionalProperties": value}


def _any(parts: list[Schema]) -> Schema:
    branches = _distinct(parts)
    if len(branches) == 1:
        return branches[0]
    return {} if {} in branches else {"anyOf": branches}
