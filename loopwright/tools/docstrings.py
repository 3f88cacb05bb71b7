"""Reads a docstring: what the function does, and what each parameter means.

Knows the styles of Google, NumPy and Sphinx. Types in a docstring are not read: hints say them.
"""

import inspect
import re
from collections.abc import Collection

_PARAMETERS = "args|arguments|params|parameters|keyword args|keyword arguments|other parameters"
_OTHER = (
    "returns?|yields?|raises|receives|attributes|examples?|references|see also|methods|todo|usage"
)
_HEADER = re.compile(rf"(?:(?P<parameters>{_PARAMETERS})|{_OTHER})\s*:?\s*", re.IGNORECASE)
_UNDERLINE = re.compile(r"\s*[-=]{3,}\s*")
_GOOGLE = re.compile(r"\s*\*{0,2}(?P<names>\w+)\s*(?:\(.*?\))?\s*:\s*(?P<text>.*)")
_NUMPY = re.compile(r"\*{0,2}(?P<names>\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_FIELD = re.compile(
    r":(?:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(?P<names>\w+)"
    r"|(?:returns?|rtype|raises?|except|exception|yields?|type|ivar|cvar|var)\b[^:]*)"
    r":\s*(?P<text>.*)"
)


def read(docstring: str | None, parameters: Collection[str]) -> tuple[str, dict[str, str]]:
    """The description without its sections, and the text of every parameter that has one.

    A name that is no parameter of the function is taken for a word of the text before it.
    """
    reader = _Reader(parameters)
    lines = inspect.cleandoc(docstring or "").splitlines() or [""]
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        reader.take(line, below)
    described = {name: " ".join(words) for name, words in reader.described.items() if words}
    return "\n".join(reader.prose).strip(), described


class _Reader:
    def __init__(self, parameters: Collection[str]) -> None:
        self.prose: list[str] = []
        self.described: dict[str, list[str]] = {}
        self._parameters = parameters
        self._section: re.Pattern[str] | None = None
        """How this section names a parameter; None in the prose and in sections about others."""
        self._skipping = False
        self._numpy = False
        self._current: list[list[str]] = []
        self._indent: int | None = None

    def take(self, line: str, below: str) -> None:
        """Read the next line; `below` is the one after it."""
        if self._starts_section(line, below):
            return
        if self._skipping and self._ends_section(line):
            self._skipping, self._section = False, None
        if not self._skipping:
            self.prose.append(line)
        elif not _UNDERLINE.fullmatch(line) and line.strip():
            self._describe(line)

    def _starts_section(self, line: str, below: str) -> bool:
        if field := _FIELD.match(line):
            self._open(None, numpy=False)
            self._name(field["names"], field["text"])
            return True
        header = _HEADER.fullmatch(line)
        underlined = bool(_UNDERLINE.fullmatch(below)) and not line[:1].isspace()
        if not header or not (underlined or line.rstrip().endswith(":")):
            return False
        style = _NUMPY if underlined else _GOOGLE
        self._open(style if header["parameters"] else None, numpy=underlined)
        return True

    def _open(self, section: re.Pattern[str] | None, *, numpy: bool) -> None:
        self._section, self._numpy, self._skipping = section, numpy, True
        self._current, self._indent = [], None

    def _ends_section(self, line: str) -> bool:
        """Only a NumPy section goes on in lines that are not indented."""
        return bool(line.strip()) and not line[0].isspace() and not self._numpy

    def _describe(self, line: str) -> None:
        indent = len(line) - len(line.lstrip())
        self._indent = indent if self._indent is None else self._indent
        named = self._section.fullmatch(line) if self._section else None
        starred = line.lstrip().startswith("*")
        if named and indent <= self._indent and (starred or self._known(named["names"])):
            self._name(named["names"], named.groupdict().get("text") or "")
        else:
            for words in self._current:
                words.append(line.strip())

    def _known(self, names: str) -> bool:
        return any(name in self._parameters for name in re.findall(r"\w+", names))

    def _name(self, names: str | None, text: str) -> None:
        known = [name for name in re.findall(r"\w+", names or "") if name in self._parameters]
        self._current = [self.described.setdefault(name, []) for name in known]
        for words in self._current:
            words.extend([text.strip()] if text.strip() else [])
