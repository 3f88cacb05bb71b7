"""The sentences that the loop itself says to a model; a preset may replace them (K24).

What tools and providers say is theirs.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Wording:
    """Templates with `{name}` for the called tool and `{known}` for the tools on offer."""

    unknown_tool: str = "Tool {name} not found. Available tools: {known}"
    """Answer to a call of a tool that is not on offer."""

    cut_off: str = (
        "Tool {name} was not executed: the answer was cut off by the output limit, so the call may "
        "be incomplete. Send it again, with less in one answer."
    )
    """Answer to every call of an answer that stopped at `length`."""

    truncated: str = "\n[The result was longer and is cut off here]"
    """End of a tool result that was longer than the limit."""

    last_answer: str = (
        "The turn limit is reached and no tools are left. Answer now with what you know, and say "
        "what is still open."
    )
    """What the model is told in the one request behind the turn limit."""

    nudge: str = (
        "Your last answer was empty. If the task is done, say so in one sentence; otherwise go on "
        "with it."
    )
    """What the model is told once after an answer with neither text nor calls."""

    go_on: str = "Your answer was cut off by the output limit. Go on exactly where it ended."
    """What the model is told after a text that stopped at `length`."""

    no_answer: str = "(The model ended without an answer.)"
    """The text of an empty answer that ends a run."""

    withheld: str = "(The answer was withheld by the provider: {word}.)"
    """The text of an empty answer that was filtered or refused; `{word}` is the provider's."""

    no_room: str = "(The output limit was reached before the model had written an answer.)"
    """The text of an empty answer that stopped at `length` and ends a run."""

    repeated: str = (
        "Not executed: the run goes round in circles. {name} was called with the same arguments "
        "before."
    )
    """Answer to a call that repeats others and ends the run, and to those behind it."""

    going_round: str = (
        "The last tool calls ({names}) repeat what was done before and bring nothing new "
        "({count} times now). Try something else, or answer with what you know."
    )
    """What the model is told before a run that repeats itself is ended."""

    conclude: str = (
        "The token budget is nearly used up. Give your conclusion from what you know; call no more "
        "tools."
    )
    """What the model is told once when the token budget of its run is reached."""

    over_budget: str = "Not executed: the token budget of the run is used up."
    """Answer to a call that comes behind that."""

    invalid_output: str = (
        "This is not a valid final answer:\n{faults}\nSend the whole answer again, as one JSON "
        "object that fits the schema and nothing else."
    )
    """What the model is told of an answer that does not have its form."""

    cut_output: str = (
        "The final answer was cut off by the output limit. Send the whole answer again, shorter."
    )
    """What the model is told of an answer that was cut off."""

    missing_output: str = "There is no final answer yet. Call the tool {name} with it."
    """What the model is told when it ends without calling the tool for its answer."""

    plan: str = (
        "The current plan:\n{plan}\nFollow it, calling tools where they are needed. When a step is "
        "done, say so in your answer: [Step 1 done]. Revise the plan only if results call for it."
    )
    """The system part of a request while there is a plan."""

    make_plan: str = "Make a plan for the task first: call the plan tool with its steps."
    """The system part of the request that asks another model for the plan."""

    blocked: str = "Tool execution was blocked"
    """Answer to a call that a hook blocked without a reason."""

    aborted: str = "Operation aborted"
    """Answer to a call that a cancelled run kept from starting."""

    not_executed: str = "Not executed: the run ended before this call could start."
    """Answer to a call whose message was a failed or cancelled answer."""
