"""The command line: its outermost layer, which turns every failure into one line and an exit code.

The commands live in the modules beside this one. Exit codes: 0 done, 1 failed, 2 wrong use or
configuration, 130 interrupted.
"""

import sys
import traceback

from loopwright.cli.app import Invocation, app
from loopwright.cli.screen import tolerate_any_encoding
from loopwright.cli.text import one_line
from loopwright.errors import LoopwrightError


def main() -> None:
    """Run the command that the process was started with, and exit."""
    tolerate_any_encoding()
    invocation = Invocation()
    try:
        app(obj=invocation, prog_name="loopwright")
    except LoopwrightError as error:
        status = _fail(str(error), 2, invocation)
    except Exception as error:
        hint = "this is a bug; loopwright --debug ... shows where"
        status = _fail(f"unexpected {type(error).__name__}: {error}; {hint}", 1, invocation)
    sys.exit(status)


def _fail(message: str, status: int, invocation: Invocation) -> int:
    if invocation.debug:
        traceback.print_exc()
    print(f"loopwright: {one_line(message, 1000)}", file=sys.stderr)
    return status
