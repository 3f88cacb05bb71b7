"""`loopwright doctor`: what is wrong with a database, and with `--repair` what was done about it.

Exit codes: 0 nothing is wrong (any more), 1 something is, 2 the file cannot be opened.
"""

from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli.opening import database_path
from loopwright.cli.screen import Screen
from loopwright.cli.text import one_line
from loopwright.state.doctor import Report, as_json, examine
from loopwright.state.mending import mend

WIDTH = 500


def doctor(
    database: Annotated[
        Path | None, typer.Argument(help="The database.", metavar="DB", show_default=False)
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what needs nobody's judgement.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not compare indexes with their tables.")
    ] = False,
    as_lines_of_json: Annotated[
        bool, typer.Option("--json", help="Print the report as one line of JSON.")
    ] = False,
) -> None:
    """Look for damage in a database: the file, its tables, every thread's transcript."""
    path = database_path(database)
    report = examine(path, quick=quick)
    mended = []
    if repair and any(finding.mend for finding in report.findings):
        mended = mend(report)
        report = examine(path, quick=quick)
    if as_lines_of_json:
        print(as_json(report, mended))
    else:
        _show(report, mended)
    raise typer.Exit(1 if report.findings else 0)


def _show(report: Report, mended: list[str]) -> None:
    screen = Screen()
    for done in mended:
        screen.line(one_line(f"mended: {done}", WIDTH))
    for where, what in report.notes:
        screen.line(one_line(f"note: {where}: {what}", WIDTH))
    for finding in report.findings:
        remedy = f"{finding.remedy} (--repair)" if finding.mend else finding.remedy
        screen.line(one_line(f"{finding.where}: {finding.what}; {remedy}", WIDTH))
    found = len(report.findings)
    wrong = {0: "nothing wrong", 1: "1 finding"}.get(found, f"{found} findings")
    schema = f"schema {report.schema} of {report.newest}" if report.schema else "stock schema"
    others = f" ({report.others} of other graphs)" if report.others else ""
    log = f"log {report.log_bytes} bytes"
    screen.line(f"{report.path}: {schema}, {report.threads} threads{others}, {log}: {wrong}")
