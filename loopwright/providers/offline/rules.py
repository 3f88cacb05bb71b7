"""The rules of the offline model: which questions it knows, and what each leads to.

What is then done lives in `actions`.
"""

import re
from collections.abc import Callable, Sequence

from langchain_core.messages import BaseMessage

from loopwright.providers.offline import actions
from loopwright.providers.offline.actions import OPEN_QUESTION
from loopwright.providers.offline.asking import Ask, Reply
from loopwright.providers.offline.report import DISCLAIMER, shortened
from loopwright.providers.offline.transcript import Exchange, exchanges, open_exchanges
from loopwright.state.view import SUMMARY_HEADING

ABILITIES = """\
I can only do this, by fixed rules:
- "What is in this folder and what is left to do in it?"
- "Which of them are in FILE?" and "How many are there?", about what I found before
- "Read FILE", "List the files", "Search for WORD"
- "Summarise": what was asked and answered on this thread"""


def decide(messages: Sequence[BaseMessage], offered: set[str]) -> Reply:
    """The next reply to a transcript: the same one for the same transcript and tools."""
    found = exchanges(messages)
    waiting = open_exchanges(found)
    for at in range(len(waiting) - 1, -1, -1):
        for pattern, rule in _rules_for(waiting[at].question):
            match = pattern.search(waiting[at].question)
            if match:
                steps = [step for exchange in waiting[at:] for step in exchange.steps]
                earlier = found[: len(found) - len(waiting) + at]
                reply = rule(Ask(match, steps, earlier, offered))
                return _with_remark(reply, waiting[at + 1 :])
    return Reply(f"{DISCLAIMER}\nNo rule of mine fits this message.\n{ABILITIES}")


def _rules_for(question: str) -> "Rules":
    """A summary is no question, whatever words are in it; only what it left open is looked for."""
    return COMPACTED if question.startswith(SUMMARY_HEADING) else RULES


def _with_remark(reply: Reply, passed_over: Sequence[Exchange]) -> Reply:
    """Say in the final answer which later messages no rule fitted: they changed nothing."""
    unknown = [e.question for e in passed_over if not _CONTINUE.search(e.question)]
    if reply.calls or not unknown:
        return reply
    quoted = "; ".join(f'"{shortened(question)}"' for question in unknown)
    return Reply(
        f"{reply.text}\n\nNo rule of mine fits {quoted}; I answered the question before it."
    )


_CONTINUE = re.compile(r"^\W*(?:please\s+)?(?:continue|go on|carry on|proceed|resume)\b", re.I)
_SURVEY = re.compile(
    r"\b(?:folder|directory|project|repo(?:sitory)?|codebase|to-?dos?|unfinished)\b"
    r"|\bleft (?:to do|undone)\b"
    r"|\b(?:what|anything)\b.*\b(?:left|remains|open|missing|here|done)\b",
    re.I | re.S,
)
_NAME = r"(?P<name>[^\n]+?)\s*[?.!]*\s*$"

Rules = tuple[tuple[re.Pattern[str], Callable[[Ask], Reply]], ...]

COMPACTED: Rules = (
    (
        re.compile(rf"^{OPEN_QUESTION}(?P<name>[^\n]*)(?P<found>.*)", re.S | re.M),
        actions.after_compaction,
    ),
)
"""What a summary of an unanswered question leads to."""

RULES: Rules = (
    (re.compile(r"^\W*(?:please\s+)?summari[sz]e\b", re.I), actions.summarise),
    (re.compile(r"^\W*(?:and\s+)?how many\b(?!.*\bfiles?\b)", re.I), actions.count),
    (
        re.compile(
            r"^\W*(?:and\s+)?(?:which|what)\b.*\b(?:them|those|these|marks|things)\b.*?"
            r"\b(?:in|from)\s+(?:the\s+)?(?:file\s+|folder\s+)?" + _NAME,
            re.I,
        ),
        actions.marks_in_file,
    ),
    (
        re.compile(
            r"^\W*(?:please\s+)?(?:what is|what's|anything)\s+left(?: to do)?\s+in\s+(?:file\s+)?"
            r"(?!(?:it|this|the|here)\b)" + _NAME,
            re.I,
        ),
        actions.marks_in_file,
    ),
    (
        re.compile(
            r"^\W*(?:please\s+)?(?:list|show)\s+(?:me\s+)?(?:all\s+)?(?:the\s+)?files\b"
            r"|^\W*(?:which|what|how many) files\b|^ls\b",
            re.I,
        ),
        actions.list_files,
    ),
    (
        re.compile(
            r"^\W*(?:please\s+)?(?:read|open|cat|show)\s+(?:me\s+)?(?:the\s+)?(?:file\s+)?" + _NAME,
            re.I,
        ),
        actions.read,
    ),
    (re.compile(r"^\W*(?:and\s+)?what(?: i|')s in (?P<name>\S+\.\w+)\W*$", re.I), actions.read),
    (
        re.compile(
            r"^\W*(?:please\s+)?(?:search|grep|look|find)\s+(?:for\s+)?(?:the\s+)?"
            r"(?:word\s+|text\s+)?(?P<name>[^\n]+?)(?:\s+in\s+(?:it|here|this folder|all files))?"
            r"\s*[?!]*\s*$",
            re.I,
        ),
        actions.search,
    ),
    (_SURVEY, actions.survey),
)  # fmt: skip
"""Questions in the order in which they are tried, each with what it leads to."""
