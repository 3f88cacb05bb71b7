"""A thread taken out of one database and into another, whole or not at all, and going on there."""

import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from loopwright import Agent, Settings
from loopwright.errors import ThreadExistsError, ThreadFileError, UnknownThreadError
from loopwright.planning import plan_tool
from loopwright.state.transcript import faults
from loopwright.testing import Response, ScriptedModel
from tests.support.graphs import outline
from tests.support.processes import output
from tests.support.savers import count


def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


CALL = Response(text="I look.", calls=[("c1", "look", {"at": "it"})])
TABLES = ("checkpoints", "writes", "loopwright_rows", "loopwright_values", "loopwright_log")


def agent(path: Path, *script: Any, **options: Any) -> Agent:
    return Agent(ScriptedModel(script), [look], database=path, thread="t", **options)


def exported(folder: Path, **options: Any) -> Path:
    """The file of a thread of four messages, with two queued ones."""
    with agent(folder / "from.db", CALL, "seen", system_prompt="Look.", **options) as made:
        made.run("one?")
        made.steer("wait")
        made.follow_up("later")
        made.export(None, folder / "t.jsonl")
    return folder / "t.jsonl"


def test_a_thread_goes_on_elsewhere_as_it_would_have_here(tmp_path: Path) -> None:
    file = exported(tmp_path)
    with agent(tmp_path / "to.db", "two", "three") as made:
        done = made.import_(file)
        assert (done.thread, done.messages, done.queued) == ("t", 4, 2)
        assert not done.torn and not done.repaired
        with agent(tmp_path / "from.db") as before:
            assert made.messages() == before.messages()
            usage = before._values("t", None)["usage"]
        assert made._values("t", None)["usage"] == usage
        assert [m.text for m in made.queued("steering")] == ["wait"]
        made.run("two?")
        assert outline(made.messages())[4:] == [
            "user: two?",
            "user: wait",
            "assistant: two",
            "user: later",
            "assistant: three",
        ]
        assert made._values("t", None)["system_prompt"] == "Look."
        assert [m.next for m in made.history()][-1] is None


def test_a_name_is_given_or_taken_from_the_file_or_new(tmp_path: Path) -> None:
    file = exported(tmp_path)
    with agent(tmp_path / "from.db") as made:
        assert made.import_(file, name="mine").thread == "mine"
        fresh = made.import_(file).thread
        assert fresh not in ("t", "mine")
        with pytest.raises(ThreadExistsError):
            made.import_(file, name="mine")
        assert {info.id for info in made.threads()} == {"t", "mine", fresh}
        text = file.read_text()
        for odd in ("\\u001b[2J", "\\ud800"):
            file.write_text(text.replace('"thread":"t"', f'"thread":"{odd}"', 1))
            assert made.import_(file).thread.isalnum()


def test_an_export_of_a_moment_has_nothing_that_is_queued(tmp_path: Path) -> None:
    exported(tmp_path)
    with agent(tmp_path / "from.db") as made:
        made.export("t", tmp_path / "then.jsonl", at=2)
        done = made.import_(tmp_path / "then.jsonl", name="then")
        # The result of the call, which came later, is known from the journal.
        assert (done.messages, done.queued, done.repaired["recovered"]) == (3, 0, 1)
        assert not faults(made.messages("then"))
        with pytest.raises(UnknownThreadError):
            made.export("none", tmp_path / "none.jsonl")
        assert not (tmp_path / "none.jsonl").exists()


def test_a_compacted_thread_shows_the_same_to_the_model(tmp_path: Path) -> None:
    texts = [f"answer {number} " + "x" * 400 for number in range(8)]
    small = Settings(context_window=400, compaction_tail=2)
    with agent(tmp_path / "a.db", *texts, *["more"] * 8, settings=small) as made:
        for number in range(6):
            made.run(f"{number}?")
        made.export(None, tmp_path / "t.jsonl")
        assert made._values("t", None)["compaction"]["start"] > 0
    with agent(tmp_path / "b.db", "on") as other:
        other.import_(tmp_path / "t.jsonl")
        with agent(tmp_path / "a.db") as before:
            compaction = before._values("t", None)["compaction"]
        assert other._values("t", None)["compaction"] == compaction
        other.run("and?")
        view = other._values("t", None)["view"]
        assert (view["head"], view["start"]) == (compaction["head"], compaction["start"])


def test_a_torn_file_gives_what_is_there_and_a_broken_one_nothing(tmp_path: Path) -> None:
    file = exported(tmp_path)
    lines = file.read_text().splitlines(keepends=True)
    with agent(tmp_path / "to.db", "on") as made:
        (tmp_path / "torn.jsonl").write_text("".join(lines[:4]) + lines[4][:30])
        done = made.import_(tmp_path / "torn.jsonl", name="torn")
        assert (done.messages, done.torn, done.repaired["synthesized"]) == (3, True, 1)
        assert made.run("and?", thread="torn").final_text == "on"
        (tmp_path / "broken.jsonl").write_text("".join([*lines[:3], "{\n", *lines[3:]]))
        before = counts(tmp_path / "to.db")
        with pytest.raises(ThreadFileError, match="line 4"):
            made.import_(tmp_path / "broken.jsonl", name="broken")
        assert counts(tmp_path / "to.db") == before


