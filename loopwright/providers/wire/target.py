"""Where a request goes: who will answer, in which dialect, and what may not be sent there.

How a message is put into a dialect lives in the modules beside this one.
"""

from dataclasses import dataclass, field

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from loopwright.errors import RequestPart
from loopwright.providers.dialect import GENERIC, Dialect
from loopwright.providers.wire.names import ToolNames
from loopwright.settings import ForeignThinking

CHAT = "openai-completions"
RESPONSES = "openai-responses"
ANTHROPIC = "anthropic-messages"

DIALECTS: dict[str, Dialect] = {
    RESPONSES: Dialect(thinking_back="responses", texts="blocks"),
    ANTHROPIC: Dialect(
        thinking_back="anthropic", texts="blocks", image_results=True, cache_control=True
    ),
}
"""The dialects of other protocols than chat completions, by the protocol's name."""

_APIS = {"openai-chat": CHAT, "azure-openai-chat": CHAT, "anthropic-chat": ANTHROPIC}


def api_of(model: BaseChatModel) -> str:
    """The name of the protocol that a model object speaks; its kind where none is known."""
    if getattr(model, "use_responses_api", None) is True:
        return RESPONSES
    return _APIS.get(model._llm_type, model._llm_type)


@dataclass(frozen=True)
class Producer:
    """Who has made an assistant message, as its metadata say it (S1-20)."""

    provider: str
    api: str
    model: str

    @classmethod
    def of(cls, message: AIMessage) -> "Producer | None":
        """The producer of a message; None unless all of it is recorded."""
        names = [message.response_metadata.get(key) for key in ("provider", "api", "model")]
        return cls(*map(str, names)) if all(names) else None


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where the messages of a request go, and what of them may not."""

    producer: Producer | None = None
    """Who will answer; None: nobody, so that all thinking is another's."""

    dialect: Dialect = GENERIC
    foreign_thinking: ForeignThinking = "drop"
    withheld: frozenset[RequestPart] = frozenset()
    names: ToolNames = field(default_factory=ToolNames)
