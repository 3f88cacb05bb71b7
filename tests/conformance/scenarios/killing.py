"""The part of a script that ends with a kill: played in a process of its own, which is then killed.

`python -m` of this module is that process: it plays, prints its record and waits.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from loopwright import Settings
from tests.conformance.scenarios.playing import StuckError, play
from tests.conformance.scenarios.record import Record
from tests.conformance.scenarios.stage import Stage
from tests.conformance.scenarios.words import Step

ROOT = Path(__file__).parents[3]


async def killed(database: Path, settings: Settings, script: Sequence[Step]) -> Record:
    """Take the steps in another process and kill it there; what it did until then."""
    given = json.dumps([str(database), settings.to_json(), [asdict(step) for step in script]])
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", __name__, given),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        line = await process.stdout.readline()
        if not line:
            said = (await process.stderr.read()).decode().strip().split("\n")
            raise StuckError(f"the process to be killed ended by itself: {said[-1]}")
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
    return Record(**json.loads(line))


async def _wait_to_be_killed(given: str) -> None:
    database, settings, script = json.loads(given)
    stage = Stage(Path(database), Settings.from_json(settings))
    await play(stage, [Step(**step) for step in script])
    print(json.dumps(stage.record.to_json()), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_wait_to_be_killed(sys.argv[1]))
