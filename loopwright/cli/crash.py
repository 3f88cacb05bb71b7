"""`loopwright demo --crash`: one process dies between an effect and its record, another goes on.

What may be relied on after which kind of failure is said in docs/durability.md.
"""

import asyncio
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from langchain_core.messages import BaseMessage, ToolMessage

from loopwright import failpoints
from loopwright.agent import Agent
from loopwright.cli.screen import RunView, Screen
from loopwright.ongoing import Ongoing
from loopwright.state.messages import new_id
from loopwright.testing import Response, ScriptedModel
from loopwright.tools.functions import tool

TASK = "Send an invoice to Ada and one to Bo."
EXPLANATION = """\
The result of call 1 was in the journal and was used again. Call 2 had begun, so it was not run
again: nobody can know whether it took effect. The model was told so, and looked.\
"""


@dataclass(frozen=True)
class Office:
    """An outbox that the agent may write to: a file of its own, one line per invoice."""

    database: Path
    thread: str

    @property
    def outbox(self) -> Path:
        """The file, beside the database."""
        return self.database.with_name(f"outbox-{self.thread}.txt")

    def sent(self) -> list[str]:
        """Who has got an invoice, as often as they got one."""
        return self.outbox.read_text(encoding="utf-8").split() if self.outbox.exists() else []

    def agent(self) -> Agent:
        """The agent that both processes run, with a model that plays a script."""
        tools = [self.send_invoice, self.list_invoices]
        model = ScriptedModel(repeat(_answer))
        return Agent(model, tools, database=self.database, thread=self.thread)

    @tool(execution_mode="sequential")
    def send_invoice(self, to: str) -> str:
        """Send an invoice; sending it twice would charge twice."""
        with self.outbox.open("a", encoding="utf-8") as file:
            file.write(f"{to}\n")
            file.flush()
            os.fsync(file.fileno())
        return f"The invoice to {to} is sent."

    @tool(effects="none")
    def list_invoices(self) -> str:
        """List the invoices that were sent."""
        return _counted(self.sent())


def demonstrate(database: Path) -> int:
    """Play it all and say what happened, in order; 0 if every invoice was sent once."""
    screen, office = Screen(), Office(database, f"crash-{new_id()[:8]}")
    screen.line("model     a script, not a language model", "bold")
    screen.line(f"task      {TASK}")
    screen.line(f"outbox    {office.outbox}")
    screen.line()
    screen.line("A first process begins.", "bold")
    died = _process(_first, office)
    screen.line()
    screen.line(f"It was killed by signal {-died}; the outbox: {_counted(office.sent())}.")
    screen.line("A second process carries the run on.", "bold")
    failed = _process(_second, office)
    sent = office.sent()
    shown = (died, failed, sorted(sent)) == (-signal.SIGKILL, 0, ["Ada", "Bo"])
    screen.line()
    screen.line(EXPLANATION if shown else "This is not what it was to show.")
    screen.line()
    screen.line(f"sent      {_counted(sent)}", "bold")
    screen.line(f"thread    {office.thread}")
    screen.line(f"database  {database}")
    return int(not shown)


def _counted(sent: list[str]) -> str:
    times = (f"{count} to {name}" for name, count in sorted(Counter(sent).items()))
    return ", ".join(times) or "no invoice"


def _answer(messages: list[BaseMessage]) -> Response:
    """The script, by how many results it is shown."""
    results = [message for message in messages if isinstance(message, ToolMessage)]
    if not results:
        calls = [(f"call_{name}", "send_invoice", {"to": name}) for name in ("Ada", "Bo")]
        return Response(text="I send both, one after the other.", calls=calls)
    if len(results) == 2:
        return Response(text="I look what was sent.", calls=[("call_list", "list_invoices", {})])
    return Response(text=f"In the outbox there is {results[-1].text}.")


def _process(work: Callable[[Office], None], office: Office) -> int:
    """Run it in a process of its own; its exit code, negative for a signal."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=(office,))
    process.start()
    process.join()
    return process.exitcode or 0


def _first(office: Office) -> None:
    """Work until the second invoice is in the outbox and nothing is known of it but that."""
    passed: list[str] = []

    def die() -> None:
        passed.append("an effect")
        if len(passed) == 2:
            Screen().line(
                "!! SIGKILL: the invoice is in the outbox, its result is not stored", "red"
            )
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.arm("after_effect", die)
    asyncio.run(_shown(office, lambda agent: agent.prompt(TASK)))


def _second(office: Office) -> None:
    """Carry the run on to its end."""
    asyncio.run(_shown(office, lambda agent: agent.resume()))


async def _shown(office: Office, begin: Callable[[Agent], Ongoing]) -> None:
    """A run whose events are shown before it goes on, and not when there is time."""
    screen = Screen()
    async with office.agent() as agent:
        agent.subscribe(RunView(screen, screen).show)
        result = await begin(agent)
    screen.line(f"status    {result.status} ({result.reason}), {result.turns} turns")
