"""Under the agents of other people a thread is what it is under LangGraph's own saver."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.drop_in.agents import AGENTS, converse, history
from tests.support.processes import output
from tests.support.savers import Opener, ours, size, stock

READ = """
    import sys
    from pathlib import Path
    from tests.drop_in.agents import AGENTS, history
    from tests.support.savers import ours, stock
    make, _ = AGENTS[sys.argv[1]]
    for opened, path in zip((ours, ours, stock), sys.argv[2:]):
        with opened(Path(path)) as saver:
            print(*map(hash, history(make(saver))))
"""
"""What a new process reads of two files of ours, and of the stock saver's, in little space."""


def worked(opened: Opener, path: Path, agent: str) -> list[str]:
    """The history of a thread on which this agent has worked."""
    make, prompts = AGENTS[agent]
    with opened(path) as saver:
        graph = make(saver)
        converse(graph, prompts)
        return history(graph)


def gone_on(opened: Opener, path: Path, agent: str) -> list[str]:
    """The newest state after one more run."""
    make, prompts = AGENTS[agent]
    with opened(path) as saver:
        converse(make(saver), prompts[-1:])
        return history(make(saver), 1)


@pytest.mark.parametrize("agent", AGENTS)
def test_threads_are_the_stock_saver_s_also_reopened_and_pruned(agent: str, tmp_path: Path) -> None:
    mine, theirs = tmp_path / "ours.db", tmp_path / "stock.db"
    states = worked(ours, mine, agent)
    assert len(states) > 30
    assert worked(stock, theirs, agent) == states
    pruned = tmp_path / "pruned.db"
    shutil.copy(mine, pruned)
    with ours(pruned) as saver:
        saver.prune(["t"])
    assert size(pruned) <= size(mine)
    lines = output(READ, agent, mine, pruned, theirs, PYTHONHASHSEED="0").splitlines()
    reread, newest, expected = (line.split() for line in lines)
    assert reread == expected
    assert newest == expected[:1]
    assert gone_on(ours, pruned, agent) == gone_on(stock, theirs, agent)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_stock_file_is_opened_in_place_and_goes_on(agent: str, tmp_path: Path) -> None:
    make, _ = AGENTS[agent]
    begun = worked(stock, tmp_path / "a.db", agent)
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    with ours(tmp_path / "a.db") as saver:
        assert history(make(saver)) == begun
    assert gone_on(ours, tmp_path / "a.db", agent) == gone_on(stock, tmp_path / "b.db", agent)


def test_what_is_stored_grows_with_the_turns(tmp_path: Path) -> None:
    make, _ = AGENTS["create_agent"]

    def stored(turns: int) -> Any:
        path = tmp_path / f"{turns}.db"
        with ours(path) as saver:
            converse(make(saver), (str(turns),))
        return size(path)

    few, many = stored(25), stored(100)
    assert many < 4.5 * few
    assert many < 100 * 10_000
