"""`loopwright threads`, `show` and `graph`: what is stored, and how an agent is built."""

from pathlib import Path

from tests.cli.running import begin, loopwright
from tests.providers.offline.folders import write


def test_threads_are_listed_with_their_first_question_last_used_first(tmp_path: Path) -> None:
    for thread, question in (("one", "list files"), ("two", "read a.txt"), ("one", "read b.txt")):
        begin(tmp_path / "t.db", thread, question)
    lines = loopwright(tmp_path, "threads", "--database", "t.db").out.splitlines()
    assert [line.split()[0] for line in lines] == ["one", "two"]
    assert "8 messages" in lines[0] and lines[0].endswith("list files")
    assert "4 messages" in lines[1] and lines[1].endswith("read a.txt")


def test_a_long_id_moves_its_own_line_only(tmp_path: Path) -> None:
    for thread in ("short", "x" * 300):
        begin(tmp_path / "t.db", thread, "list files")
    first, second = loopwright(tmp_path, "threads", "--database", "t.db").out.splitlines()
    assert first.startswith("x" * 300 + "  ") and len(second) < 120


def test_a_thread_is_shown_message_by_message(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "".join(f"line {number}\n" for number in range(30))})
    begin(tmp_path / "t.db", "mine", "read a.txt", "read nope.txt")
    words = ("show", "mine", "--database", "t.db")
    shown = loopwright(tmp_path, *words).out
    order = [
        "[1] human",
        "read a.txt",
        "[2] ai",
        "-> read_file(path='a.txt')",
        "[3] tool read_file",
    ]
    places = [shown.index(text) for text in order]
    assert places == sorted(places)
    assert "... and 18 more lines (--full)" in shown
    assert "[7] tool read_file error" in shown
    full = loopwright(tmp_path, *words, "--full").out
    assert "line 29" in full and "--full" not in full


def test_the_graph_is_mermaid_text_with_every_node(tmp_path: Path) -> None:
    done = loopwright(tmp_path, "graph")
    assert (done.code, done.err) == (0, "")
    nodes = "load queue_drain model tool_batch stop_hook compact finish fail".split()
    assert all(f"\t{node}({node})" in done.out for node in nodes)
    assert not any(tmp_path.rglob("*.db"))


def test_the_version_is_told(tmp_path: Path) -> None:
    assert loopwright(tmp_path, "--version").out.startswith("loopwright")
