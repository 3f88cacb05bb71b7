"""What the benchmark measures of each contender, what it says of the figures, and its plot."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import claims, growth, loop, measuring, page, peers, plot
from benchmarks.claims import Claim
from benchmarks.contenders import CONTENDERS
from benchmarks.measuring import Figures
from benchmarks.work import payload

FIGURES = Figures(
    mean=2.0, first=1.0, last=1.5, cpu=1.0, bytes=1e6, memory=90.0, load=5.0, curve=[1.0, 2.0, 3.0]
)


@pytest.mark.anyio
@pytest.mark.parametrize("name", CONTENDERS)
async def test_every_contender_does_the_work_and_keeps_it(name: str) -> None:
    found = await measuring.measure(name, 12)
    assert len(found.curve) == 12
    assert min(found.mean, found.first, found.last, found.cpu, found.memory) > 0
    kept = name != "floor"
    assert (found.bytes > 12 * 500, found.load > 0) == (kept, kept)


def test_the_median_is_taken_of_each_figure() -> None:
    runs = [replace(FIGURES, mean=mean, curve=[mean, 1.0]) for mean in (3.0, 1.0, 2.0)]
    assert Figures.median(runs) == replace(FIGURES, mean=2.0, curve=[2.0, 1.0])


def test_texts_are_seeded_and_not_alike() -> None:
    assert payload(1) == payload(1) != payload(2)
    assert 450 < len(payload(1)) < 550


def test_a_claim_says_whether_it_is_reached() -> None:
    assert str(Claim("speed", 0.2, 0.28)) == "reached            0.2 <= 0.28     speed"
    assert str(Claim("speed", 0.3, 0.28)).startswith("NOT REACHED")
    assert Claim("speed", 1.5, 1.3, at_least=True).reached
    assert not Claim("speed", 1.2, 1.3, at_least=True).reached


def test_claims_are_made_of_what_was_measured_only() -> None:
    ours, agent = FIGURES, replace(FIGURES, mean=10.0, bytes=2e8)
    medians = {1000: {"ours": ours, "create_agent": agent, "floor_sqlite": replace(ours, mean=0.4)}}
    found = [*claims.of_time(medians), *claims.of_storage(medians)]
    values = [(round(claim.value, 4), claim.reached) for claim in found]
    assert values == [(0.2, True), (5.0, False), (1.5, True), (0.005, True)]
    assert list(claims.of_time({200: {"ours": ours}})) == []


def test_the_plot_has_a_line_and_a_name_for_each_contender() -> None:
    drawn = ElementTree.fromstring(plot.svg({"ours": [1, 2, 1], "floor": [0.5, 0.4, 0.6]}, 100))
    namespace = "{http://www.w3.org/2000/svg}"
    colours = {line.get("stroke") for line in drawn.iter(f"{namespace}polyline")}
    assert set(plot.COLOURS[:2]) <= colours
    texts = [text.text for text in drawn.iter(f"{namespace}text")]
    assert {"ours", "floor", "100"} <= set(texts)


def test_a_table_has_a_row_for_each_contender_with_its_ratios() -> None:
    rows = {"ours": FIGURES, "floor_sqlite": replace(FIGURES, mean=0.5, bytes=0.0, load=0.0)}
    lines = loop.table(rows, 1000, 3).splitlines()
    assert lines[0].startswith("1,000 tool turns, median of 3")
    assert lines[-2].split() == "ours 2.00 1.00 1.50 1.00 - 4.00 977 90 5.0".split()
    assert lines[-1].split() == "floor_sqlite 0.50 1.00 1.50 1.00 - 1.00 - 90 -".split()


def test_results_are_put_between_the_marks_of_a_page(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("before\n<!-- table -->\nold\n<!-- /table -->\nafter\n")
    for text in ("first", "second\n"):
        page.put(text, file, "table")
    block = "<!-- table -->\n```\nsecond\n```\n<!-- /table -->"
    assert file.read_text() == f"before\n{block}\nafter\n"
    with pytest.raises(ValueError, match="'loads'"):
        page.put("x", file, "loads")


def test_an_absent_peer_is_told_with_the_way_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(peers._PACKAGES, "deepagents", "package_that_is_not_there")
    assert peers.missing(["ours", "create_agent"]) is None
    with pytest.raises(SystemExit):
        loop.parsed(["--only", "ours", "deepagents"])
    assert "loopwright[bench]" in capsys.readouterr().err


@pytest.mark.anyio
async def test_storage_grows_with_the_turns_and_with_runs_that_rewrite_the_tail() -> None:
    short, long = await growth.long_thread(20), await growth.long_thread(100)
    assert (long.messages, long.load > 0, long.bare > 0) == (202, True, True)
    assert long.bytes < 5.5 * short.bytes
    few, many = await growth.rewritten_tails(10), await growth.rewritten_tails(50)
    assert many < 5.5 * few