@pytest.mark.parametrize("policy", ["died", "off"])
def test_a_transcript_that_is_not_valid_is_mended_by_policy(tmp_path: Path, policy: Any) -> None:
    file = exported(tmp_path)
    lines = file.read_text().splitlines(keepends=True)
    header = json.loads(lines[0]) | {"messages": 5}
    file.write_text("".join([json.dumps(header) + "\n", *lines[1:5], lines[2], *lines[5:]]))
    with agent(tmp_path / "to.db", settings=Settings(repair_policy=policy)) as made:
        done = made.import_(file)
        assert bool(faults(made.messages())) is (policy == "off")
        assert done.repaired.get("deduplicated", 0) == (policy == "died")


def test_a_file_is_written_whole_and_for_its_owner_only(tmp_path: Path) -> None:
    file = exported(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_text()
    with agent(tmp_path / "from.db") as made:
        stream = io.StringIO()
        made.export(None, stream)
        assert stream.getvalue().splitlines()[1:] == before.splitlines()[1:]
        for wrong in (tmp_path / "none" / "t.jsonl", tmp_path, tmp_path / "from.db"):
            with pytest.raises(ThreadFileError, match="cannot use"):
                made.export(None, wrong)
        for wrong in (tmp_path / "none.jsonl", tmp_path, tmp_path / "from.db"):
            with pytest.raises(ThreadFileError, match="cannot use"):
                made.import_(wrong)
        assert outline(made.messages())[0] == "user: one?"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["from.db", "t.jsonl"]


KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from loopwright import Agent
from loopwright.testing import ScriptedModel

folder, work = Path(sys.argv[1]), sys.argv[2]

def run(path, place):
    agent = Agent(ScriptedModel([]), database=path, thread="other")
    seen = 0
    def count(statement):
        nonlocal seen
        if statement.split(" ")[0] in ("INSERT", "DELETE", "UPDATE", "COMMIT"):
            seen += 1
            if seen == place:
                os.kill(os.getpid(), signal.SIGKILL)
    agent._storage.checkpointer.database.connection.set_trace_callback(count)
    if work == "import":
        agent.import_(folder / "t.jsonl", name="imported")
    else:
        agent.delete("t")
    agent.close()

status = -signal.SIGKILL
for place in range(1, 100):
    path = folder / f"{place}.db"
    shutil.copy(folder / "from.db", path)
    child = os.fork()
    if child == 0:
        run(path, place)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != -signal.SIGKILL:
        break
print(place, status)
"""


@pytest.mark.parametrize("work", ["import", "delete"])
def test_a_process_killed_at_any_statement_has_done_all_or_nothing(
    tmp_path: Path, work: str
) -> None:
    exported(tmp_path)
    before = counts(tmp_path / "from.db")
    places, status = map(int, output(KILLED, tmp_path, work).split())
    assert (places > 8, status) == (True, 0)
    after = counts(tmp_path / f"{places}.db")
    assert after != before
    for place in range(1, places + 1):
        path = tmp_path / f"{place}.db"
        with agent(path) as made:
            threads = [info.id for info in made.threads()]
            if counts(path) == before:
                assert threads == ["t"] and place < places
                continue
            assert counts(path) == after
            if work == "import":
                assert made.messages("imported") == made.messages("t")
                assert [m.text for m in made.queued("steering", thread="imported")] == ["wait"]
            else:
                assert not threads and set(after.values()) == {0}


def counts(path: Path) -> dict[str, int]:
    return {table: count(path, table) for table in TABLES}


def test_an_imported_thread_is_read_by_a_new_process(tmp_path: Path) -> None:
    file = exported(tmp_path)
    with agent(tmp_path / "to.db") as made:
        made.import_(file)
    script = """
        import sys
        from loopwright import Agent
        with Agent(database=sys.argv[1], thread="t") as agent:
            print(len(agent.messages()), len(agent.queued("follow_up")))
    """
    assert output(script, tmp_path / "to.db") == "4 1"


def test_a_plan_goes_along(tmp_path: Path) -> None:
    steps = ("p", "plan", {"steps": ["look", "write"]})
    script: list[Response | str] = [Response(calls=[steps]), "[Step 1 done] so far"]
    with Agent(ScriptedModel(script), [plan_tool], database=tmp_path / "a.db", thread="t") as made:
        made.run("do it")
        plan = made._values("t", None)["plan"]
        assert plan["steps"] == ["look", "write"]
        made.export(None, tmp_path / "t.jsonl")
    with agent(tmp_path / "b.db") as made:
        assert made._values(made.import_(tmp_path / "t.jsonl").thread, None)["plan"] == plan
