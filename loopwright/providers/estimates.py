"""Counts of an answer whose provider has counted nothing, or not all of it: estimated, and marked.

How a text is estimated is said in `tokens`, what counts cost in `prices`.
"""

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from loopwright.providers.contract import ModelRequest
from loopwright.spending import ESTIMATED
from loopwright.tokens import content_tokens, message_tokens, schema_tokens, text_tokens


def counted(message: AIMessage, request: ModelRequest) -> AIMessage:
    """The answer to a request with counts of its input and its output.

    A count that is missing or 0 though there is something to count is estimated, and the message
    marked: `response_metadata["estimated"]` is true. A total that was reported alone is kept. An
    answer that holds nothing and has no counts, as of a request that was refused, stays without.
    """
    usage = message.usage_metadata
    given, made = (usage["input_tokens"], usage["output_tokens"]) if usage else (0, 0)
    total = usage["total_tokens"] if usage else 0
    written = content_tokens(message)
    if (given > 0 and (made > 0 or not written)) or not (written or total > 0):
        return message
    if given <= 0 and made <= 0 and total > 0:
        made = min(written, total)
        given = total - made
    else:
        given = given if given > 0 else request_tokens(request)
        made = made if made > 0 else written
    filled = UsageMetadata(input_tokens=given, output_tokens=made, total_tokens=given + made)
    if usage:
        filled = {**usage, **filled}
    about = {**message.response_metadata, ESTIMATED: True}
    return message.model_copy(update={"usage_metadata": filled, "response_metadata": about})


def request_tokens(request: ModelRequest) -> int:
    """Estimated tokens of what a request sends: its system part, its messages, its tools."""
    tools = ((tool.name, tool.description, tool.parameters) for tool in request.tools)
    return (
        text_tokens(request.system_prompt)
        + sum(map(message_tokens, request.messages))
        + sum(schema_tokens(list(tool)) for tool in tools)
    )
