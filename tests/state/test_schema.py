"""The channels of a thread: an append-only ledger, and plain JSON beside it."""

import ast
import inspect
import json
from typing import Any, cast

import pytest
from langchain_core.messages import AnyMessage

from loopwright.errors import StateError
from loopwright.state import schema
from loopwright.state.schema import AgentState, append
from tests.ledgers import user
from tests.project_rules import documented_values
from tests.support.graphs import on, rig
from tests.support.providers import said


def test_the_ledger_only_grows() -> None:
    ledger: list[AnyMessage] = [user("a")]
    assert append(ledger, [user("b")]) == [user("a"), user("b")]
    assert ledger == [user("a")]


def test_an_empty_addition_keeps_the_very_list() -> None:
    ledger: list[AnyMessage] = [user("a")]
    assert append(ledger, []) is ledger


@pytest.mark.parametrize("new", [user("b"), "text", None, (user("b"),)])
def test_the_ledger_takes_lists_only(new: Any) -> None:
    with pytest.raises(StateError, match="takes a list of messages"):
        append([], new)


@pytest.mark.parametrize("name", ["AgentState", "Overrides", "View", "Cursor", "RunRecord"])
def test_every_shape_of_the_state_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(schema, name))


def test_every_channel_says_who_writes_it() -> None:
    tree = ast.parse(inspect.getsource(schema))
    (state,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "AgentState")
    documented = documented_values(ast.Module(state.body, []))
    assert documented == set(AgentState.__annotations__)


@pytest.mark.anyio
async def test_all_that_is_stored_beside_the_messages_is_plain_json() -> None:
    made = rig(said("", ("c1", "t", {"a": 1})), "done")
    await made.run({"messages": "hi"})
    values = cast(dict[str, Any], (await made.graph.aget_state(on("t"))).values)
    assert set(values) == set(AgentState.__annotations__) - {"compaction", "plan"}
    for name in set(values) - {"messages", "input"}:
        assert json.loads(json.dumps(values[name])) == values[name] or name == "settings"
    assert values["view"]["head"] == []
