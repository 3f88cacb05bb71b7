"""Many threads at once, in several processes on one file and in one: no error.

The full loads are `python -m benchmarks.loads`.
"""

from pathlib import Path

import pytest

from benchmarks import loads, measuring


def test_processes_share_a_file_without_an_error(tmp_path: Path) -> None:
    speed, errors = loads.shared_file(tmp_path / "threads.db", processes=3, threads=10, turns=2)
    assert (errors, speed > 0) == ([], True)


@pytest.mark.parametrize("name", loads.CONTENDERS)
def test_a_process_runs_many_threads_at_once_without_an_error(name: str) -> None:
    speed, errors = measuring.in_fresh_process("benchmarks.loads", name, 100, 2)
    assert (errors, speed > 0) == ([], True)


@pytest.mark.anyio
async def test_what_fails_under_load_is_counted() -> None:
    async def fails() -> None:
        raise ValueError("no")

    _, errors = await loads.together([fails(), fails()])
    assert errors == ["ValueError('no')", "ValueError('no')"]
    assert loads.told(errors) == "2 errors, such as ValueError('no')"
