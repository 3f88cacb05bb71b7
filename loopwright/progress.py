"""What a running tool call reports before it has its result: told in order, from any thread.

When a call runs is decided elsewhere; its end is told in `calls`.
"""

import asyncio
from contextvars import copy_context
from dataclasses import dataclass, field

from loopwright.events import ToolExecutionUpdate
from loopwright.runs import Run
from loopwright.state.messages import Call
from loopwright.tools.contract import ToolResult


@dataclass
class Progress:
    """The progress reports of one running call: told in order, ignored once it has its result.

    The body does not wait for listeners, but its result does (BEHAVIOUR 5). A report from a thread
    hops to the loop first.
    """

    run: Run
    call: Call
    closed: bool = False
    tasks: list["asyncio.Task[None]"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.context = copy_context()

    def report(self, partial: ToolResult | str) -> None:
        """Callable from any thread; never raises."""
        if self.closed or self.loop.is_closed():
            return
        result = partial if isinstance(partial, ToolResult) else ToolResult(content=str(partial))
        try:
            here = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            here = False
        if here:
            self._tell(result)
        else:
            self.loop.call_soon_threadsafe(self._tell, result)

    def _tell(self, partial: ToolResult) -> None:
        if self.closed:
            return
        event = ToolExecutionUpdate(
            tool_call_id=self.call.id,
            tool_name=self.call.name,
            arguments=self.call.arguments,
            partial={"content": partial.content, "details": partial.details},
        )
        self.tasks.append(self.loop.create_task(self.run.emit(event), context=self.context.copy()))

    async def close(self) -> None:
        """Wait until all reports were heard; raises what a listener raised."""
        await asyncio.sleep(0)
        self.closed = True
        if self.tasks:
            await asyncio.wait(self.tasks)
        for error in [task.exception() for task in self.tasks]:
            if error is not None:
                raise error
