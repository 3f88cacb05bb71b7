"""`loopwright doctor`, `backup` and `linearize` as a user calls them: lines, exit codes, JSON."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.running import begin, loopwright, stored
from tests.support.savers import chat, history, ours, stock, talk


def orphan(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO loopwright_rows VALUES (99, 0, NULL, x'00')")
        connection.commit()


def test_a_whole_database_is_told_in_one_line(tmp_path: Path) -> None:
    begin(tmp_path / "t.db", "mine", "list files")
    done = loopwright(tmp_path, "doctor", "t.db")
    assert (done.code, done.err) == (0, "")
    (line,) = done.out.splitlines()
    assert line.startswith(str(tmp_path / "t.db"))
    assert "1 threads" in line and line.endswith("nothing wrong")


def test_the_database_of_the_environment_is_looked_at(tmp_path: Path) -> None:
    begin(tmp_path / "t.db", "mine", "list files")
    done = loopwright(tmp_path, "doctor", LOOPWRIGHT_DATABASE=str(tmp_path / "t.db"))
    assert done.code == 0 and str(tmp_path / "t.db") in done.out


def test_findings_are_lines_and_after_a_repair_the_doctor_says_nothing(tmp_path: Path) -> None:
    begin(tmp_path / "t.db", "mine", "list files")
    orphan(tmp_path / "t.db")
    found = loopwright(tmp_path, "doctor", "t.db")
    finding, summary = found.out.splitlines()
    assert (found.code, found.err) == (1, "")
    assert finding.startswith("table loopwright_rows: 1 rows") and finding.endswith("(--repair)")
    assert summary.endswith("1 finding")
    repaired = loopwright(tmp_path, "doctor", "t.db", "--repair")
    assert repaired.code == 0 and repaired.out.startswith("mended: table loopwright_rows")
    again = loopwright(tmp_path, "doctor", "t.db")
    assert again.code == 0 and len(again.out.splitlines()) == 1
    assert len(stored(tmp_path / "t.db", "mine")) == 4


def test_programs_get_one_line_of_json(tmp_path: Path) -> None:
    begin(tmp_path / "t.db", "mine", "list files")
    orphan(tmp_path / "t.db")
    done = loopwright(tmp_path, "doctor", "t.db", "--json", "--quick")
    report = json.loads(done.out)
    assert done.code == 1
    assert (report["threads"], report["others"], report["mended"]) == (1, 0, [])
    (finding,) = report["findings"]
    assert finding["where"] == "table loopwright_rows" and finding["repairable"] is True


def test_a_file_that_cannot_be_opened_is_exit_code_2_and_none_is_made(tmp_path: Path) -> None:
    for command in (("doctor", "t.db"), ("backup", "t.db", "b.db"), ("linearize", "t.db")):
        done = loopwright(tmp_path, *command)
        assert (done.code, done.out) == (2, "")
        assert "t.db" in done.err and "no such file" in done.err and done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_backup_is_a_database_and_overwrites_nothing_unasked(tmp_path: Path) -> None:
    begin(tmp_path / "t.db", "mine", "list files")
    first = loopwright(tmp_path, "backup", "t.db", "b.db")
    assert (first.code, first.err) == (0, "")
    assert first.out.startswith("b.db: ") and "checked" in first.out
    second = loopwright(tmp_path, "backup", "t.db", "b.db")
    assert second.code == 2 and "--force" in second.err
    assert loopwright(tmp_path, "backup", "t.db", "b.db", "--force").code == 0
    assert stored(tmp_path / "b.db", "mine") == stored(tmp_path / "t.db", "mine")


def test_a_stock_file_is_rewritten_beside_itself(tmp_path: Path) -> None:
    with stock(tmp_path / "s.db") as saver:
        talk(chat(saver))
        before = history(chat(saver))
    done = loopwright(tmp_path, "linearize", "s.db")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("s.linear.db: 1 threads, ") and "compared" in done.out
    with ours(tmp_path / "s.linear.db") as saver:
        assert history(chat(saver)) == before
