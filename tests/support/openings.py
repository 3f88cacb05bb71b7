"""The states that a run finds when it begins, and how `load` answers."""

from typing import Any

from langchain_core.messages import AnyMessage

from loopwright.runs import Update
from loopwright.state.schema import Admission, AgentState
from tests.support.states import Scene, record, state


def opening(messages: list[AnyMessage], *prompts: AnyMessage, **channels: Any) -> AgentState:
    """The state that a run with these prompts finds."""
    channels.setdefault("run", record(id="last", status="ended"))
    given = Admission(kind="prompt", messages=list(prompts))
    return state(messages, "done", input=given, **channels)


def continuing(messages: list[AnyMessage]) -> AgentState:
    given = Admission(kind="continue", messages=[])
    return opening(messages) | {"input": given}


def kind(update: Update) -> str:
    return str(update["decision"]["kind"])


def refusal(made: Scene) -> Any:
    assert not made.events
    assert not made.run.appended
    return made.run.refusal
