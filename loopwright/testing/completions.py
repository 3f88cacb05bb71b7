"""A scripted response in the words of OpenAI's chat completions: streamed payloads or one object.

How payloads are sent lives in `server`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from loopwright.testing.script import Delta, Response, deltas, ending, timeline


def stream(response: Response, asked: dict[str, Any]) -> Iterator[Any]:
    """The payloads of a streamed answer, with its waits and failures in their places."""
    if response.chunks is not None:
        content, end = list(response.chunks), []
    else:
        opening = _payload(response, asked, {"role": "assistant", "content": ""})
        content = [opening, *(_delta_payload(response, asked, d) for d in deltas(response))]
        end = [_delta_payload(response, asked, delta) for delta in ending(response)]
    yield from timeline(response, content, [*end, "[DONE]"])


def _payload(
    response: Response, asked: dict[str, Any], delta: dict[str, Any], stop: str | None = None
) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    return {**_head(response, asked, "chat.completion.chunk"), "choices": [choice]}


def _delta_payload(response: Response, asked: dict[str, Any], delta: Delta) -> dict[str, Any]:
    if delta.usage is not None:
        head = _head(response, asked, "chat.completion.chunk")
        return {**head, "choices": [], "usage": _usage(delta.usage)}
    if delta.index is not None:
        function = {"arguments": delta.arguments}
        call: dict[str, Any] = {"index": delta.index, "function": function}
        if delta.call_name is not None:
            function["name"] = delta.call_name
            call |= {"id": delta.call_id, "type": "function"}
        return _payload(response, asked, {"tool_calls": [call]})
    if delta.thinking:
        return _payload(response, asked, {"reasoning_content": delta.thinking})
    return _payload(response, asked, {"content": delta.text} if delta.text else {}, delta.stop)


def completion(response: Response, asked: dict[str, Any]) -> dict[str, Any]:
    """The whole answer in one JSON object."""
    pieces = [*deltas(response), *ending(response)]
    calls: list[dict[str, Any]] = []
    for piece in pieces:
        if piece.call_name is not None:
            function = {"name": piece.call_name, "arguments": ""}
            calls.append({"id": piece.call_id, "type": "function", "function": function})
        elif piece.index is not None:
            calls[piece.index]["function"]["arguments"] += piece.arguments
    message: dict[str, Any] = {"role": "assistant", "content": "".join(p.text for p in pieces)}
    if calls:
        message["tool_calls"] = calls
    if thinking := "".join(piece.thinking for piece in pieces):
        message["reasoning_content"] = thinking
    stop = next((piece.stop for piece in pieces if piece.stop), None)
    usage = next((_usage(piece.usage) for piece in pieces if piece.usage is not None), None)
    choice = {"index": 0, "message": message, "finish_reason": stop}
    return {**_head(response, asked, "chat.completion"), "choices": [choice], "usage": usage}


def _head(response: Response, asked: dict[str, Any], kind: str) -> dict[str, Any]:
    return {
        "id": response.id or "chatcmpl-test",
        "object": kind,
        "created": 1_700_000_000,
        "model": asked.get("model", "test-model"),
    }


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """langchain-core's counts in OpenAI's words."""
    cached = usage.get("input_token_details", {}).get("cache_read", 0)
    thought = usage.get("output_token_details", {}).get("reasoning", 0)
    return {
        "prompt_tokens": usage.get("input_tokens", 0),
        "completion_tokens": usage.get("output_tokens", 0),
        "total_tokens": usage.get("total_tokens", 0),
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }
