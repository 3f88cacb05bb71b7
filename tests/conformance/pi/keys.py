"""Every key and action that a scenario may have: an unknown one would change what is meant.

What the known ones do is said where they are used.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Json = dict[str, Any]

_MESSAGE = {"role", "text", "images", "calls", "stop", "error"}
_MESSAGE |= {"toolCallId", "toolName", "isError"}
_RESULT = {"text", "images", "details", "terminate", "added", "noContent"}
_RUN = _RESULT | {"updates", "gate", "delay", "waitAbort", "lateUpdate", "throw", "throwString"}

KEYS: Mapping[str, set[str]] = {
    "scenario": {
        "api",
        "agent",
        "tools",
        "responses",
        "hooks",
        "on",
        "listenersBefore",
        "listeners",
        "steps",
        "lingerUnits",
    },
    "agent": {
        "systemPrompt",
        "model",
        "thinkingLevel",
        "toolExecution",
        "steeringMode",
        "followUpMode",
        "messages",
        "tools",
        "apiKey",
    },
    "tool": {"name", "params", "mode", "prepare", "run", "byId"},
    "prepare": {"rename", "set", "throw"},
    "response": {
        "thinking",
        "text",
        "calls",
        "content",
        "stop",
        "error",
        "deferred",
        "noStart",
        "onlyStart",
        "endWithoutDone",
        "delay",
        "waitAbortAfter",
        "ignoreAbort",
        "throw",
        "reject",
        "throwAfter",
    },
    "block": {"text", "thinking", "call"},
    "listener": {"id", "only", "delay", "throw", "log"},
    "when": {"event", "tool", "hook", "request", "role", "id", "turn", "update", "n", "every"},
    "rule": {"when", "do"},
}

HOOKS: Mapping[str, set[str]] = {
    "beforeToolCall": {"block", "reason", "terminate", "delay", "setArgs"},
    "afterToolCall": {"text", "emptyContent", "details", "isError", "terminate", "delay"},
    "shouldStopAfterTurn": {"value"},
    "prepareNextTurn": {"model", "thinkingLevel", "context"},
    "prepareNextTurnWithContext": {"model", "thinkingLevel", "context"},
    "transformContext": {"keepLast", "append", "prepend", "mutatePush"},
    "convertToLlm": {"drop", "rename"},
    "getApiKey": {"value"},
}
_CONTEXT = {"systemPrompt", "messages", "keepLast", "append", "tools"}

ACTIONS: Mapping[str, set[str]] = {
    "steer": {"text", "message"},
    "followUp": {"text", "message"},
    "abort": set(),
    "clearSteering": set(),
    "clearFollowUp": set(),
    "clearAll": set(),
    "set": {"field", "value", "name", "hook"},
    "pushStateMessage": {"message", "text"},
    "sleep": {"units"},
    "open": {"gate"},
    "wait": {"gate"},
    "mark": {"label"},
    "probe": {"label"},
    "throw": {"error"},
    "tryPrompt": {"text", "message", "messages", "images"},
    "tryContinue": set(),
    "tryReset": set(),
    "watchIdle": {"label", "id"},
    "subscribe": KEYS["listener"],
    "unsubscribe": {"id"},
}
STEPS: Mapping[str, set[str]] = {
    **ACTIONS,
    "prompt": {"text", "images", "message", "messages", "start"},
    "continue": {"start"},
    "await": {"id"},
    "waitForIdle": set(),
    "reset": set(),
    "agentLoop": {"prompts", "steer", "followUp"},
    "agentLoopContinue": {"steer", "followUp"},
}
STATELESS = "noState"
"""On a step: its state was not recorded. It changes nothing that is compared."""


def unknown(scenario: Json) -> list[str]:
    """What of a scenario is not known here, in words."""
    return [*_unknown(scenario)]


def _unknown(scenario: Json) -> Iterator[str]:
    yield from _of("scenario", [scenario])
    yield from _of("agent", [scenario.get("agent", {})])
    yield from _messages(scenario.get("agent", {}).get("messages", []))
    for tool in scenario.get("tools", []):
        yield from _of("tool", [tool])
        yield from _of("prepare", [tool.get("prepare", {})])
        yield from _strange("run", [tool.get("run", {}), *tool.get("byId", {}).values()], _RUN)
    yield from _of("response", scenario.get("responses", []))
    for response in scenario.get("responses", []):
        yield from _of("block", response.get("content", []))
    for name, spec in scenario.get("hooks", {}).items():
        yield from unknown_in_hook(name, spec)
    for key in ("listeners", "listenersBefore"):
        yield from _of("listener", scenario.get(key, []))
    for rule in scenario.get("on", []):
        yield from _of("rule", [rule])
        yield from _of("when", [rule["when"]])
        yield from _actions("action", rule["do"], ACTIONS)
    yield from _actions("step", scenario["steps"], STEPS)


def unknown_in_hook(name: str, spec: Json) -> Iterator[str]:
    """What of a hook's spec is not known here."""
    if name not in HOOKS:
        yield f"unknown hook {name!r}"
        return
    yield from _strange(name, [spec], HOOKS[name] | {"byId", "calls", "throw"})
    inner = [*spec.get("byId", {}).values(), *spec.get("calls", {}).values()]
    yield from _strange(name, inner, HOOKS[name] | {"throw"})
    for fields in (spec, *inner):
        yield from _strange("context", [fields.get("context", {})], _CONTEXT)


def _actions(kind: str, actions: Sequence[Json], known: Mapping[str, set[str]]) -> Iterator[str]:
    for action in actions:
        if action["do"] not in known:
            yield f"unknown {kind} {action['do']!r}"
            continue
        yield from _strange(action["do"], [action], known[action["do"]] | {"do", STATELESS})
        yield from _messages([action[key] for key in ("message",) if key in action])
        yield from _messages([*action.get("messages", []), *action.get("prompts", [])])


def _messages(messages: Iterable[str | Json]) -> Iterator[str]:
    yield from _strange("message", [m for m in messages if isinstance(m, dict)], _MESSAGE)


def _of(kind: str, specs: Iterable[Json]) -> Iterator[str]:
    yield from _strange(kind, specs, KEYS[kind])


def _strange(kind: str, specs: Iterable[Json], known: set[str]) -> Iterator[str]:
    for spec in specs:
        yield from (f"unknown key {key!r} in {kind}" for key in spec if key not in known)
