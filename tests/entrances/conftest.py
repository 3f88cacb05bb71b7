"""The entrances; a server is started once for all tests, and again if a test has killed it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.entrances import processes, scripted
from tests.entrances.processes import Process
from tests.entrances.ways import ByAgent, ByDevServer, ByLangServe, Way


class Servers:
    """The running servers by what they are."""

    def __init__(self, new_folder: Callable[[str], Path]) -> None:
        self._new_folder = new_folder
        self._all: list[Process] = []
        self._running: dict[Callable[[Path], Process], Process] = {}
        for kind in (processes.dev_server, processes.langserve):  # side by side
            self._start(kind)

    def _start(self, kind: Callable[[Path], Process]) -> Process:
        process = self._running[kind] = kind(self._new_folder(kind.__name__))
        self._all.append(process)
        return process

    def get(self, kind: Callable[[Path], Process]) -> Process:
        """A server of this kind that answers."""
        process = self._running[kind]
        return (process if process.runs else self._start(kind)).until_it_answers()

    def end(self) -> None:
        """End all that were started."""
        for process in self._all:
            process.end()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The servers of this session; they start when the first test needs one."""
    started = Servers(tmp_path_factory.mktemp)
    yield started
    started.end()


@pytest.fixture(scope="session")
def by_agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ByAgent]:
    """The agent in this process."""
    database = tmp_path_factory.mktemp("agent") / "threads.db"
    with scripted.agent(database) as agent:
        yield ByAgent(agent, database)


@pytest.fixture
def by_langserve(servers: Servers) -> ByLangServe:
    """The agent behind LangServe, in a process of its own."""
    return ByLangServe(servers.get(processes.langserve))


@pytest.fixture
def by_dev_server(servers: Servers) -> ByDevServer:
    """The agent's graph behind `langgraph dev`."""
    return ByDevServer(servers.get(processes.dev_server))


@pytest.fixture(params=["by_agent", "by_langserve", "by_dev_server"])
def way(request: pytest.FixtureRequest) -> Way:
    """Each entrance in turn."""
    found: Way = request.getfixturevalue(request.param)
    return found
