"""Hermes' loop (S3): a plain function around the graph, OpenAI's message form, a shared history.

Everything else about its control flow is the default's. Keeping agents between the messages of a
gateway is done in `hermes_gateway`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from pydantic import SecretStr

from loopwright.agent import Agent
from loopwright.errors import UnknownThreadError
from loopwright.events import AnyEvent
from loopwright.hooks import Hooks
from loopwright.outcome import RunResult
from loopwright.providers.wire import openai_form
from loopwright.settings import Environment, Limits, Settings
from loopwright.state.messages import as_messages, calls, stop_reason

MAX_ITERATIONS = Limits().turns
"""Model calls of one conversation turn (S3-02)."""

LIMIT_REACHED = "Reached maximum iteration count"
"""The final response of a run that the limit has ended (S3-08)."""

PROMPT_FILES = ("SOUL.md", "MEMORY.md", "HERMES.md")
"""Persona, memory and project settings, in the order in which they stand in the prompt."""


class Conversation(TypedDict):
    """What `run_conversation` returns.

    `messages` is the whole ledger in OpenAI's form with internal fields, without the system prompt.
    `completed` is False where a limit, an error or a cancel has ended the run; `reason` names the
    rule. `api_calls` counts this run's iterations.
    """

    final_response: str
    messages: list[dict[str, Any]]
    api_calls: int
    completed: bool
    reason: str


def prompt_from(folder: str | Path, files: Sequence[str] = PROMPT_FILES) -> Callable[[], str]:
    """A system prompt assembled from the files of a folder that exist, when a session begins."""

    def assemble() -> str:
        found = [path for name in files if (path := Path(folder, name)).is_file()]
        return "\n\n".join(path.read_text(encoding="utf-8").strip() for path in found)

    return assemble


class HermesAgent(Agent):
    """One session of Hermes. It keeps nothing between two messages but what is in the database, and
    may be thrown away at any time (S3-10).

    `system_prompt` is a text or a function that assembles it; it is called for the first message of
    a session only, and what it gave is read from the database from then on (S3-06). With `base_url`
    the model is looked for at that address (S3-13). `options` are those of `Agent`.
    """

    def __init__(
        self,
        model: Any = None,
        tools: Iterable[Any] = (),
        system_prompt: str | Callable[[], str] = "",
        *,
        session: str | None = None,
        max_iterations: int = MAX_ITERATIONS,
        base_url: str | None = None,
        api_key: str | None = None,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        chosen = settings or Settings()
        limits = replace(chosen.limits, turns=max_iterations)
        if base_url is not None:
            key = None if api_key is None else SecretStr(api_key)
            options["environment"] = Environment(base_url=base_url, api_key=key)
            model = f"custom/{model}"
        elif api_key is not None:
            hooks = options.get("hooks") or Hooks()
            options["hooks"] = replace(hooks, get_api_key=lambda provider: api_key)
        settings = replace(chosen, limits=limits)
        super().__init__(model, tools, thread=session, settings=settings, **options)
        self._prompt = system_prompt
        self.callback: Callable[[AnyEvent], None] | None = None
        """Hears the events of a run; set for each message."""

    def run_conversation(
        self, user_message: str, history: Sequence[Mapping[str, Any]] | None = None
    ) -> Conversation:
        """Run one message to its end. A plain function: callable from any thread, inside a running
        event loop too; async tools share one loop that lives as long as the process (S3-12).

        `history` in OpenAI's form takes the place of what the session has stored; None goes on from
        that. Raises BusyThreadError while another run of the session goes on, and InputError.
        """
        stored = self._stored_messages()
        if stored:
            self.system_prompt = None
        else:
            self.system_prompt = self._prompt if isinstance(self._prompt, str) else self._prompt()
        if history is not None and list(history) != ledger_form(stored):
            self.state.messages[:] = as_messages(list(history))
        remove = self.subscribe(self._pass_on)
        try:
            result = self.run(user_message)
        finally:
            remove()
        return Conversation(
            final_response=final_response(result),
            messages=ledger_form(self.messages()),
            api_calls=result.turns,
            completed=result.status == "completed",
            reason=result.reason,
        )

    def _pass_on(self, event: AnyEvent) -> None:
        if self.callback is not None:
            self.callback(event)

    def _stored_messages(self) -> list[AnyMessage]:
        with suppress(UnknownThreadError):
            return self.messages()
        return []


def run_conversation(
    user_message: str, history: Sequence[Mapping[str, Any]] | None = None, **parts: Any
) -> Conversation:
    """One conversation turn with an agent that is made for it; `parts` are HermesAgent's."""
    with HermesAgent(**parts) as agent:
        return agent.run_conversation(user_message, history)


def final_response(result: RunResult) -> str:
    """The text of the last answer with its earlier parts (S3-03), or why there is none."""
    if result.status == "failed":
        return f"No answer: {(result.error or {}).get('message', result.reason)}"
    answers = [m for m in result.messages if isinstance(m, AIMessage)]
    if not answers or calls(answers[-1]):
        return LIMIT_REACHED if result.status == "limit" else f"No answer: {result.reason}"
    return result.final_text


def ledger_form(messages: Sequence[AnyMessage]) -> list[dict[str, Any]]:
    """The ledger in OpenAI's form with the internal fields that a request never has (S3-04):
    the message's id, reasoning, finish_reason, usage and what else came with it.
    """
    return [_with_internals(message) for message in messages]


def _with_internals(message: AnyMessage) -> dict[str, Any]:
    (row,) = openai_form([message])
    internal = {**message.additional_kwargs, "id": message.id}
    if isinstance(message, AIMessage):
        row["content"] = message.text or None
        broken = [_broken(call) for call in message.invalid_tool_calls]
        if broken:
            row["tool_calls"] = [*row.get("tool_calls", []), *broken]
        thoughts = [b.get("reasoning") for b in message.content_blocks if b["type"] == "reasoning"]
        internal |= {
            "reasoning": "".join(str(text) for text in thoughts if text) or None,
            "finish_reason": internal.get("finish_reason") or stop_reason(message),
            "usage": message.usage_metadata or internal.get("usage"),
        }
        internal["reasoning"] = internal["reasoning"] or message.additional_kwargs.get("reasoning")
    return {**{name: value for name, value in internal.items() if value is not None}, **row}


def _broken(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = call["args"] if isinstance(call["args"], str) else json.dumps(call["args"])
    function = {"name": call["name"], "arguments": arguments}
    return {"id": call["id"], "type": "function", "function": function}
