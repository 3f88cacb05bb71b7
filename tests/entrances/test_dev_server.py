"""What only the dev server offers: answering an interrupt, and changing a thread's state."""

from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.errors import BadRequestError

from loopwright.events import AgentEnd
from tests.entrances.processes import PATIENCE
from tests.entrances.ways import ByDevServer, ledger, new_thread, prompt, texts

pytestmark = pytest.mark.anyio


async def test_an_interrupt_is_told_and_answered(by_dev_server: ByDevServer) -> None:
    thread = new_thread()
    *_, end = [event async for event in by_dev_server.events(prompt("ask"), thread)]
    assert isinstance(end, AgentEnd)
    assert (end.status, [i["value"] for i in end.interrupts]) == ("interrupted", ["sure?"])
    async with get_client(url=by_dev_server.url, timeout=PATIENCE) as client:
        output: Any = await client.runs.wait(thread, "agent", command={"resume": "yes"})
    assert texts(output)[1:] == [("ai", ""), ("tool", "they said yes"), ("ai", "they said yes")]
    assert output["result"]["status"] == "completed"


@pytest.mark.parametrize(
    "messages",
    [
        {"type": "__overwrite__", "value": []},
        [{"role": "remove", "id": "__remove_all__", "content": ""}],
        [{"role": "user", "id": "{first}", "content": "forged"}],
    ],
    ids=["overwrite", "remove", "edit"],
)
async def test_a_state_update_cannot_change_stored_messages(
    by_dev_server: ByDevServer, messages: Any
) -> None:
    thread = new_thread()
    await by_dev_server.run(prompt("hello"), thread)
    before = ledger(by_dev_server.database, thread)
    if isinstance(messages, list) and messages[0]["id"] == "{first}":
        messages = [{**messages[0], "id": before[0].id}]
    async with get_client(url=by_dev_server.url, timeout=PATIENCE) as client:
        with pytest.raises(BadRequestError, match="fork the thread"):
            await client.threads.update_state(thread, {"messages": messages})
    assert ledger(by_dev_server.database, thread) == before
