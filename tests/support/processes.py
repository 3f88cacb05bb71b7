"""Scripts run in an interpreter of their own, with every warning an error.

PYTHONDEVMODE=1 as an argument makes it look harder, and slower.
"""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parent.parent.parent

# Development mode reports slow callbacks, which a busy machine has; errors are still shown.
_QUIET = "import logging; logging.getLogger('asyncio').setLevel('ERROR')\n"


def start(script: str, *arguments: object, **environment: str) -> "subprocess.Popen[str]":
    """Start a script; it finds the package and the tests of this checkout."""
    command = [sys.executable, "-W", "error", "-c", _QUIET + dedent(script)]
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **environment},
    )


def output(script: str, *arguments: object, **environment: str) -> str:
    """What a script prints; it must end well and say nothing on stderr."""
    with start(script, *arguments, **environment) as process:
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, err) == (0, ""), out + err
    return out.strip()
