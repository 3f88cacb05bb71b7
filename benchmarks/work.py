"""The scripted work of the benchmarks: a model that asks for one tool call a turn, and the tool.

How it is run is said in `contenders`, how it is timed in `measuring`.
"""

import random
import string
import time
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import PrivateAttr

CHARACTERS = string.ascii_letters + string.digits


def payload(seed: int) -> str:
    """About 500 characters of seeded words that no compression makes much of."""
    letters = random.Random(seed).choices(CHARACTERS, k=440)
    return " ".join("".join(letters[at : at + 7]) for at in range(0, len(letters), 7))


class TurnModel(BaseChatModel):
    """Asks for one call of `noop` per turn, `turns` times, then answers; notes when it was asked.

    What it answers depends on the last message only, so that one model serves many threads.
    """

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
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages[-1]))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        return self._generate(messages)

    def _answer(self, last: BaseMessage) -> AIMessage:
        done = int(last.tool_call_id.split("_")[1]) if isinstance(last, ToolMessage) else 0
        if done >= self.turns:
            return AIMessage("done")
        call = {"i": done + 1, "text": "abc"}
        id = f"call_{done + 1}_{len(self._asked)}"  # one that came before would be renamed
        return AIMessage(
            f"thinking about step {done + 1}",
            tool_calls=[{"name": "noop", "args": call, "id": id}],
            usage_metadata={"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
        )


class Work:
    """One message that leads to `turns` tool calls, each answered with a text of its own."""

    def __init__(self, turns: int, texts: Sequence[str] = ()) -> None:
        self.turns = turns
        self.model = TurnModel(turns=turns)
        self._texts = texts or [payload(number) for number in range(turns)]

    async def noop(self, i: int, text: str) -> str:
        """Do nothing and answer with some text that was made before."""
        return self._texts[(i - 1) % len(self._texts)]

    def langchain_tool(self) -> BaseTool:
        """`noop` for agents that take langchain's tools."""

        async def noop(i: int, text: str) -> str:
            return await self.noop(i, text)

        return StructuredTool.from_function(coroutine=noop, name="noop", description="Do nothing.")
