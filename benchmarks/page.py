"""Where results are put into the documentation: between two marks of a page, as they were printed.

What is measured is said in `loop`, `loads` and `savers`.
"""

from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def put(text: str, page: Path, mark: str) -> None:
    """Replace what stands between `<!-- mark -->` and `<!-- /mark -->`; both must be there."""
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page.name} has no place for {mark!r}: it needs {begin} and {end}")
    block = f"{begin}\n```\n{text.strip()}\n```\n{end}"
    page.write_text(f"{before}{block}{after}", encoding="utf-8")
