"""The last turn of a ledger: its assistant message, its results, and what hooks are shown of it.

Reading only; what a turn leads to is decided by the nodes.
"""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from loopwright.errors import StateError
from loopwright.hooks import TurnContext
from loopwright.runs import Run, context, ledger
from loopwright.state.schema import AgentState


def last_turn(messages: Sequence[AnyMessage]) -> tuple[AIMessage, list[ToolMessage]]:
    """The last assistant message and the results behind it, in order; O(last turn).

    Raises StateError if there is no assistant message.
    """
    results: list[ToolMessage] = []
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return message, results[::-1]
        if isinstance(message, ToolMessage):
            results.append(message)
    raise StateError("the transcript has no assistant message: its turn was removed by an edit")


def turn_context(state: AgentState, run: Run) -> TurnContext:
    """The finished turn for a hook; all lists are fresh."""
    messages = ledger(state, run)
    message, results = last_turn(messages)
    return TurnContext(
        message=message,
        tool_results=results,
        messages=context(state, run),
        system_prompt=state["system_prompt"],
        new_messages=messages[state["run"]["first"] :],
        signal=run.signal,
    )
