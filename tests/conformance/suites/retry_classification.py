"""Suite `retry_classification`: what a run calls an error, and what it does about it.

An error with a status comes over HTTP from the real server; others are raised by the client, or by
the runtime itself, under the name and with the code that the vector gives.
"""

import builtins
from collections.abc import Sequence
from typing import Any

from loopwright.testing import HttpReply, ScriptedModel
from tests.conformance.asking import LONG, Asked, ask
from tests.conformance.running import Case, difference, unknown_keys


async def drive(case: Case) -> Sequence[str]:
    """Let the first request fail so; later ones are answered."""
    unknown = unknown_keys("input", case.input, ["error"])
    known = ["status", "message", "code", "type", "origin", "headers"]
    unknown += unknown_keys("error", case.input["error"], known)
    unknown += unknown_keys("expected", case.expect, ["action", "kind"])
    if unknown:
        return unknown
    asked = await _asked(case.input["error"])
    found = {"action": asked.action, "kind": asked.kind}
    return [
        reason for key in case.expect for reason in difference(key, found[key], case.expect[key])
    ]


async def _asked(error: dict[str, Any]) -> Asked:
    if "status" in error:
        told = {name: error[name] for name in ("message", "code", "type") if name in error}
        failed = HttpReply(
            status=error["status"],
            headers=error.get("headers", {}),
            body={"error": told} if told else "",
        )
        return await ask(lambda number, body: "Done." if number else failed, history=LONG)
    raised = _exception(error)
    model = ScriptedModel(["Noted."] * len(LONG) + [raised, "Summary.", "Done."])
    return await ask(lambda number, body: "", model=lambda url: model, history=LONG)


def _exception(error: dict[str, Any]) -> Exception:
    """A class of the name that is given, below Python's own of that name if there is one."""
    type_, message = error.get("type", ""), error.get("message", "it failed")
    is_name = type_[:1].isupper()
    own = getattr(builtins, type_, None) if is_name else None
    if isinstance(own, type) and issubclass(own, Exception):
        raised = own(message)
    else:
        raised = type(type_ if is_name else "ClientError", (Exception,), {})(message)
    for name in ("code", "type"):
        if name in error and not (name == "type" and is_name):
            setattr(raised, name, error[name])
    return raised
