"""What a process that has just opened the file finds of the thread: stored values, plainly.

Whether that is as it must be is decided in `invariants`.
"""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from loopwright.agent import Agent
from loopwright.state.doctor import examine
from loopwright.state.schema import no_cursor
from loopwright.state.transcript import faults
from tests.chaos.told import Found, Line

_QUEUED = "SELECT sequence, kind, body FROM loopwright_log WHERE kind IN ('steering', 'follow_up')"
_NOTED = "SELECT body FROM loopwright_log WHERE kind LIKE 'journal/%' ORDER BY sequence"


def inspect(agent: Agent, database: Path) -> Found:
    """The agent's own thread as it is stored; nobody else may write meanwhile."""
    config: Any = {"configurable": {"thread_id": agent.thread}}
    values = agent.graph.get_state(config).values
    messages, record = values.get("messages", []), values.get("run")
    with closing(sqlite3.connect(database)) as file:
        queued = file.execute(_QUEUED).fetchall()
        noted = [json.loads(body) for (body,) in file.execute(_NOTED)]
        leases = file.execute("SELECT host, process FROM loopwright_leases").fetchall()
    findings = examine(database).findings
    cursor: Any = values.get("cursor") or no_cursor()
    return Found(
        lines=tuple(Line.of(message) for message in messages),
        faults=tuple(str(fault) for fault in faults(messages, open_tail=True)),
        open_calls=tuple(f.id for f in faults(messages) if f.kind == "unanswered_call"),
        run=None if record is None else (record["id"], record["status"]),
        delivered=_texts(queued, cursor, waiting=False),
        waiting=_texts(queued, cursor, waiting=True),
        finished={
            note["call"]: str(note["result"]["content"])
            for note in noted
            if note["fate"] == "finished"
        },
        damage=tuple(f"{f.where}: {f.what}" for f in findings if f.mend != "leases"),
        leases=tuple(f"process {process} on {host}" for host, process in leases),
    )


def _texts(queued: list[Any], cursor: Mapping[str, int], *, waiting: bool) -> tuple[str, ...]:
    """The texts of the queues' entries behind the cursor, or of those before it."""
    return tuple(
        str(json.loads(body)["data"]["content"])
        for sequence, kind, body in queued
        if (sequence > cursor[kind]) is waiting
    )
