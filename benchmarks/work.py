"""The scripted work of the benchmarks: a model that asks for one tool call a turn, and the tool.

How it is run and timed is in `contenders` and `loop`.
"""

import random
import time
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

WORDS = ("loop", "turn", "ledger", "queue", "model", "batch", "stop", "cursor", "view", "lease")


def payload(seed: int) -> str:
    """About 500 characters of seeded words: text that does not compress to nothing."""
    source = random.Random(seed)
    return " ".join(f"{source.choice(WORDS)}{source.randrange(10_000)}" for _ in range(55))


class TurnModel(BaseChatModel):
    """Asks for one call of `noop` per turn, `turns` times, then answers; notes when asked."""

    turns: int
    _asked: list[float] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "benchmark"

    @property
    def asked(self) -> list[float]:
        """The times of all requests, in seconds of `time.perf_counter`."""
        return self._asked

    def bind_tools(self, tools: Any, **options: Any) -> Runnable[Any, AIMessage]:
        """The tools do not matter to a script."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        self._asked.append(time.perf_counter())
        return ChatResult(generations=[ChatGeneration(message=self._message(len(self._asked)))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        return self._generate(messages)

    def _message(self, number: int) -> AIMessage:
        if number > self.turns:
            return AIMessage("done")
        return AIMessage(
            f"step {number}",
            tool_calls=[{"name": "noop", "args": {"number": number}, "id": f"call_{number}"}],
            usage_metadata={"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
        )


async def noop(number: int) -> str:
    """Do nothing and answer with some text."""
    return payload(number)
