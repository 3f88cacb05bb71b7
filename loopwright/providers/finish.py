"""Why a model stopped: the words of the providers and what they mean for the loop.

What the loop does about it is decided in the `model` node.
"""

from typing import Any

from loopwright.state.messages import LENGTH, STOP, TOOL_USE

_KEYS = ("finish_reason", "stop_reason", "done_reason", "stopReason")
"""OpenAI-like and Google, Anthropic, Ollama, Bedrock."""

_NORMAL = frozenset(
    {
        *("stop", "tool_calls", "function_call"),  # OpenAI chat completions
        "completed",  # OpenAI responses
        *("end_turn", "stop_sequence", "tool_use"),  # Anthropic, Bedrock
        *("eos", "eos_token", "complete", "tool_call"),  # Together, Hugging Face, Cohere
    }
)
_LENGTH = frozenset(
    {
        *("length", "max_tokens", "max_output_tokens", "model_length"),
        "model_context_window_exceeded",  # Anthropic: the window ended the answer
    }
)
_FILTERED = frozenset(
    {
        *("content_filter", "content_filtered", "guardrail_intervened", "refusal"),
        *("safety", "recitation", "blocklist", "prohibited_content", "spii"),  # Google
        "sensitive",  # Zhipu
    }
)
_FAILED = frozenset(
    {
        "error",  # OpenRouter: the provider behind it failed mid-answer
        "network_error",  # Zhipu
        "insufficient_system_resource",  # DeepSeek
        *("failed", "cancelled"),  # OpenAI responses
    }
)
"""Words for an answer that broke off on the provider's side (compare in lower case)."""


def said(metadata: dict[str, Any]) -> str | None:
    """The provider's word in a chunk's metadata, None if it has none."""
    for key in _KEYS:
        value = metadata.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
    status, details = metadata.get("status"), metadata.get("incomplete_details")
    if status == "incomplete" and isinstance(details, dict) and details.get("reason"):
        return str(details["reason"])
    return status if status in {"completed", "incomplete", *_FAILED} else None


def stop_reason(word: str | None, *, has_calls: bool) -> str:
    """The stop reason of `state.messages` for a provider's word; an unknown word stays itself.

    Calls decide over the word: `stop` with calls is tool_use, `tool_calls` without any is stop.
    """
    known = (word or "stop").lower()
    if known in _NORMAL:
        return TOOL_USE if has_calls else STOP
    if known in _LENGTH:
        return LENGTH
    return known if known in _FILTERED else str(word)


def is_filtered(word: str | None) -> bool:
    """Whether the word says that the provider withheld the answer, or the model refused."""
    return (word or "").lower() in _FILTERED


def is_failure(word: str | None) -> bool:
    """Whether the word says that the answer broke off on the provider's side."""
    return (word or "").lower() in _FAILED


def why_cut(word: str | None) -> str | None:
    """Why no call of such an answer may run, as the model should read it; None if they may."""
    known = (word or "").lower()
    if known in _LENGTH:
        return (
            f"the answer was cut off at its length limit ({word}), so the call may be incomplete: "
            "send it again, shorter or in several calls"
        )
    if known in _FILTERED:
        return f"the answer was cut off by the provider ({word}), so the call may be incomplete"
    return None
