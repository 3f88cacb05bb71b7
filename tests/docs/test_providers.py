"""docs/providers.md says what the code says: its table is the table, its new provider is short.

`python -m tests.docs.test_providers` prints the table for the page.
"""

import re
from pathlib import Path

from loopwright.providers.dialect import GENERIC
from loopwright.providers.servers import SERVERS, Server
from loopwright.providers.wire.target import ANTHROPIC, DIALECTS

PAGE = Path(__file__).parents[2] / "docs" / "providers.md"
COLUMNS = ("name", "address", "key", "thinking levels", "beside the rule", "evidence", "unverified")


def table() -> str:
    """The rows of the table of providers as Markdown."""
    rows = [COLUMNS, ("---",) * len(COLUMNS), *map(_row, SERVERS, SERVERS.values())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(name: str, server: Server) -> tuple[str, ...]:
    evidence = ", ".join(f"[{n}]({url})" for n, url in enumerate(server.evidence, 1))
    return (
        f"`{name}`",
        f"`{server.url or server.url_variable}`",
        f"`{server.key_variable}`" if server.key_variable else "none",
        _thinking(server),
        "; ".join(_differences(server)) or "-",
        evidence,
        server.unverified,
    )


def _thinking(server: Server) -> str:
    """Where the levels are sent, by the first field of the highest one."""
    if not server.thinking:
        return "change nothing"
    ((field, value),) = server.thinking["high"].items()
    while isinstance(value, dict):
        ((inner, value),) = value.items()
        field = inner if field == "extra_body" else f"{field}.{inner}"
    return f"`{field}`" + (", off is said" if "off" in server.thinking else "")


def _differences(server: Server) -> list[str]:
    """What the server differs in from the rule of the page."""
    dialect = server.dialect or (DIALECTS[ANTHROPIC] if server.client == "anthropic" else GENERIC)
    said = {
        f"protocol of {server.client}": server.client != "openai",
        "is not asked for token counts": not server.stream_options,
        f"bound on tokens is `{server.max_tokens}`": server.max_tokens != "max_tokens",
        f"`prompt_cache_key` of at most {dialect.cache_key} characters": dialect.cache_key,
        f"gets its thinking back ({dialect.thinking_back})": dialect.thinking_back,
        "images in results": dialect.image_results,
        "empty text for null content": not dialect.null_content,
        "schemas as they are": dialect.schemas == "full",
        f"a key is tried with `GET {server.check}`": server.check not in (None, "/models"),
        "a key is tried with a request for one token": server.check is None,
    }
    return [what for what, holds in said.items() if holds]


def test_the_table_of_the_page_is_the_table_of_the_code() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")


def test_every_row_has_its_evidence() -> None:
    for name, server in SERVERS.items():
        assert server.evidence, name
        assert all(url.startswith("https://") for url in server.evidence), name


def test_a_new_provider_is_at_most_twenty_lines() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index("## A provider of your own") :]
    block = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert block is not None and len(block[1].splitlines()) <= 20


if __name__ == "__main__":
    print(table())
