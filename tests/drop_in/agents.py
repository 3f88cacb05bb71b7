"""Other people's agents with a scripted model, over any saver, and what is told of their threads.

The model decides by the transcript, so that a thread goes on in any process.
"""

import re
from collections.abc import Callable
from itertools import repeat
from typing import Any
from uuid import uuid4

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool

from loopwright.testing import Response, ScriptedModel
from tests.support.graphs import on
from tests.support.savers import Saver, told

_ID = re.compile(r"(?:lc_run--)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-\d+)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+]+")


def look(at: int) -> str:
    """Look at a place."""
    return f"seen at {at}: {'more ' * 100}"


def answer(messages: list[BaseMessage]) -> Response | str:
    """So many turns of two calls as the prompt says, then text. A path is written to."""
    at = max(at for at, message in enumerate(messages) if isinstance(message, HumanMessage))
    wanted, *path = str(messages[at].text).split()
    turn = sum(isinstance(message, ToolMessage) for message in messages[at:]) // 2
    if turn == int(wanted):
        return f"done after {len(messages)}"
    id = f"c{len(messages)}"
    name = "look"
    arguments: dict[str, Any] = {"at": turn + 1}
    if path and turn % 7 == 0:
        name, arguments = "write_file", {"file_path": f"{path[0]}{turn}", "content": "notes " * 20}
    calls = [(f"{id}a", "look", {"at": turn}), (f"{id}b", name, arguments)]
    return Response(text="thinking", calls=calls)


def langchain_agent(saver: Saver, tools: Any = (look,), **options: Any) -> Any:
    """langchain's agent."""
    model, offered = ScriptedModel(repeat(answer)), [_tool(tool) for tool in tools]
    return create_agent(model, offered, checkpointer=saver, **options)


def deep_agent(saver: Saver) -> Any:
    """deepagents' agent; messages and files are DeltaChannels."""
    return create_deep_agent(ScriptedModel(repeat(answer)), [_tool(look)], checkpointer=saver)


def _tool(function: Callable[..., Any]) -> Any:
    return StructuredTool.from_function(function)


AGENTS: dict[str, tuple[Callable[[Saver], Any], tuple[str, ...]]] = {
    "create_agent": (langchain_agent, ("12", "0", "3")),
    "deepagents": (deep_agent, ("26 /notes/", "0", "5 /more/")),
}
"""Each agent, and the prompts of a thread. The long run is one that snapshots a DeltaChannel."""


def converse(graph: Any, prompts: tuple[str, ...], thread: str = "t") -> None:
    """One run for each prompt.

    The prompts have ids: LangGraph gives them one while a saver's thread may be storing them.
    """
    for prompt in prompts:
        given = {"messages": [HumanMessage(prompt, id=str(uuid4()))]}
        graph.invoke(given, on(thread), durability="sync")


def history(graph: Any, limit: int | None = None, thread: str = "t") -> list[str]:
    """All that is told of a thread, the newest first; its ids are numbered as they appear."""
    ids: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return ids.setdefault(match[0], f"id{len(ids)}")

    texts = [str(told(snapshot)) for snapshot in graph.get_state_history(on(thread), limit=limit)]
    return [_ID.sub(number, _TIME.sub("time", text)) for text in texts]
