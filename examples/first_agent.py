"""A first agent: it reads files through tools, tells what it does, and goes on where it was.

Run it with `python examples/first_agent.py [FOLDER]`. Its model is `offline`: rules, no language
model, no key, no network. `Agent("provider/model", ...)` takes a real one.
"""

import asyncio
import sys
from pathlib import Path

import loopwright
from loopwright import Agent
from loopwright.tools.files import FILE_TOOLS

SAMPLE = Path(loopwright.__file__).parent / "sample"


async def main(folder: Path) -> None:
    async with Agent("offline", FILE_TOOLS, workspace=folder) as agent:
        async for event in agent.stream("What is in this folder and what is left to do in it?"):
            if event.type == "tool_execution_start":
                print(f"-> {event.tool_name} {str(event.arguments)[:70]}")
        print(agent.messages()[-1].text)

        result = await agent.prompt("How many files are there?")
        print(f"\n{result.final_text}")
        print(f"\n{result.status}; the thread has {len(agent.messages())} messages")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE))
