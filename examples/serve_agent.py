"""An agent of your own behind LangServe: `python examples/serve_agent.py`, then

    curl -s localhost:8000/invoke -H 'Content-Type: application/json' -H 'X-Thread-Id: demo' \
        -d '{"input": "What is left to do in this folder?"}'

docs/serving.md says what goes in and out. For the file tools alone `loopwright serve` is enough.
"""

from datetime import date
from pathlib import Path

from loopwright import Agent, tool
from loopwright.serve import create_app, run
from loopwright.tools.files import FILE_TOOLS


@tool(effects="none")
def days_until(year: int, month: int, day: int) -> int:
    """How many days there are until a date."""
    return (date(year, month, day) - date.today()).days


agent = Agent("offline", [*FILE_TOOLS, days_until], workspace=Path.cwd())

app = create_app(agent)
"""For `uvicorn`, or to be mounted in an application of your own."""

if __name__ == "__main__":
    run(agent)
