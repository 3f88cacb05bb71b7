"""The payloads of a chat completions stream as langchain chunks, with all that a server sent.

Payloads are a server's, so nothing about their form is trusted. Which call a fragment belongs to
and what an answer comes to is decided in `assembly`.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessageChunk
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk

from loopwright.providers.usage import of_completions
from loopwright.spending import COSTS

_ABOUT = {"model": "model_name", "system_fingerprint": "", "service_tier": ""}
"""Fields of a payload that tell about the answer: langchain's name for them, if another."""


class CompletionReader:
    """Reads the payloads of one answer, streamed or whole, in order.

    Of several choices only the first is read. A payload that says nothing gives an empty chunk.
    """

    def __init__(self) -> None:
        self._counts: dict[str, Any] = {}

    def read(self, payload: Mapping[str, Any]) -> AIMessageChunk:
        """The chunk of a payload. Whether it is an error is asked of `error_of` before."""
        choice = _first_choice(payload)
        delta = _mapping(choice.get("delta")) or _mapping(choice.get("message"))
        finish = choice.get("finish_reason")
        metadata: dict[str, Any] = (
            {"finish_reason": finish} if isinstance(finish, str) and finish else {}
        )
        if metadata:
            about = {_ABOUT[name] or name: payload.get(name) for name in _ABOUT}
            metadata |= {name: value for name, value in about.items() if isinstance(value, str)}
        usage = self._usage(payload, choice)
        if usage is not None and "cost" in self._counts:
            metadata[COSTS] = [self._counts["cost"]]
        # Not validated: langchain would complete and parse the arguments of every fragment. All
        # fields with a factory are given: pydantic inspects each factory that it has to call.
        return AIMessageChunk.model_construct(
            content=_content(delta),
            additional_kwargs={},
            response_metadata=metadata,
            tool_calls=[],
            invalid_tool_calls=[],
            tool_call_chunks=list(_call_chunks(delta)),
            usage_metadata=usage,
        )

    def _usage(self, payload: Mapping[str, Any], choice: Mapping[str, Any]) -> UsageMetadata | None:
        """The counts so far, if the payload has any: beside its choices, in one (Moonshot), or in
        a field of its own (Groq). A count that is left out is still the one of the report before.
        """
        own = _mapping(payload.get("x_groq"))
        for found in (payload.get("usage"), choice.get("usage"), own.get("usage")):
            if counts := {k: v for k, v in _mapping(found).items() if v is not None}:
                self._counts |= counts
                if "total_tokens" not in counts:
                    self._counts.pop("total_tokens", None)
                return of_completions(self._counts)
        return None


def error_in(payload: Any, event: str = "") -> Mapping[str, Any] | None:
    """What a payload says about a failure, with a `message` at least; None if it is none."""
    if not isinstance(payload, Mapping):
        return {"message": str(payload)} if event == "error" else None
    error = payload.get("error")
    if error:
        return error if isinstance(error, Mapping) else {**payload, "message": str(error)}
    told = "error" in (event, payload.get("object"), payload.get("type"))
    return payload if told and not payload.get("choices") else None


def _first_choice(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """The choice with the index 0; one without an index counts as it."""
    choices = payload.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, Mapping) and choice.get("index") in (None, 0, "0"):
            return choice
    return {}


def _content(delta: Mapping[str, Any]) -> Any:
    """The text as it is, unless there is thinking, a refusal or a list of blocks."""
    content, refusal = delta.get("content"), delta.get("refusal")
    blocks: list[dict[str, Any] | str] = list(_thoughts(delta))
    if not blocks and not refusal and isinstance(content, str):
        return content
    if isinstance(content, str) and content:
        blocks.append({"type": "text", "text": content})
    elif isinstance(content, list):
        blocks += [block for block in content if isinstance(block, dict | str)]
    if isinstance(refusal, str) and refusal:
        blocks.append({"type": "refusal", "refusal": refusal})
    return blocks or ""


def _thoughts(delta: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Thinking beside the content, under one of its names; what OpenRouter says in detail counts
    instead of the same in short.
    """
    details = delta.get("reasoning_details")
    found = [d for d in details if isinstance(d, Mapping)] if isinstance(details, list) else []
    said = [text for d in found if isinstance(text := d.get("text") or d.get("summary"), str)]
    if not any(said):
        for name in ("reasoning_content", "reasoning", "thinking"):
            text = delta.get(name)
            if isinstance(text, str) and text:
                yield {"type": "reasoning", "reasoning": text}
                break
    for detail in found:
        text = detail.get("text") or detail.get("summary")
        kept = {k: detail[k] for k in ("signature", "format", "id", "data") if detail.get(k)}
        yield {
            "type": "reasoning",
            "reasoning": text if isinstance(text, str) else "",
            "index": detail.get("index"),
            "extras": kept,
        }


def _call_chunks(delta: Mapping[str, Any]) -> Iterator[ToolCallChunk]:
    calls = delta.get("tool_calls")
    if isinstance(calls, Mapping):
        calls = [calls]
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            yield _call_chunk(call)
    if isinstance(legacy := delta.get("function_call"), Mapping):
        yield _call_chunk({"function": legacy})


def _call_chunk(call: Mapping[str, Any]) -> ToolCallChunk:
    """A fragment of a call; one without `function` may have name and arguments itself."""
    function = _mapping(call.get("function")) or call
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return tool_call_chunk(
        name=_text(function.get("name")),
        args=arguments,
        id=_text(call.get("id")) or _text(function.get("id")),
        index=_index(call.get("index")),
    )


def _index(value: Any) -> int | None:
    """The number of a call; a text that spells one counts, anything else is none."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    """A text; a number as one (servers have counted ids)."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if isinstance(value, str) or is_number else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
