"""What became of a script's calls, and how its runs ended: one named check for each key.

A check gives the reason why its key is not met, or None.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from langchain_core.messages import AIMessage, ToolMessage

from loopwright.state.messages import ABORTED, ERROR, stop_reason
from loopwright.state.repair import is_interrupted
from tests.conformance.checks import equal, unanswered
from tests.conformance.scenarios.outcome import AGAIN, Outcome


def executed_calls(outcome: Outcome, ids: list[str]) -> str | None:
    """The bodies of these calls, and no others, were entered."""
    return equal(sorted(outcome.record.executed), sorted(ids))


def tool_runs(outcome: Outcome, wanted: int | dict[str, int]) -> str | None:
    """How often a tool was entered: in all, or for each of these calls."""
    counts = Counter(outcome.record.executed)
    if isinstance(wanted, dict):
        return equal({id: counts[id] for id in wanted}, wanted)
    return equal(counts.total(), wanted)


def answered_with_error(outcome: Outcome, ids: list[str]) -> str | None:
    """These calls, and no others, have an error as their result."""
    results = [m for m in outcome.ledger if isinstance(m, ToolMessage)]
    return equal([r.tool_call_id for r in results if r.status == "error"], ids)


def open_calls(outcome: Outcome, ids: list[str]) -> str | None:
    """The calls without a result in the stored transcript."""
    return equal(unanswered(outcome.ledger), ids)


def synthetic_for(outcome: Outcome, ids: list[str]) -> str | None:
    """These calls, and no others, have a marker of the repair, at the latest after the next run."""
    return equal(sorted(_markers(outcome)), sorted(ids))


def synthetic_results(outcome: Outcome, wanted: int | list[str]) -> str | None:
    """This many markers, or markers for exactly these calls."""
    if isinstance(wanted, list):
        return synthetic_for(outcome, wanted)
    return equal(len(_markers(outcome)), wanted)


def _markers(outcome: Outcome) -> list[str]:
    results = [m for m in outcome.later_ledger if isinstance(m, ToolMessage)]
    return [result.tool_call_id for result in results if is_interrupted(result)]


# ---- how it ended


def status(outcome: Outcome, wanted: str) -> str | None:
    """How the last run ended, as told and as stored."""
    return status_any_of(outcome, [wanted])


def status_any_of(outcome: Outcome, wanted: Sequence[str]) -> str | None:
    """The last run ended in one of these ways, and the same is stored."""
    run_id = outcome.last.get("run_id")
    found = {status for id, status in outcome.statuses if id == run_id}
    fits = len(found) == 1 and found <= set(wanted)
    return None if fits else f"told and stored: {sorted(found)}, expected {list(wanted)}"


def never_later_overwritten_by(outcome: Outcome, wanted: str) -> str | None:
    """No run that ended in another way is told or stored with this status too."""
    both = {id for id, status in outcome.statuses if status == wanted}
    changed = [id for id, status in outcome.statuses if id in both and status != wanted]
    return f"it was, in {outcome.statuses}" if changed else None


def no_stop(outcome: Outcome, wanted: bool) -> str | None:
    """No run was ended by a rule or a limit."""
    stops = [end["reason"] for end in outcome.record.ended if end["status"] in ("stopped", "limit")]
    return equal(not stops, wanted)


def marked_as(outcome: Outcome, wanted: str) -> str | None:
    """The last run says this of itself, as its status or its reason."""
    said = (outcome.last.get("status"), outcome.last.get("reason"))
    return None if wanted in said else f"it says {said}"


def final(outcome: Outcome, text: str) -> str | None:
    """The text of the last answer."""
    return equal("" if outcome.answer is None else str(outcome.answer.text), text)


def ends_with(outcome: Outcome, text: str) -> str | None:
    """The last text of the ledger ends so, or the last run ended in this way."""
    if text in outcome.last.values():
        return None
    words = outcome.words or [""]
    return None if words[-1].endswith(text) else f"it ends with {words[-1]!r}, {outcome.last}"


def stored_as_final(outcome: Outcome, wanted: bool) -> str | None:
    """The last answer is one that was given to its end."""
    whole = outcome.answer is not None and stop_reason(outcome.answer) not in (ABORTED, ERROR)
    return equal(whole, wanted)


def text_duplicated(outcome: Outcome, wanted: bool) -> str | None:
    """Some answer's text stands in the ledger twice."""
    texts = [str(m.text) for m in outcome.ledger if isinstance(m, AIMessage) and m.text]
    return equal(len(texts) != len(set(texts)), wanted)


def model_calls(outcome: Outcome, count: int) -> str | None:
    """How many requests were sent."""
    return equal(len(outcome.record.asked), count)


def max_model_calls(outcome: Outcome, count: int) -> str | None:
    """At most this many requests were sent."""
    sent = len(outcome.record.asked)
    return None if sent <= count else f"{sent} requests"


def no_exception(outcome: Outcome, wanted: bool) -> str | None:
    """Every call gave a run, and no run failed."""
    failed = [end["error"] for end in outcome.record.ended if end["status"] == "failed"]
    found = [*outcome.record.refusals, *failed]
    return None if bool(found) is not wanted else f"told: {found}"


def clear_message(outcome: Outcome, wanted: bool) -> str | None:
    """What kept a call from running, or the rule that ended the run, was told in words."""
    told = [*outcome.record.refusals, outcome.last.get("error"), outcome.last.get("reason")]
    return equal(any(told), wanted)


def thread_usable_after(outcome: Outcome, wanted: bool) -> str | None:
    """A prompt after the script completes, on a request in which every call has its result."""
    usable = outcome.later == "completed" and AGAIN in outcome.delivered_later
    if usable is not wanted:
        return f"the next run: {outcome.later}"
    return _valid_requests(outcome) if wanted else None


def _valid_requests(outcome: Outcome) -> str | None:
    return f"a request had {outcome.faulty}" if outcome.faulty else None


def no_task_left(outcome: Outcome, wanted: bool) -> str | None:
    """Behind the script the event loop has nothing of it left to do."""
    return None if bool(outcome.tasks_left) is not wanted else f"tasks: {outcome.tasks_left}"


def stops_within_s(outcome: Outcome, seconds: float) -> str | None:
    """The cancelled run was over within this many seconds."""
    return None if outcome.seconds <= seconds else f"it took {outcome.seconds:.1f} s"


def no_process_left(outcome: Outcome, commands: list[str]) -> str | None:
    """No process with one of these command lines is there."""
    running = list(_command_lines())
    return equal([c for c in commands if any(c in line for line in running)], [])


def _command_lines() -> Iterable[str]:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended since
