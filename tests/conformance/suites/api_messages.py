"""Suite `api_messages`: what of a stored ledger is sent, and that sending leaves it as it was.

Stored rows come in the dict forms that a caller may give; they are admitted as a run admits them.
"""

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from langchain_core.load import dumps
from langchain_core.messages import AnyMessage

from loopwright.providers.wire import api_messages
from loopwright.state.messages import as_messages
from tests.conformance.loading import load
from tests.conformance.running import Case, difference, unknown_keys


async def drive(case: Case) -> Sequence[str]:
    """The wire form, directly and from a real request; the ledger byte for byte."""
    unknown = unknown_keys("input", case.input, ["messages", "system_prompt"])
    unknown += unknown_keys("expected", case.expect, ["api_messages"])
    if unknown:
        return unknown
    ledger, prompt = as_messages(case.input["messages"]), case.input["system_prompt"]
    before = _bytes(ledger)
    direct = api_messages(ledger, prompt)
    loaded = await load(ledger, prompt, died=False)
    expected = _parsed(case.expect["api_messages"])
    return [
        *difference("api_messages", _parsed(direct), expected),
        *difference("the request of a run", _parsed(loaded.sent), expected),
        *difference("the ledger after sending", _bytes(ledger), before),
        *difference("the stored ledger", _bytes(loaded.messages), before),
    ]


def _bytes(ledger: list[AnyMessage]) -> bytes:
    return dumps(ledger).encode()


def _parsed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the arguments of calls as values: their spacing is free (S0-12)."""
    rows = deepcopy(rows)
    for call in (call for row in rows for call in row.get("tool_calls", [])):
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return rows
