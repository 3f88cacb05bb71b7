"""Suite `token_estimate`: a text as an answer that nobody has counted, and by itself."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage

from loopwright.providers.contract import ModelRequest
from loopwright.providers.estimates import counted
from loopwright.tokens import text_tokens
from tests.conformance.running import Case, difference, unknown_keys


async def drive(case: Case) -> Sequence[str]:
    """The estimate is within the bounds; the answer with this text has it as its output."""
    unknown = unknown_keys("input", case.input, ["text", "script"])
    unknown += unknown_keys("expected", case.expect, ["min", "max"])
    if unknown:
        return unknown
    text, least, most = case.input["text"], case.expect["min"], case.expect["max"]
    tokens = text_tokens(text)
    answer = counted(AIMessage(text), ModelRequest(model="m", system_prompt="", messages=[]))
    made = answer.usage_metadata["output_tokens"] if answer.usage_metadata else 0
    bounds = [] if least <= tokens <= most else [f"{tokens} is not within {least} and {most}"]
    return [*bounds, *difference("the counted output", made, tokens)]
