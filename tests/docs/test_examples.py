"""The Python examples of the README and the docs run, and what they assert holds.

The blocks of a page run in order in one namespace, as a reader would type them; a block below
`<!-- not run -->` is left out.
"""

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(
    r"(?P<left_out>^<!-- not run -->\s*\n)?^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)


def examples(page: str) -> list[tuple[int, str]]:
    """Line and source of each Python block of a page that is to be run."""
    return [
        (page[: block.start("code")].count("\n"), block["code"])
        for block in _BLOCK.finditer(page)
        if not block["left_out"]
    ]


def run(examples: list[tuple[int, str]], file: str) -> dict[str, Any]:
    """Run the blocks one after the other; a traceback names the page and the line in it."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for line, source in examples:
        code = compile("\n" * line + source, file, "exec", dont_inherit=True)
        exec(code, namespace)
    return namespace


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if examples(page.read_text(encoding="utf-8"))],
    ids=lambda page: page.name,
)
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOOPWRIGHT_DATABASE", str(tmp_path / "threads.db"))
    run(examples(page.read_text(encoding="utf-8")), str(page))


def test_every_page_with_examples_is_found() -> None:
    pages = {page.name for page in PAGES if "```python" in page.read_text(encoding="utf-8")}
    assert {"README.md", "serving.md", "course.md", "planner.md"} <= pages


PAGE = """# Page
```python
first = 1
```
text
```sh
not python
```
<!-- not run -->
```python
raise SystemExit
```
```python
second = first + 1
assert second == 3, "wrong"
```
"""


def test_blocks_run_in_order_except_those_left_out() -> None:
    assert [line for line, _ in examples(PAGE)] == [2, 13]
    assert run(examples(PAGE.replace("== 3", "== 2")), "page.md")["second"] == 2


def test_a_failing_block_is_told_with_its_line() -> None:
    with pytest.raises(AssertionError, match="wrong") as failed:
        run(examples(PAGE), "page.md")
    assert failed.traceback[-1].lineno + 1 == 15
