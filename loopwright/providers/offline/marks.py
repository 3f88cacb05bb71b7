"""What the offline model takes for a mark of work left to do: a line in, a mark or None out.

How lines are searched for and read lives in `survey`; how marks are told in `report`.

The judgement calls: an upper-case word such as TODO counts where it is used as a mark (first word
of a line or comment, followed by a colon, anywhere in a comment of code, in brackets), not where
prose talks about it ("a TODO list app"). Lower-case words need a colon or the start of a comment,
because `todo` is also a variable, and Spanish for "everything". Words that merely contain one
(mastodon, TODOS, debug) never count, and neither does the quoted word alone ("TODO").
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

UPPER = "TODO|TO DO|TO-DO|FIXME|FIX ME|XXX|HACK|BUG|TBD|WIP"
LOWER = "todo|to-do|fixme"
FOREIGN = (
    "待办事项|待办|待處理|待处理|未完成|やること|할 일|việc cần làm|cần làm|à faire|reste à faire|"
    "pendientes?|por hacer|zu erledigen|da fare|a fazer|сделать|надо сделать"
)
SECTION = (
    "to[- ]?do'?s?(?: list)?|things to do|still to do|left to do|what(?: i|')s left(?: to do)?|"
    "next steps?|remaining(?: work| tasks| items)?|open (?:tasks|points|questions|issues|items)|"
    "outstanding(?: work| tasks| items)?|not done(?: yet)?|unfinished|pending|backlog|roadmap|"
    "known issues|" + FOREIGN
)
HINTS = (
    r"(?i:\bnot (?:yet )?implemented\b|\bunfinished\b|\bincomplete\b|\bworkaround\b|\bfor now\b)"
    r"|NotImplemented(?:Error|Exception)\b"
)
"""Weaker signs, searched for only where there is no mark at all; told as hints, not as marks."""

PROSE = {"", ".md", ".markdown", ".mdx", ".txt", ".rst", ".adoc", ".org", ".tex", ".text", ".wiki"}
"""Endings of files whose lines are sentences rather than code; no ending counts as one."""

FAR = 80
"""Characters in front of a mark from which on a line is told from near the mark only."""

_BEFORE = r"(?<![\w|$@\\])(?<!\w[-./\\])"
_AFTER = r"(?![\w|`\"'])(?![-./\\]\w)"
_TITLE = (
    r"(?!\s+(?:apps?|applications?|lists|items|entries|manager|tracker|MVC"
    r"|list\s+(?:apps?|applications?|manager|tracker|view|component|items?))\b)"
)
_WORD = rf"{_BEFORE}(?P<word>{UPPER}){_AFTER}{_TITLE}"
_LOW = rf"{_BEFORE}(?P<word>{LOWER}){_AFTER}{_TITLE}"
_OWNER = r"(?:\s*\([^)]*\)|\s*\[[^\]]*\])?"
_OPENER = r"(?:\#|//|/\*|<!--|--|;|%|\(\*|\{-|\"\"\"|'''|\b(?i:rem|dnl)\b)"
_LEAD = r"^\W*(?:(?:(?i:rem|dnl)|\d+[.)])\s+)?"
_CONSTANT = r"(?!\s*(?:[=,;)\]}]|:\s*[\"'\d\[{]))"
_BULLET = r"(?:[-*+•]|\d+[.)])"

_EVERYWHERE = (
    ("todo", r"(?<![\w.])(?P<word>@(?i:todo|fixme))\b(?![-./]\w)"),
    ("todo", r"\\(?P<word>(?i:todo|fixme))\b(?:\[[^\]]*\])?\{"),
    ("todo", r"(?<![\w.])(?P<word>todo|unimplemented)!\s*[(\[{]"),
    ("todo", r"(?<![\w.])(?P<word>TODO)\(\s*(?:[\"'].*)?\)"),
    ("todo", r"\b(?:it|test|describe)\.(?P<word>todo)\("),
    ("box", r"^\W*(?P<word>[☐⬜□])\s*\S"),
)
_IN_PROSE = (
    ("box", rf"^\s*(?:>\s*)*{_BULLET}\s+(?P<word>\[[ _-]?\])\s+(?!~~)\S"),
    ("box", r"^\s*(?:>\s*)*(?P<word>\[ \])\s+(?!~~)\S"),
    ("todo", _LEAD + _WORD),
    ("todo", rf"{_WORD}{_OWNER}[:\uff1a]"),
    ("todo", rf"[(\[<{{*_]{_WORD}[)\]>}}*_]"),
    ("todo", rf"{_BEFORE}(?P<word>TBD)\b"),
    ("todo", rf"{_BEFORE}(?P<word>FIXME|XXX)\s*$"),
    ("todo", rf"{_LEAD}(?i:{_LOW}){_OWNER}\s*[:\uff1a]"),
    ("todo", rf"[(\[]\s*(?i:{_LOW}){_OWNER}\s*[:\uff1a]"),
    ("todo", rf"<!--\W*(?i:{_LOW})"),
    ("todo", rf"{_LEAD}(?P<word>(?i:{FOREIGN}))\s*[:\uff1a]\s*\S"),
)
_IN_CODE = (
    ("box", rf"(?:{_OPENER}|^\s*\*)\W*?(?P<word>\[ \])\s+(?!~~)\S"),
    ("todo", rf"{_OPENER}.*?{_WORD}"),
    ("todo", _LEAD + _WORD + _CONSTANT),
    ("todo", rf"(?<!case ){_WORD}{_OWNER}[:\uff1a](?!\s*[\"'\d\[{{])"),
    ("todo", rf"{_OPENER}\W*(?i:{_LOW})"),
    ("todo", rf"{_OPENER}.*?(?i:{_LOW}){_OWNER}\s*[:\uff1a]"),
    ("todo", rf"{_OPENER}\W*(?i:{_BEFORE}(?P<word>hack|bug|xxx))\s*[:\uff1a]"),
    ("todo", rf"^\s*[*>|]+\s*(?i:{_LOW}){_OWNER}\s*[:\uff1a]"),
    ("todo", rf"{_OPENER}\W*(?P<word>(?i:{FOREIGN}))\s*[:\uff1a]"),
)
_HEADING = (
    rf"^\s*(?:\#{{1,6}}\s+|=+\s+|\*+\s+|\.\. )?(?:\*\*|__)?(?:\d+[.)]\s*)?"
    rf"(?P<word>(?i:{SECTION}))\s*(?P<sign>:?(?:\*\*|__)?:{{0,2}})\s*[#=]*\s*$"
)
_MARKED_HEADING = re.compile(r"^\s*(?:#|=+\s|\*+\s|\*\*|__|\.\. )")
_DONE = re.compile(
    r"^\s*(?:>\s*)*(?:[-*+•]|\d+[.)])?\s*"
    r"(?:\[[xX✓✔]\]|[☑☒✅✓✔]|~~|(?:DONE|done):?\s)"
)

_PROSE_RULES = [(kind, re.compile(rule)) for kind, rule in (*_EVERYWHERE, *_IN_PROSE)]
_CODE_RULES = [(kind, re.compile(rule)) for kind, rule in (*_EVERYWHERE, *_IN_CODE)]
_SECTION_RULE = re.compile(_HEADING)

WORDS_PATTERN = (
    rf"\b(?:{UPPER})\b|(?i:\b(?:{LOWER})\b)|\bunimplemented!"
    rf"|(?i:(?:#|//|/\*|<!--|--|;)\W*\b(?:hack|bug|xxx)\s*:)|(?:^|\W)(?i:{FOREIGN})\s*[:\uff1a]"
)
"""Finds every line that may hold a marked word; `mark_of` decides."""

LISTS_PATTERN = r"\[[ _-]?\]\s+\S|[☐⬜□]|" + re.sub(r"\?P<\w+>", "", _HEADING)
"""Finds every line that may hold an open box or the heading of a list of open work."""


@dataclass(frozen=True, order=True)
class Mark:
    """One thing left to do. `kind`: a word in capitals, `open box`, `list item` or `heading`."""

    path: str
    line: int
    kind: str
    text: str


def is_prose(path: str) -> bool:
    """Whether a line of this file is read as a sentence or list rather than as code."""
    return PurePosixPath(path).suffix.lower() in PROSE


def mark_of(path: str, line: int, text: str) -> Mark | None:
    """The mark that this line is, or None. A heading of a section is none: its items are."""
    if heading(path, text) or _DONE.match(text):
        return None
    for kind, rule in _PROSE_RULES if is_prose(path) else _CODE_RULES:
        found = rule.search(text)
        if found:
            named = "open box" if kind == "box" else _name(found["word"])
            return Mark(path, line, named, _from_near(text, found.start("word")))
    return None


def _from_near(text: str, at: int) -> str:
    """The line; of a long one, what begins a little before its mark."""
    return text.strip() if at <= FAR else f"...{text[at - FAR // 2 :].strip()}"


def _name(word: str) -> str:
    """The marked word as it is counted: `@todo`, `todo!` and `To-Do` are all TODO."""
    plain = re.sub(r"[\s@-]", "", word).upper()
    return "TODO" if not plain.isascii() or plain == "UNIMPLEMENTED" else plain


def heading(path: str, text: str) -> bool:
    """Whether this line heads a list of open work: `## TODO`, `Next steps:`, `.. todo::`."""
    found = _SECTION_RULE.match(text)
    if not found:
        return False
    if not is_prose(path):
        return found["word"][0].isupper() and found["word"].lower().startswith("to")
    to_do = found["word"].lower().startswith("to")
    return bool(to_do or ":" in found["sign"] or _MARKED_HEADING.match(text))


def item_of(path: str, line: int, text: str, *, bare: bool = False) -> Mark | None:
    """The open item of a to-do list that this line is; `bare` takes a line without a bullet too."""
    found = re.match(rf"^\s*(?P<bullet>{_BULLET}\s+)?(?P<rest>\S.*)$", text)
    if not found or _DONE.match(text) or not (found["bullet"] or bare):
        return None
    if bare and re.match(r"^(?:#|=+\s*$|-+\s*$|x )", text):
        return None
    return mark_of(path, line, text) or Mark(path, line, "list item", text.strip())
