"""What repair makes of a broken ledger, and that it keeps everything a model or a tool did."""

from collections import Counter
from copy import deepcopy
from typing import Any

from hypothesis import given
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from loopwright.state.messages import Call, calls
from loopwright.state.repair import INTERRUPTED, RepairReport, interrupted, is_interrupted, repair
from loopwright.state.transcript import faults
from tests.ledgers import answer, ledgers, result, shape, unhurried, user


def repaired(*messages: AnyMessage) -> list[AnyMessage]:
    return repair(messages)[0]


def counts(*messages: AnyMessage) -> dict[str, int]:
    """What was done, without the zeros."""
    return {name: count for name, count in repair(messages)[1].counts().items() if count}


def test_a_valid_ledger_comes_back_as_the_same_objects() -> None:
    ledger: list[AnyMessage] = [user("u"), answer("a", "c"), result("r", "c"), answer("b")]
    mended, report = repair(ledger)
    assert all(a is b for a, b in zip(mended, ledger, strict=True))
    assert report == RepairReport()
    assert not report.changed


def test_an_open_call_is_answered_with_a_marked_error_behind_it() -> None:
    open_call = answer("a", "c", name="read")
    mended = repaired(user("u"), open_call, user("v"))
    assert shape(mended) == ["u", "a", "tool-result-c:c", "v"]
    assert mended[1] is open_call
    marker = mended[2]
    assert isinstance(marker, ToolMessage)
    assert (marker.content, marker.status, marker.name) == (INTERRUPTED, "error", "read")
    assert counts(open_call) == {"synthesized": 1}


def test_a_marker_is_known_by_its_mark_or_by_its_text() -> None:
    marker = interrupted(Call("c", "t", {}))
    assert is_interrupted(marker.model_copy(update={"content": "in other words"}))
    assert is_interrupted(result("r", "c", INTERRUPTED))
    assert not is_interrupted(result("r", "c", "interrupted by the user"))


def test_the_marker_says_that_the_call_may_have_taken_effect() -> None:
    assert INTERRUPTED.startswith("interrupted")
    assert "may have taken effect" in INTERRUPTED


def test_results_come_to_stand_behind_their_call_in_order_of_declaration() -> None:
    late: list[AnyMessage] = [answer("a", "c", "d"), result("s", "d"), user("u"), result("r", "c")]
    assert shape(repaired(*late)) == ["a", "r:c", "s:d", "u"]
    assert counts(*late) == {"moved": 2}


def test_results_before_their_call_or_without_one_are_dropped() -> None:
    ledger: list[AnyMessage] = [result("r", "c"), answer("a", "c"), result("s", "zz")]
    assert shape(repaired(*ledger)) == ["a", "tool-result-c:c"]
    assert counts(*ledger) == {"dropped_orphans": 2, "synthesized": 1}


def test_the_first_real_result_wins_over_later_ones_and_over_markers() -> None:
    marker = interrupted(Call("c", "t", {}))
    ledger: list[AnyMessage] = [
        answer("a", "c"),
        marker,
        result("r", "c", "first"),
        result("s", "c", "second"),
    ]
    assert shape(repaired(*ledger)) == ["a", "r:c"]
    assert counts(*ledger) == {"deduplicated": 2}


def test_a_marker_stays_if_there_is_nothing_better() -> None:
    marker = interrupted(Call("c", "t", {}))
    again = marker.model_copy(update={"id": "again"})
    assert repaired(answer("a", "c"), marker, again)[1] is marker


def test_a_message_stored_twice_is_stored_once_whatever_its_metadata_say() -> None:
    copy = answer("a", "c").model_copy(update={"response_metadata": {"latency": 3}})
    ledger: list[AnyMessage] = [answer("a", "c"), copy, result("r", "c"), result("r", "c")]
    assert shape(repaired(*ledger)) == ["a", "r:c"]
    assert counts(*ledger) == {"deduplicated": 2}


def test_different_messages_under_one_id_are_all_kept() -> None:
    first, second, third = repaired(user("u", "one"), user("u", "two"), user("u", "three"))
    assert [first.content, second.content, third.content] == ["one", "two", "three"]
    assert first.id == "u"
    assert len({first.id, second.id, third.id}) == 3
    assert counts(user("u", "one"), user("u", "two")) == {"identified": 1}


