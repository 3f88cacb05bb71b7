"""What may come in: every form of input, and what would change stored messages refused."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.prompts import ChatPromptTemplate
from langgraph.types import Command, Overwrite, StateUpdate

from loopwright.errors import InputError
from loopwright.graph.admission import admit, admit_update
from tests.ledgers import user


def admitted(given: Any) -> Any:
    taken = admit(given)
    assert isinstance(taken.graph_input, dict) and not taken.resumes
    return taken.graph_input["input"]


@pytest.mark.parametrize(
    "given",
    [
        "hi",
        HumanMessage("hi"),
        {"role": "user", "content": "hi"},
        {"type": "human", "content": "hi"},
        [("user", "hi")],
        {"messages": "hi"},
        {"messages": HumanMessage("hi")},
        {"messages": ["hi"]},
        {"messages": {"role": "user", "content": "hi"}},
        {"messages": ["hi"], "continue": False},
        ChatPromptTemplate.from_messages([("user", "{word}")]).invoke({"word": "hi"}),
    ],
)
def test_a_prompt_is_taken_in_any_form(given: Any) -> None:
    taken = admitted(given)
    assert taken["kind"] == "prompt"
    assert [(m.type, m.text) for m in taken["messages"]] == [("human", "hi")]


def test_an_empty_list_is_a_run_without_new_messages() -> None:
    assert admitted({"messages": []}) == {"kind": "prompt", "messages": []}


def test_a_continuation_has_no_messages() -> None:
    assert admitted({"continue": True}) == {"kind": "continue", "messages": []}
    assert admitted({"continue": True, "messages": []})["kind"] == "continue"
    with pytest.raises(InputError, match="not both"):
        admit({"continue": True, "messages": ["hi"]})


@pytest.mark.parametrize("given", [None, Command(resume="yes"), Command(resume={"c1": "yes"})])
def test_a_run_is_resumed_by_nothing_or_by_answers(given: Any) -> None:
    taken = admit(given)
    assert taken.resumes
    assert taken.graph_input is given


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Command(update={"messages": []}), "may only resume"),
        (Command(goto="finish"), "may only resume"),
        (Command(resume=1, goto="finish"), "may only resume"),
        (Command(graph=Command.PARENT, resume=1), "may only resume"),
        ({}, "no 'messages'"),
        ({"message": "hi"}, "unknown input key 'message'"),
        ({"messages": [], "view": {}}, "unknown input key 'view'"),
        ({"input": {}}, "unknown input key 'input'"),
        ({"messages": None}, "not NoneType"),
        ({"messages": 3}, "not int"),
        (3, "not int"),
        ({"messages": Overwrite([])}, "may not overwrite"),
        ({"messages": {"type": "__overwrite__", "value": []}}, "may not overwrite"),
        ({"messages": {"__overwrite__": []}}, "may not overwrite"),
        ({"messages": [{"__overwrite__": []}]}, "may not overwrite"),
        ({"type": "__overwrite__", "value": []}, "may not overwrite"),
        ({"messages": RemoveMessage("x")}, "may not remove"),
        ({"messages": [{"type": "remove", "id": "x"}]}, "not a message|may not remove"),
        ({"messages": ["hi", 3]}, "not a message"),
    ],
)
def test_what_would_write_a_channel_or_is_no_message_is_refused(given: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        admit(given)


def test_a_graph_inside_another_takes_only_the_messages_of_its_state() -> None:
    taken: Any = admit({"messages": ["hi"], "remaining": 3}, nested=True).graph_input
    assert [m.text for m in taken["input"]["messages"]] == ["hi"]


def updated(*values: Any, as_node: str | None = None) -> Any:
    steps = [[StateUpdate(value, as_node, None)] for value in values]
    return admit_update(steps, [user("stored")])


def test_an_update_may_add_messages() -> None:
    ((first,), (second,)) = updated({"messages": "hi"}, {"messages": [AIMessage("x", id="new")]})
    assert first.values["messages"][0].text == "hi"
    assert second.values["messages"][0].id == "new"


def test_an_update_of_other_channels_is_left_as_it_is() -> None:
    values = {"system_prompt": "be brief"}
    assert updated(values, None)[0][0].values is values


@pytest.mark.parametrize(
    "values",
    [
        {"messages": Overwrite([])},
        {"messages": {"__overwrite__": []}},
        {"messages": {"type": "__overwrite__", "value": []}},
        {"messages": [RemoveMessage("stored")]},
        {"messages": [user("stored", "edited")]},
        {"messages": [user("twice"), user("twice")]},
        Command(update={"messages": Overwrite([])}),
        [Command(update={"messages": Overwrite([])})],
        Command(goto="finish"),
    ],
)
def test_an_update_that_would_remove_or_replace_messages_is_refused(values: Any) -> None:
    with pytest.raises(InputError):
        updated(values)


def test_a_message_may_not_come_twice_in_the_steps_of_one_update() -> None:
    with pytest.raises(InputError, match="'new' is already stored"):
        updated({"messages": [user("new")]}, {"messages": [user("new", "edited")]})


@pytest.mark.parametrize("node", ["__start__", "__input__"])
def test_an_update_as_the_start_is_admitted_like_an_input(node: str) -> None:
    ((update,),) = updated({"messages": "hi"}, as_node=node)
    assert [m.text for m in update.values["input"]["messages"]] == ["hi"]
    with pytest.raises(InputError, match="unknown input key"):
        updated({"input": {"kind": "prompt", "messages": []}}, as_node=node)
