"""Drives the offline model with the real file tools, and reads its answer without its own code."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from loopwright.providers.offline.model import OfflineModel
from loopwright.tools.contract import ToolContext, ToolRegistry
from loopwright.tools.files import FILE_TOOLS
from loopwright.tools.registry import registry

QUESTION = "What is in this folder and what is left to do in it?"
MOST_TURNS = 15
Place = tuple[str, int]


@dataclass
class Dialogue:
    """A transcript that ends with an answer; `turns` counts the requests of the last question."""

    messages: list[AnyMessage]
    turns: int

    @property
    def answer(self) -> str:
        """The text of the last answer."""
        return self.messages[-1].text

    def calls(self) -> list[str]:
        """The names of the tools that were called, in order."""
        made = (m.tool_calls for m in self.messages if isinstance(m, AIMessage))
        return [call["name"] for calls in made for call in calls]


async def ask(
    folder: Path,
    question: str = QUESTION,
    *,
    before: Sequence[AnyMessage] = (),
    tools: ToolRegistry | None = None,
) -> Dialogue:
    """Ask the model and run its calls on the folder until it answers."""
    offered = tools if tools is not None else registry(FILE_TOOLS)
    schemas = [
        {"type": "function", "function": {"name": t.name, "parameters": t.parameters}}
        for t in offered.tools
    ]
    model = OfflineModel().bind_tools(schemas)
    messages: list[AnyMessage] = [*before, HumanMessage(question)]
    for turn in range(1, MOST_TURNS + 1):
        reply = await model.ainvoke(messages)
        messages.append(reply)
        if not reply.tool_calls:
            return Dialogue(messages, turn)
        for call in reply.tool_calls:
            messages.append(await run(offered, call["name"], call["args"], str(call["id"]), folder))
    raise AssertionError(f"no answer after {MOST_TURNS} turns")


async def run(
    tools: ToolRegistry, name: str, arguments: dict[str, object], call_id: str, folder: Path
) -> ToolMessage:
    """The result message of one call."""
    tool = tools.get(name)
    assert tool is not None
    context = ToolContext(thread="t", run_id="r", call_id=call_id, workspace=folder)
    try:
        result = await tool.execute(arguments, context)
    except ValueError as error:
        return ToolMessage(str(error), tool_call_id=call_id, name=name, status="error")
    status = "error" if result.is_error else "success"
    return ToolMessage(result.content, tool_call_id=call_id, name=name, status=status)


def cited(answer: str, folder: Path) -> dict[Place, str]:
    """The places that an answer lists, each with the text behind it; names come from the disk."""
    names = sorted(names_below(folder), key=len, reverse=True)
    found = {}
    for line in answer.split("\n"):
        name = next((n for n in names if line.startswith(f"- {n}:")), None)
        if name is not None:
            number, text = re.fullmatch(r"(\d+): (.*)", line.removeprefix(f"- {name}:")).groups()  # type: ignore[union-attr]
            found[name, int(number)] = text
    return found


def names_below(folder: Path) -> list[str]:
    """All files below a folder but links, as the tools name them."""
    files = (p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    return [path.relative_to(folder).as_posix() for path in files]


def grep(folder: Path, pattern: str) -> dict[Place, str]:
    """Every line of a text file that matches, unless it says that it is a decoy."""
    found = {}
    for name in names_below(folder):
        data = (folder / name).read_bytes()
        if b"\0" in data:
            continue
        lines = re.split(r"\r\n|\n|\r", data.decode("utf-8", "replace"))
        for number, line in enumerate(lines, 1):
            if re.search(pattern, line) and "decoy" not in line:
                found[name, number] = line.strip()
    return found