def test_messages_without_an_id_get_one() -> None:
    mended = repaired(AIMessage("a"), AIMessage("a"))
    assert [message.content for message in mended] == ["a", "a"]
    assert all(message.id for message in mended)


def test_a_used_call_id_is_replaced_and_each_result_stays_with_its_round() -> None:
    ledger: list[AnyMessage] = [
        answer("a", "k"),
        result("r", "k", "one"),
        answer("b", "k"),
        result("s", "k", "two"),
        answer("c", "k"),
    ]
    mended = repaired(*ledger)
    ids = [call.id for message in mended for call in calls(message)]
    assert ids[0] == "k"
    assert len(set(ids)) == 3
    assert [m.content for m in mended if isinstance(m, ToolMessage)] == ["one", "two", INTERRUPTED]
    assert faults(mended) == []
    assert counts(*ledger) == {"fresh_ids": 2, "synthesized": 1}


def test_calls_of_one_id_in_one_message_take_the_results_in_order() -> None:
    mended = repaired(answer("a", "k", "k"), result("r", "k", "one"), result("s", "k", "two"))
    assert [message.id for message in mended] == ["a", "r", "s"]
    first, second = calls(mended[0])
    assert [getattr(m, "tool_call_id", None) for m in mended[1:]] == [first.id, second.id]


def test_blank_call_ids_get_fresh_ones_and_keep_their_results() -> None:
    mended = repaired(answer("a", " "), result("r", " "))
    (call,) = calls(mended[0])
    assert call.id.strip()
    assert shape(mended) == ["a", f"r:{call.id}"]


def test_a_fresh_id_is_not_one_that_a_later_call_has() -> None:
    (fresh,) = calls(repaired(answer("a", ""))[0])
    mended = repaired(answer("a", ""), answer("b", fresh.id))
    assert faults(mended) == []
    assert calls(mended[2])[0].id == fresh.id


def test_the_same_repair_of_the_same_ledger_gives_the_same_ids() -> None:
    ledger: list[AnyMessage] = [answer("a", "k", "k"), answer("b", "k")]
    assert repaired(*ledger) == repaired(*ledger)


def test_ids_in_content_blocks_are_renamed_along() -> None:
    content: list[Any] = [
        {"type": "text", "text": "look"},
        {"type": "tool_use", "id": "k", "name": "t", "input": {}},
        {"type": "tool_call", "id": "k", "name": "t", "args": {}},
        {"type": "function_call", "id": "fc_1", "call_id": "k", "name": "t", "arguments": "{"},
        {"type": "image", "id": "k"},
    ]
    whole = [{"name": "t", "args": {}, "id": "k"}] * 2
    broken = {"name": "t", "args": "{", "id": "k", "error": None, "type": "invalid_tool_call"}
    message = AIMessage(content, id="a", tool_calls=whole, invalid_tool_calls=[broken])
    mended = repaired(message)[0]
    first, second, third = (call.id for call in calls(mended))
    assert first == "k"
    assert len({first, second, third}) == 3
    assert isinstance(mended.content, list)
    blocks: list[Any] = mended.content
    assert [blocks[1]["id"], blocks[2]["id"], blocks[3]["call_id"]] == [first, second, third]
    assert (blocks[3]["id"], blocks[4]["id"], blocks[0]) == ("fc_1", "k", content[0])


def test_a_result_under_another_tools_name_gets_the_name_of_its_call() -> None:
    ledger: list[AnyMessage] = [answer("a", "c"), result("r", "c", name="write")]
    assert [m.name for m in repaired(*ledger)[1:]] == ["t"]
    assert counts(*ledger) == {"renamed": 1}


def test_a_known_result_answers_an_open_call_and_no_other() -> None:
    ledger: list[AnyMessage] = [answer("a", "c", "d", "e"), result("r", "d", "stored")]
    known = {"c": result("j", "c", "journal"), "d": result("k", "d", "journal")}
    mended, report = repair(ledger, known)
    assert [m.content for m in mended[1:]] == ["journal", "stored", INTERRUPTED]
    assert mended[1] is known["c"]
    assert (report.recovered, report.synthesized) == (1, 1)


