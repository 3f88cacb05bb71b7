"""The document's state: plain JSON of one session, and the transcript that the core keeps of it.

What a run does to it is in `loop`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from typing_extensions import TypedDict

from loopwright.errors import InputError
from loopwright.plans import Plan
from loopwright.state.messages import calls, error_of, new_id
from loopwright.state.notes import note, rule_of
from loopwright.watching import is_not_executed

SYSTEM_PROMPT = "You are an agent that works step by step, with tools where they are needed."

_NUMBERED = re.compile(r"\s*\d+[.)]\s*(.*?)(?P<done>\s\(done\))?\s*")

ChatMessage = dict[str, Any]
"""A message as chat servers write it: role, content, tool_calls, tool_call_id."""


class ToolOutput(TypedDict):
    """What one executed call came to."""

    callId: str
    name: str
    output: Any


class AgentState(TypedDict):
    """One session, in JSON values only; whoever has it may go on from it (S4-01)."""

    sessionId: str
    messages: list[ChatMessage]
    plan: NotRequired[str]
    toolResults: list[ToolOutput]
    iteration: int
    tokenUsed: int
    status: Literal["running", "done", "aborted"]
    abortReason: NotRequired[str]


def create_initial_state(
    session_id: str, user_query: str, *, system_prompt: str = SYSTEM_PROMPT
) -> AgentState:
    """A session that has not begun: the system's message and the user's, and zeros (S4-02)."""
    messages = [
        {"role": "system", "content": system_prompt},
        {"role": "user", "content": user_query},
    ]
    return AgentState(
        sessionId=session_id,
        messages=messages,
        toolResults=[],
        iteration=0,
        tokenUsed=0,
        status="running",
    )


def abort(state: AgentState, reason: str) -> AgentState:
    """A new state that is aborted for this reason; the given one stays as it is."""
    return AgentState(**{**state, "status": "aborted", "abortReason": reason})


def is_error(output: Any) -> bool:
    """Whether an output is the shape of a failure: `{"error": true, "message"}`."""
    return isinstance(output, dict) and output.get("error") is True


def failed(message: str) -> dict[str, Any]:
    """The output of a call that went wrong (S4-06)."""
    return {"error": True, "message": message}


# ---- into the core


def core_messages(state: AgentState) -> tuple[str, list[AnyMessage]]:
    """The system prompt and the transcript. Raises InputError, naming the message, for one that is
    none of the four roles or lacks a field.
    """
    messages = list(state["messages"])
    prompt = ""
    if messages and messages[0].get("role") == "system":
        prompt = str(messages.pop(0)["content"])
    outputs = {result["callId"]: result for result in state["toolResults"]}
    names: dict[str, str] = {}
    made: list[AnyMessage] = []
    for at, message in enumerate(messages):
        try:
            made.append(_core_message(message, outputs, names))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"message {at} of the state is none: {error!r}") from error
    return prompt, made


def _core_message(
    message: ChatMessage, outputs: Mapping[str, ToolOutput], names: dict[str, str]
) -> AnyMessage:
    """One message; `names` are the tools of the calls so far, by call id."""
    match message["role"]:
        case "system":
            return note(message["content"], "planner")
        case "user":
            return HumanMessage(message["content"], id=new_id())
        case "assistant":
            answer = core_answer(message)
            names.update((call.id, call.name) for call in calls(answer))
            return answer
        case "tool":
            return _core_result(message, outputs, names)
    raise ValueError(f"unknown role {message['role']!r}")


def core_answer(message: ChatMessage) -> AIMessage:
    """A planner's message: arguments that are no JSON object make a call that cannot run."""
    whole, broken = [], []
    for call in message.get("tool_calls") or []:
        name, text, id = call["function"]["name"], call["function"]["arguments"], str(call["id"])
        try:
            arguments = json.loads(text)
            if not isinstance(arguments, dict):
                raise ValueError("they are no JSON object")
            whole.append({"id": id, "name": name, "args": arguments, "type": "tool_call"})
        except (TypeError, ValueError) as error:
            fault = f"its arguments cannot be read: {error}"
            broken.append({"id": id, "name": name, "args": str(text), "error": fault})
    return AIMessage(
        message.get("content") or "",
        id=new_id(),
        tool_calls=whole,
        invalid_tool_calls=[{**call, "type": "invalid_tool_call"} for call in broken],
    )


def _core_result(
    message: ChatMessage, outputs: Mapping[str, ToolOutput], names: Mapping[str, str]
) -> ToolMessage:
    id, content = str(message["tool_call_id"]), str(message["content"])
    known = outputs.get(id)
    return ToolMessage(
        content,
        tool_call_id=id,
        name=names.get(id, known["name"] if known else ""),
        artifact=None if known is None else {"output": known["output"]},
        status="error" if is_error(output_of(content)) else "success",
        id=new_id(),
    )


def output_of(content: str) -> Any:
    """The JSON value of a content, or the text itself."""
    try:
        return json.loads(content)
    except ValueError:
        return content


def core_plan(text: str) -> Plan:
    """A plan from its text: a step each line, with or without a number."""
    found = [_NUMBERED.fullmatch(line) for line in text.splitlines() if line.strip()]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    steps = [match[1] if match else line for match, line in zip(found, lines, strict=True)]
    done = tuple(n for n, match in enumerate(found, 1) if match and match["done"])
    return Plan(steps=tuple(steps), done=done)


# ---- out of the core


def chat_messages(messages: Sequence[AnyMessage]) -> list[ChatMessage]:
    """The transcript in the document's form, without failed answers."""
    told = (_chat_message(message) for message in messages if error_of(message) is None)
    return [message for message in told if message is not None]


def _chat_message(message: AnyMessage) -> ChatMessage | None:
    if isinstance(message, AIMessage):
        return _chat_answer(message)
    if isinstance(message, ToolMessage):
        content = _compact(shown_output(message))
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": content}
    if isinstance(message, SystemMessage) and rule_of(message):
        return {"role": "system", "content": message.text}
    return {"role": "user", "content": message.text} if message.type == "human" else None


def call_form(id: str, name: str, arguments: Any) -> dict[str, Any]:
    """A call in the document's form; arguments that could not be read stay as they are."""
    text = arguments if isinstance(arguments, str) else _compact(arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _chat_answer(message: AIMessage) -> ChatMessage:
    made = [call_form(call.id, call.name, call.arguments) for call in calls(message)]
    answer: ChatMessage = {"role": "assistant", "content": message.text}
    return {**answer, "tool_calls": made} if made else answer


def shown_output(message: ToolMessage) -> Any:
    """What a result says: the executor's output, or the failure that kept the call from it."""
    artifact = message.artifact
    if isinstance(artifact, dict) and "output" in artifact:
        return artifact["output"]
    if message.status == "error":
        output = output_of(message.text)
        return output if is_error(output) else failed(message.text)
    return output_of(message.text)


def tool_results(messages: Sequence[AnyMessage]) -> list[ToolOutput]:
    """The outputs of all calls but those that were kept from running."""
    return [
        ToolOutput(
            callId=message.tool_call_id, name=str(message.name), output=shown_output(message)
        )
        for message in messages
        if isinstance(message, ToolMessage) and is_not_executed(message) is None
    ]
