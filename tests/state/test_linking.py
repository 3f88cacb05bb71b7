"""Whether calls and results belong together, wherever they stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from loopwright.errors import TranscriptError
from loopwright.settings import Settings
from loopwright.state.linking import link_faults, require_linked
from loopwright.state.transcript import faults
from tests.ledgers import answer, unhurried, user
from tests.ledgers import result as stored_result
from tests.support.graphs import rig


def result(call_id: str, name: str = "t") -> ToolMessage:
    return stored_result(f"r-{call_id}", call_id, name=name)


def kinds(*messages: AnyMessage) -> list[str]:
    return [fault.kind for fault in link_faults(messages)]


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([], []),
        ([user("u"), answer("a")], []),
        ([answer("a", "c1"), HumanMessage("?", id="u"), result("c1")], []),
        ([answer("a", "c1", "c2"), result("c2"), result("c1")], []),
        ([answer("a", "c1")], ["unanswered_call"]),
        ([result("c1")], ["orphan_result"]),
        ([result("c1"), answer("a", "c1")], ["result_before_call", "unanswered_call"]),
        (
            [result("c1"), answer("a", "c1"), result("c1")],
            ["result_before_call", "duplicate_result"],
        ),
        ([answer("a", "c1"), result("c1"), result("c1")], ["duplicate_result"]),
        ([answer("a", "c1"), answer("b", "c1"), result("c1")], ["duplicate_call_id"]),
        ([answer("a", "c1"), result("c1", name="other")], ["wrong_result_name"]),
    ],
)
def test_each_fault_has_its_name(messages: list[AnyMessage], found: list[str]) -> None:
    assert kinds(*messages) == found


def test_nothing_is_missing_because_of_what_could_not_be_read() -> None:
    assert not link_faults([result("c1")], broken_calls={"c1"})
    assert not link_faults([answer("a", "c1")], broken_results={"c1"})


events = st.lists(
    st.tuples(st.sampled_from("car"), st.sampled_from(["c1", "c2", "c3"])), max_size=8
)


@unhurried
@given(events)
def test_what_the_ledger_takes_is_always_linked(given: list[tuple[str, str]]) -> None:
    messages = [
        answer(f"a{n}", id) if kind == "c" else result(id) if kind == "r" else user(f"u{n}")
        for n, (kind, id) in enumerate(given)
    ]
    named = [m.model_copy(update={"id": f"m{n}"}) for n, m in enumerate(messages)]
    if not faults(named):
        assert not link_faults(named)


def test_the_error_names_the_faults_and_where_they_are() -> None:
    with pytest.raises(TranscriptError, match=r"unanswered call 'c1' \(message 0\)"):
        require_linked([answer("a", "c1")])


@pytest.mark.anyio
async def test_a_run_that_refuses_begins_on_no_such_transcript() -> None:
    made = rig("one", settings=Settings(repair_policy="refuse"))
    with pytest.raises(TranscriptError, match="do not belong together") as refused:
        await made.run({"messages": [result("c1")]})
    assert refused.value.kinds == ("orphan_result",)
    assert not made.provider.requests
    assert (await made.run({"messages": "hi"})).final_text == "one"