def test_a_known_result_is_fitted_to_its_call() -> None:
    mended, _ = repair([answer("a", "c")], {"c": ToolMessage("ok", tool_call_id="?", name="?")})
    assert faults(mended) == []
    assert mended[1].content == "ok"


def test_a_marker_does_not_take_the_id_of_a_stored_message() -> None:
    stored = user("tool-result-c")
    mended = repaired(answer("a", "c"), stored)
    assert faults(mended) == []
    assert mended[2] is stored


def test_counts_are_plain_numbers_by_name() -> None:
    report = RepairReport(synthesized=2)
    assert report.changed
    assert report.counts()["synthesized"] == 2
    assert sum(report.counts().values()) == 2


# ---- random ledgers: an oracle of its own that looks at every pair of messages


def without_copies(ledger: list[AnyMessage]) -> list[AnyMessage]:
    kept: list[AnyMessage] = []
    for message in ledger:
        if not any(message.id and is_copy(message, other) for other in kept):
            kept.append(message)
    return kept


def is_copy(a: AnyMessage, b: AnyMessage) -> bool:
    answers = [getattr(message, "tool_call_id", None) for message in (a, b)]
    same = a.id == b.id and a.type == b.type and a.content == b.content and calls(a) == calls(b)
    return same and answers[0] == answers[1]


def real_results_of(ledger: list[AnyMessage], at: int, call_id: str) -> list[Any]:
    """The contents of the real results in the window of a call."""
    found: list[Any] = []
    for message in ledger[at + 1 :]:
        if call_id in [call.id for call in calls(message)]:
            break
        if isinstance(message, ToolMessage) and message.tool_call_id == call_id:
            found += [] if is_interrupted(message) else [message.content]
    return found


@unhurried
@given(ledgers())
def test_any_ledger_becomes_valid_and_stays_so(ledger: list[AnyMessage]) -> None:
    mended, report = repair(ledger)
    again, second = repair(mended)
    assert faults(mended) == []
    assert all(a is b for a, b in zip(again, mended, strict=True))
    assert not second.changed
    same = len(mended) == len(ledger) and all(a is b for a, b in zip(mended, ledger, strict=True))
    assert report.changed is not same


@unhurried
@given(ledgers())
def test_what_is_given_is_not_changed(ledger: list[AnyMessage]) -> None:
    before = deepcopy(ledger)
    repair(ledger)
    assert ledger == before


@unhurried
@given(ledgers())
def test_every_other_message_and_every_call_survives_in_order(ledger: list[AnyMessage]) -> None:
    mended, _ = repair(ledger)
    before = [m for m in without_copies(ledger) if not isinstance(m, ToolMessage)]
    after = [m for m in mended if not isinstance(m, ToolMessage)]
    assert [m.type for m in after] == [m.type for m in before]
    for old, new in zip(before, after, strict=True):
        assert [(c.name, c.arguments, c.error) for c in calls(new)] == [
            (c.name, c.arguments, c.error) for c in calls(old)
        ]
        if isinstance(old.content, str):
            assert new.content == old.content


@unhurried
@given(ledgers())
def test_every_real_result_in_the_window_of_a_call_survives_as_its_result(
    ledger: list[AnyMessage],
) -> None:
    mended, _ = repair(ledger)
    stored = without_copies(ledger)
    answered = {m.tool_call_id: m for m in mended if isinstance(m, ToolMessage)}
    after = iter([m for m in mended if not isinstance(m, ToolMessage)])
    for at, old in enumerate(stored):
        if isinstance(old, ToolMessage):
            continue
        new = next(after)
        for call_id, many in Counter(call.id for call in calls(old)).items():
            ids = [b.id for a, b in zip(calls(old), calls(new), strict=True) if a.id == call_id]
            got = [answered[id].content for id in ids if not is_interrupted(answered[id])]
            assert got == real_results_of(stored, at, call_id)[:many]


@unhurried
@given(ledgers())
def test_content_blocks_name_the_calls_that_the_message_has(ledger: list[AnyMessage]) -> None:
    for message in repair(ledger)[0]:
        if isinstance(message, AIMessage) and isinstance(message.content, list):
            blocks = [b for b in message.content if isinstance(b, dict) and b["type"] == "tool_use"]
            assert [b["id"] for b in blocks] == [call["id"] for call in message.tool_calls]
