"""Secrets that the runtime holds, and how they are taken out of a text: by their value.

Where the texts come from does not matter: a tool that prints its own key is no exception.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import quote

from loopwright.settings import Environment

REDACTED = "[redacted]"
"""What stands in the place of a secret."""

SHORTEST = 4
"""Characters of the shortest value that is taken for a secret: fewer would be found in any text."""

_PLACEHOLDERS = frozenset({"not-needed", "none", "null", "EMPTY"})
"""What is given as a key to servers that want none."""

_LETTERS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


def held(environment: Environment, variables: Mapping[str, str]) -> list[str]:
    """The keys in a process's environment: ours, and every variable named `..._API_KEY`."""
    own = environment.api_key.get_secret_value() if environment.api_key else ""
    return [own, *(value for name, value in variables.items() if name.endswith("_API_KEY"))]


class Secrets:
    """Takes secrets out of texts, as they are and as they look in JSON, also in JSON within JSON,
    and in URLs. Values may be added at any time; what was written before is not changed.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._known: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Take these for secrets too; blanks around them do not count."""
        given = {value.strip() for value in values}
        new = {v for v in given if len(v) >= SHORTEST} - _PLACEHOLDERS - self._known
        if new:
            self._known |= new
            self._pattern = _pattern_of(self._known)

    def redacted(self, text: str) -> str:
        """The text without them."""
        return text if self._pattern is None else self._pattern.sub(REDACTED, text)


def _pattern_of(secrets: Collection[str]) -> re.Pattern[str]:
    longest_first = sorted(secrets, key=len, reverse=True)
    return re.compile("|".join("".join(map(_forms, secret)) for secret in longest_first))


def _forms(character: str) -> str:
    """What a character looks like as it is, escaped once or more in JSON, and quoted in a URL."""
    if character.isascii() and character.isalnum():
        return character
    plain = re.escape(character)
    units = character.encode("utf-16-be", "surrogatepass")
    escaped = "".join(rf"\\+u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
    octets = character.encode("utf-8", "surrogatepass")
    quoted = "".join(f"%(?:25)*{octet:02x}" for octet in octets)
    forms = [rf"\\*{plain}", rf"(?i:{escaped})", rf"(?i:{quoted})"]
    if character in _LETTERS:
        forms.append(rf"\\+{_LETTERS[character]}")
    if quote(character, safe="") == "%20":
        forms.append(r"\+")
    return f"(?:{'|'.join(forms)})"
