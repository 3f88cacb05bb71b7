"""From a run to its steps: what begins and ends in it, told to listeners that cannot disturb it.

What a step looks like in a file is in `lines`, in spans and metrics in `otel`.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from loopwright.clock import Clock
from loopwright.events import (
    AgentEnd,
    AgentStart,
    AnyEvent,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from loopwright.hooks import Hooks
from loopwright.nodes.compact import INSTRUCTION
from loopwright.providers.contract import ModelRequest, Provider
from loopwright.runs import Dependencies, Run
from loopwright.state.messages import calls, error_of
from loopwright.telemetry.steps import Step, StepListener
from loopwright.telemetry.watching import WatchedProvider, watched_tools
from loopwright.tools.contract import Tool, ToolRegistry

_log = logging.getLogger("loopwright.telemetry")

CUT_OFF = "cut_off"
"""Status of a run that has told no end."""

_UNTOLD = (MessageStart, MessageUpdate, ToolExecutionUpdate)
"""Events that are part of a step that is told as a whole."""


class Recorder:
    """Follows one run: a view of its events, and the watch over its models and tools.

    `listeners` hear of each step when it begins and when it ends. One that raises is not asked
    again during this run.
    """

    def __init__(self, run: Run, listeners: Sequence[StepListener], clock: Clock) -> None:
        self._run, self._clock = run, clock
        self._listeners = list(listeners)
        self._given = run.dependencies
        self._history: list[AnyMessage] | None = None
        self._produced: list[AnyMessage] = []
        self._open: dict[str, Step] = {}
        self._positions: dict[str, int] = {}
        self._bodies: set[int] = set()  # of the calls at work, by position
        self._providers: dict[str, WatchedProvider] = {}
        self._turn = 0
        self._asked = False
        self._unlisten: Callable[[], None] = lambda: None
        self._told: dict[type, Callable[[Any], object]] = {
            AgentStart: self._start,
            TurnStart: self._turn_start,
            TurnEnd: self._turn_end,
            MessageEnd: lambda event: self._message(event.message),
            ToolExecutionStart: self._tool,
            ToolExecutionEnd: self._tool_end,
            AgentEnd: lambda event: self._finish(**_ending(event)),
        }

    @classmethod
    def watch(cls, run: Run, listeners: Sequence[StepListener], clock: Clock) -> "Recorder":
        """Follow a run that has not begun yet."""
        recorder = cls(run, listeners, clock)
        given = run.dependencies
        run.dependencies = replace(
            given,
            resolve=recorder._resolve,
            tools=ToolRegistry(watched_tools(given.tools.tools, recorder)),
        )
        run.emitter.views.append(recorder)
        run.at_end.append(recorder.close)
        return recorder

    def _resolve(self, name: str) -> Provider:
        found = self._given.resolve(name)
        known = self._providers.get(name)
        if known is None or known.provider is not found:
            self._providers[name] = known = WatchedProvider(found, self)
        return known

    # ---- the run's events

    def begin(self, messages: Sequence[AnyMessage]) -> None:
        """The transcript that the run starts with."""
        self._history = list(messages)

    def apply(self, event: AnyEvent) -> None:
        """Make steps of what the run tells."""
        told = self._told.get(type(event))
        if told is not None:
            told(event)
        elif not isinstance(event, _UNTOLD):
            self._moment(event.type, _fields(event))

    def _start(self, event: AgentStart) -> None:
        self._begin("run", "run", self._beginning(event))
        self._unlisten = self._run.signal.on_abort(self._aborted)

    def _turn_start(self, event: TurnStart) -> None:
        self._turn = event.turn
        self._begin("turn", "turn", {"turn": event.turn})

    def _turn_end(self, event: TurnEnd) -> None:
        self._end("model", unfinished=True)  # what of an answer breaks the protocol ends it
        self._end("turn")

    async def close(self) -> None:
        """The run is over. One that has not told its end was cut off: cancelled from outside, or
        its thread was taken over."""
        if "run" in self._open:
            self._finish(status=CUT_OFF, reason="cancelled from outside, or lost its thread")
        for listener in list(self._listeners):
            try:
                await listener.settled()
            except Exception:  # as in `_tell`
                _log.exception("an observer failed at the end of run %s", self._run.id)

    def _beginning(self, event: AgentStart) -> dict[str, Any]:
        """What a run begins with; of one that carries on an interrupted one the history is not
        known."""
        given, loaded = self._given, self._history is not None
        prompt = self._run.overrides.get("system_prompt", given.system_prompt)
        return {
            "resumed_from": event.resumed_from,
            "started": self._run.started,
            "plan": self._run.plan,
            "tree": self._run.tree,
            "history": self._history,
            "settings": self._run.settings.to_json() if loaded else None,
            "system_prompt": prompt,
            "tools": [_described(tool) for tool in given.tools.tools],
            **_policies(given),
        }

    def _message(self, message: AnyMessage) -> None:
        """Those that models and tools have made are parts of their own steps."""
        self._produced.append(message)
        if isinstance(message, AIMessage):
            self._positions = {call.id: at for at, call in enumerate(calls(message))}
        prompt = not self._asked and error_of(message) is None
        if prompt or not isinstance(message, AIMessage | ToolMessage):
            self._moment("message", {"message": message})

    def _tool(self, event: ToolExecutionStart) -> None:
        call = event.tool_call_id
        asked = {"call": call, "position": self._positions.get(call, 0), "name": event.tool_name}
        self._begin("tool", _tool_key(call), {**asked, "arguments": event.arguments})

    def _tool_end(self, event: ToolExecutionEnd) -> None:
        self._bodies.discard(self._positions.get(event.tool_call_id, 0))
        self._end(_tool_key(event.tool_call_id), **_result(event))

    def _aborted(self) -> None:
        """What was going on when the run was cancelled; called from any thread."""
        going_on: list[Any] = sorted(self._bodies)
        going_on += ["model"] if "model" in self._open else []
        self._moment("abort", {"reason": self._run.signal.reason, "during": going_on})

    def _finish(self, **data: Any) -> None:
        self._unlisten()
        for key in [key for key in self._open if key != "run"]:
            self._end(key, unfinished=True)
        self._end("run", produced=list(self._produced), **data)

    # ---- models and tools at work

    def model_begins(self, provider: Provider, request: ModelRequest) -> Step:
        """A request is sent."""
        self._asked, self._bodies = True, set()
        last = request.messages[-1].content if request.messages else None
        asked = {
            "purpose": "summary" if last == INSTRUCTION else "answer",
            "model": request.model,
            "provider": provider.id,
            "thinking_level": request.thinking_level,
            "tools": [tool.name for tool in request.tools],
            "system_prompt": request.system_prompt,
            "messages": list(request.messages),
        }
        return self._begin("model", "model", asked)

    def first_piece(self, step: Step) -> None:
        """The answer begins to come."""
        step.data.setdefault("first_piece", self._clock.now() - step.began)

    def model_ends(self, step: Step, **data: Any) -> None:
        """It was answered, or failed; only the first word counts."""
        if self._open.get("model") is step:
            self._end("model", **data)

    def body(self, call_id: str) -> ExitStack:
        """What is entered around the body of a tool."""
        stack = ExitStack()
        self._bodies.add(self._positions.get(call_id, 0))
        step = self._open.get(_tool_key(call_id))
        if step is not None:
            self._tell(lambda listener: stack.enter_context(listener.within(step)))
        return stack

    def secrets(self, values: Sequence[str]) -> None:
        """Keys that the run uses."""
        self._tell(lambda listener: listener.keep_secret(values))

    # ---- steps

    def _begin(self, type: str, key: str, data: dict[str, Any]) -> Step:
        self._end(key, unfinished=True)  # nothing of one key is open twice
        step = Step(type, self._run.id, self._run.thread, self._clock.now(), data, self._turn)
        self._open[key] = step
        self._tell(lambda listener: listener.begun(step))
        return step

    def _end(self, key: str, **data: Any) -> None:
        step = self._open.pop(key, None)
        if step is not None:
            step.ended = self._clock.now()
            step.data.update(data)
            self._tell(lambda listener: listener.ended(step))

    def _moment(self, type: str, data: dict[str, Any]) -> None:
        now = self._clock.now()
        step = Step(type, self._run.id, self._run.thread, now, data, self._turn, ended=now)
        self._tell(lambda listener: listener.ended(step))

    def _tell(self, say: Callable[[StepListener], object]) -> None:
        for listener in list(self._listeners):
            try:
                say(listener)
            except Exception:  # an observer's own failure never ends the run that it observes
                _log.exception("an observer failed and hears no more of run %s", self._run.id)
                self._listeners.remove(listener)


def _tool_key(call_id: str) -> str:
    return f"tool {call_id}"


def _described(tool: Tool) -> dict[str, Any]:
    """All of a tool that is no function, and whether it rewrites its arguments."""
    told = {field.name: getattr(tool, field.name) for field in fields(tool)}
    plain = {name: value for name, value in told.items() if not callable(value)}
    return {**plain, "prepare_arguments": tool.prepare_arguments is not None}


def _policies(given: Dependencies) -> dict[str, Any]:
    """What is not the default's of a run's words, rules and hooks; the hooks by their names."""
    default = Dependencies(resolve=given.resolve)
    return {
        "wording": _differences(given.wording, default.wording),
        "argument_rules": _differences(given.argument_rules, default.argument_rules),
        "hooks": sorted(_differences(given.hooks, Hooks())),
    }


def _differences(value: Any, default: Any) -> dict[str, Any]:
    given = {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: v for name, v in given.items() if v != getattr(default, name)}


def _fields(event: AnyEvent) -> dict[str, Any]:
    return {name: value for name, value in vars(event).items() if name not in _ENVELOPE}


_ENVELOPE = ("type", "run_id", "sequence")


def _result(event: ToolExecutionEnd) -> dict[str, Any]:
    return {
        "content": event.content,
        "is_error": event.is_error,
        "terminate": event.terminate,
        "details": event.details,
    }


def _ending(event: AgentEnd) -> dict[str, Any]:
    return {
        "status": event.status,
        "reason": event.reason,
        "turns": event.turns,
        "usage": event.usage,
        "error": event.error,
        "interrupts": event.interrupts,
    }
