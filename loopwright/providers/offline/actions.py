"""What each rule of the offline model does: the next call, or the answer from what is known.

Which question leads to which of these lives in `rules`, a folder's survey in `survey`.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from loopwright.providers.offline.asking import Ask, Reply
from loopwright.providers.offline.findings import Findings
from loopwright.providers.offline.marks import WORDS_PATTERN, Mark
from loopwright.providers.offline.report import (
    DISCLAIMER,
    SHOWN,
    listed,
    number,
    report,
    shortened,
    what_was_not_seen,
)
from loopwright.providers.offline.survey import LIST, READ, SEARCH, next_calls
from loopwright.providers.offline.transcript import Call, Exchange, Step, open_exchanges
from loopwright.state.view import SUMMARY_HEADING

ASKED, OPEN_QUESTION = "- asked: ", "- open question: "
"""Begin the lines of a summary that name a question; behind an open one stand its findings."""


def survey(ask: Ask) -> Reply:
    """Look through the whole folder."""
    if not ask.offered & {LIST, READ, SEARCH}:
        return _without_tools(ask)
    words, calls = next_calls(ask.steps, ask.offered)
    if calls:
        return Reply(words, tuple(calls))
    before = _last_survey(ask.earlier)
    return Reply(report(Findings(ask.steps), before.marks() if before else None))


def marks_in_file(ask: Ask) -> Reply:
    """Read one file anew and tell what is left to do in it."""
    before = _last_survey(ask.earlier)
    path = _known_path(ask.name, before)
    inside = _marks_below(before, path)
    if inside:
        return Reply("\n".join(inside))
    step = _first(ask.steps, READ)
    if step is None:
        return _call(ask, Call(READ, {"path": path}))
    if step.failed:
        return Reply(f"I could not read {path}: {shortened(step.text)}")
    findings = Findings(ask.steps)
    marks = findings.marks()
    head = f"Left to do in {path}: {number(len(marks), 'thing') if marks else 'nothing is marked'}."
    rest = [f"... and {len(marks) - SHOWN:,} more."] if len(marks) > SHOWN else []
    return Reply("\n".join([head, *listed(findings, marks), *rest, *_page_note(findings)]))


def count(ask: Ask) -> Reply:
    """Count what the last survey found; without one, make it."""
    before = _last_survey(ask.earlier)
    if before is None:
        return survey(ask)
    marks, left_out = before.marks(), before.left_out()
    files = number(len({mark.path for mark in marks}), "file")
    more = f", and {left_out:,} matching lines were not shown" if left_out else ""
    return Reply(f"My last look found {number(len(marks), 'thing')} left to do in {files}{more}.")


def read(ask: Ask) -> Reply:
    """Read one file and show its beginning."""
    path = _known_path(ask.name, _last_survey(ask.earlier))
    step = _first(ask.steps, READ)
    if step is None:
        return _call(ask, Call(READ, {"path": path}))
    if step.failed:
        return Reply(f"I could not read {path}: {shortened(step.text)}")
    findings = Findings(ask.steps)
    lines = [line for page in findings.pages for line in page.lines]
    total = next((page.total for page in findings.pages), None)
    size = number(total, "line") if total is not None else "very many lines"
    shown = [f"{path}:{at}: {text[:300]}" for at, text in lines[:SHOWN]]
    rest = ["(not all of it is shown)"] if total is None or total > len(shown) else []
    return Reply("\n".join([f"{path} has {size}.", *shown, *rest]))


def search(ask: Ask) -> Reply:
    """Search for a word and cite where it is."""
    step = _first(ask.steps, SEARCH)
    if step is None:
        return _call(ask, Call(SEARCH, {"pattern": ask.name, "ignore_case": True}))
    if step.failed:
        return Reply(f"I could not search for {ask.name!r}: {shortened(step.text)}")
    findings = Findings(ask.steps)
    hits = [hit for part in findings.searches for hit in part.resolved(findings.files)]
    left = findings.left_out() + max(0, len(hits) - SHOWN)
    lines = [f"- {hit.path}:{hit.line}: {shortened(hit.text)}" for hit in hits[:SHOWN]]
    head = f"{ask.name!r} is in {number(len(hits) + findings.left_out(), 'line')}."
    rest = [f"... and {left:,} more."] if left else []
    notes = [text] if (text := what_was_not_seen(findings)) else []
    return Reply("\n".join([head, *lines, *rest, *notes]))


def list_files(ask: Ask) -> Reply:
    """List the files."""
    step = _first(ask.steps, LIST)
    if step is None:
        return _call(ask, Call(LIST, {}))
    if step.failed:
        return Reply(f"I could not list the files: {shortened(step.text)}")
    entries = [line for line in step.text.split("\n") if line]
    rest = [f"... and {len(entries) - SHOWN:,} more lines."] if len(entries) > SHOWN else []
    return Reply("\n".join([*entries[:SHOWN], *rest]))


def summarise(ask: Ask) -> Reply:
    """What was asked, answered, and found for a question that is still open."""
    if not ask.earlier:
        return Reply(f"{DISCLAIMER}\nThere is nothing to summarise on this thread yet.")
    at = len(ask.earlier) - len(open_exchanges(ask.earlier))
    lines = [
        line for exchange in ask.earlier[:at][-SHOWN:] for line in _told(exchange, is_open=False)
    ]
    lines += [line for exchange in ask.earlier[at:] for line in _told(exchange, is_open=True)]
    return Reply("\n".join([DISCLAIMER, *lines]))


def after_compaction(ask: Ask) -> Reply:
    """Answer an open question of which a summary is left: from its findings and what is seen."""
    findings = Findings(ask.steps)
    before = ask.found["found"].strip().splitlines()
    lines = list(dict.fromkeys([*before, *listed(findings, findings.marks())]))
    parts = [
        f'My context was compacted while I worked on "{ask.name}"; this may not be all of it.',
        "\n".join(["Left to do, as far as I know:", *lines]) if lines else "I found nothing yet.",
        what_was_not_seen(findings),
        DISCLAIMER,
    ]
    return Reply("\n\n".join(part for part in parts if part))


def _told(exchange: Exchange, *, is_open: bool) -> list[str]:
    """An exchange in a summary; one that is itself a summary keeps its lines."""
    findings = Findings(exchange.steps)
    found = listed(findings, findings.marks()) if is_open else []
    if exchange.question.startswith(SUMMARY_HEADING):
        kept = exchange.question.removeprefix(SUMMARY_HEADING).replace(DISCLAIMER, "").strip()
        return [*(kept if is_open else kept.replace(OPEN_QUESTION, ASKED)).splitlines(), *found]
    asked = shortened(exchange.question)
    if is_open:
        return [f"{OPEN_QUESTION}{asked}", *found]
    return [f"{ASKED}{asked}", f"  answered: {_first_line(exchange.answer or '')}"]


def _first_line(answer: str) -> str:
    line = next((line for line in answer.splitlines() if line.strip()), "")
    return shortened(line) if line else "(nothing)"


def _call(ask: Ask, call: Call) -> Reply:
    if call.tool not in ask.offered:
        return _without_tools(ask)
    return Reply(f"I call {call.tool}.", (call,))


def _without_tools(ask: Ask) -> Reply:
    names = ", ".join(sorted(ask.offered)) or "none"
    needed = f"I need the tools {LIST}, {READ} and {SEARCH} for this; I was offered: {names}."
    return Reply(f"{DISCLAIMER}\n{needed}")


def _first(steps: Sequence[Step], tool: str) -> Step | None:
    return next((step for step in steps if step.call.tool == tool), None)


def _last_survey(earlier: Sequence[Exchange]) -> Findings | None:
    """What the last answered survey on this thread found, read from its steps again."""
    for exchange in reversed(earlier):
        patterns = {step.call.arguments.get("pattern") for step in exchange.steps}
        if exchange.answer and WORDS_PATTERN in patterns:
            return Findings(exchange.steps)
    return None


def _known_path(name: str, before: Findings | None) -> str:
    """The one file found before whose path ends like `name`, else the name as it is."""
    files = [] if before is None else sorted({*before.files, *before.lines})
    fitting = [path for path in files if path == name or path.endswith(f"/{name}")]
    loose = [path for path in files if PurePosixPath(path).stem.lower() == name.lower()]
    best = fitting or loose
    return best[0] if len(best) == 1 or name in best[:1] else name


def _marks_below(before: Findings | None, folder: str) -> list[str]:
    """What was found before in a folder; empty if it is none."""
    prefix = folder.rstrip("/") + "/"
    marks: list[Mark] = [m for m in before.marks() if m.path.startswith(prefix)] if before else []
    if before is None or not marks:
        return []
    head = f"Of what I found before, {number(len(marks), 'thing')} in {prefix}:"
    rest = [f"... and {len(marks) - SHOWN:,} more."] if len(marks) > SHOWN else []
    return [head, *listed(before, marks), *rest]


def _page_note(findings: Findings) -> list[str]:
    unfinished = [page for page in findings.pages if not page.complete]
    return [f"I read only its first {page.last:,} lines." for page in unfinished]
