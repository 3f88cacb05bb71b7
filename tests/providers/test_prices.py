"""The table of prices: how a model's row is found, and what its tokens cost."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from loopwright.errors import ConfigurationError
from loopwright.providers.prices import (
    LongPrice,
    Price,
    PriceTable,
    list_prices,
    price_table,
    priced,
)
from loopwright.providers.servers import SERVERS


def usage(given: int, made: int, total: int | None = None, **read: Any) -> Any:
    return {
        "input_tokens": given,
        "output_tokens": made,
        "total_tokens": given + made if total is None else total,
        "input_token_details": read,
    }


DEAR = Price(input=10, cached=1, cache_write=12, cache_write_hour=20, output=100)
M = 1_000_000


@pytest.mark.parametrize(
    ("counts", "cost"),
    [
        (usage(M, 0), 10),
        (usage(0, M), 100),
        (usage(M, M, cache_read=M), 101),
        (usage(M, 0, cache_read=M // 2), 5.5),
        (usage(M, 0, cache_creation=M), 12),
        (usage(2 * M, 0, ephemeral_5m_input_tokens=M, ephemeral_1h_input_tokens=M), 32),
        # Reasoning that is counted beside the output is in the total only; inside it, in both.
        (usage(M, M, 3 * M), 210),
        (usage(M, M, 2 * M, cache_read=None, audio=3), 110),
        # Counts that cannot be: more was read from a cache than was sent, less than nothing.
        (usage(0, 0, cache_read=M), 1),
        (usage(-M, -M), 0),
    ],
)
def test_each_kind_of_token_has_its_price(counts: Any, cost: float) -> None:
    assert DEAR.cost(counts) == pytest.approx(cost)


def test_a_kind_without_a_price_of_its_own_costs_what_input_costs() -> None:
    plain = Price(input=10, output=100)
    counts = usage(3 * M, 0, cache_read=M, cache_creation=M, ephemeral_1h_input_tokens=M)
    assert plain.cost(counts) == pytest.approx(30)
    written = Price(input=10, cache_write=12, output=100)
    assert written.cost(usage(M, 0, ephemeral_1h_input_tokens=M)) == pytest.approx(12)


def test_a_long_request_costs_more_for_all_of_its_tokens() -> None:
    price = Price(input=1, output=2, long=LongPrice(above=1000, input=10, output=20))
    assert price.cost(usage(1000, 0)) == pytest.approx(0.001)
    assert price.cost(usage(1001, 1000)) == pytest.approx((1001 * 10 + 1000 * 20) / M)


@pytest.mark.parametrize("tier", ["flex", "priority"])
def test_a_request_at_another_tier_has_no_known_cost(tier: str) -> None:
    assert DEAR.cost(usage(10, 10, **{tier: 10})) is None


TABLE = PriceTable.parsed(
    """
    [acme]
    source = "https://acme.test/prices"
    date = 2026-11-30
    rows = [
        { model = "big", also = ["Large", "big:paid"], input = 1, output = 1 },
        { model = "big-2024-05-13", input = 2, output = 1, source = "a letter", date = 2025-01-01 },
        { model = "big-pro", input = 3, output = 1 },
        { model = "new", input = 9, output = 1, since = 2027-01-01 },
        { model = "new", input = 4, output = 1 },
        { model = "soon", input = 5, output = 1, since = 2027-01-01 },
    ]
    [home]
    source = "mine"
    date = 2026-11-30
    rows = [{ model = "*", input = 0, output = 0 }]
    """
)


@pytest.mark.parametrize(
    ("provider", "model", "cost"),
    [
        ("acme", "big", 1),
        ("ACME", "Big", 1),
        ("acme", "large", 1),
        ("acme", "big:paid", 1),
        *[("acme", f"big{version}", 1) for version in ("-latest", "-2026-11-30", "-20261130")],
        *[("acme", f"big{version}", 1) for version in ("@20261130", "-0709", "-001", "-11-2026")],
        ("acme", "big-2024-05-13", 2),
        ("acme", "big-pro-latest", 3),
        ("acme", "new", 4),
        ("home", "whatever/it:is", 0),
        *[("acme", name, None) for name in ("bigger", "big-mini", "big-preview", "bi", "soon", "")],
        *[("acme", name, None) for name in ("big-1", "big-2024-05-13-x", "*", "small")],
        ("other", "big", None),
    ],
)
def test_a_model_has_the_row_of_its_name_or_of_its_name_without_a_version(
    provider: str, model: str, cost: float | None
) -> None:
    assert TABLE.cost(provider, model, usage(M, 0), date(2026, 11, 30)) == cost


def test_a_row_holds_from_its_day_on() -> None:
    assert TABLE.cost("acme", "new", usage(M, 0), date(2026, 12, 31)) == 4
    assert TABLE.cost("acme", "new", usage(M, 0), date(2027, 1, 1)) == 9


def test_a_row_says_where_it_was_read_and_when() -> None:
    rows = [TABLE.listed("acme", model) for model in ("big", "big-2024-05-13")]
    told = [(row.source, row.read) for row in rows if row is not None]
    assert told == [
        ("https://acme.test/prices", date(2026, 11, 30)),
        ("a letter", date(2025, 1, 1)),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[", "not right"),
        ("[a]\nsource = 'x'\ndate = 2026-01-01\nrows = [{ model = 'm', input = 1 }]", "output"),
        ("[a]\nsource = 'x'\ndate = 2026-01-01\nrows = [{ model = 'm', inptu = 1 }]", "inptu"),
        ("[a]\nrows = []", "source"),
    ],
)
def test_a_table_that_is_wrong_says_what_is(text: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=f"(?s)own.toml.*{complaint}"):
        price_table(file)


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf")])
def test_a_price_is_an_amount(amount: float) -> None:
    with pytest.raises(ValueError):
        Price(input=amount, output=1)


def test_a_table_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml"):
        price_table(tmp_path / "nowhere.toml")


def test_own_prices_come_before_the_listed_ones(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    head = "[openai]\nsource = 'contract'\ndate = 2026-01-01\n"
    file.write_text(head + "rows = [{ model = 'gpt-5', input = 7, output = 7 }]\n")
    prices = {"custom/*": Price(input=0, output=0), "OpenAI/gpt-5": Price(input=8, output=8)}
    assert price_table(file).cost("openai", "gpt-5", usage(M, 0)) == 7
    both = price_table(file, prices)
    assert both.cost("openai", "gpt-5", usage(M, 0)) == 8
    assert both.cost("custom", "anything", usage(M, 0)) == 0
    assert both.cost("openai", "gpt-5-mini", usage(M, 0)) == 0.25
    assert price_table(None, None) is list_prices()


@pytest.mark.parametrize("name", ["gpt-5", "/gpt-5", "openai/"])
def test_a_price_for_no_provider_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="provider/model"):
        price_table({name: DEAR})


def test_the_listed_prices_are_of_providers_that_can_be_named() -> None:
    providers = {name.split("/")[0] for name in list_prices()}
    assert providers <= {*SERVERS, "offline"}
    assert providers >= {"openai", "anthropic", "google", "deepseek", "mistral", "xai"}


@pytest.mark.parametrize("name", sorted(list_prices()))
def test_each_listed_row_is_whole_and_plausible(name: str) -> None:
    provider, _, model = name.partition("/")
    row = list_prices().listed(provider, model, date(2030, 1, 1))
    assert row is not None and row.source and row.read is not None
    prices = [row.price, *([row.price.long] if row.price.long else [])]
    for price in prices:
        cached = price.input if price.cached is None else price.cached
        assert 0 <= cached <= price.input <= price.output <= 1000
        assert price.cache_write is None or price.input <= price.cache_write <= 2 * price.input
    if row.price.long:
        assert row.price.input < row.price.long.input


@pytest.mark.parametrize("server", ["ollama", "lmstudio", "llamacpp", "vllm", "offline"])
def test_a_local_model_costs_nothing(server: str) -> None:
    assert list_prices().cost(server, "any", usage(M, M)) == 0


def test_a_model_that_was_given_as_an_object_is_found_by_its_class() -> None:
    prices = list_prices()
    by_class = prices.cost("ChatAnthropic", "claude-sonnet-4-5-20250929", usage(1000, 1000))
    assert by_class == prices.cost("anthropic", "claude-sonnet-4-5", usage(1000, 1000)) == 0.018
    assert prices.cost("ScriptedModel", "m", usage(1, 1)) is None


def test_a_reported_cost_is_kept_and_an_unknown_price_adds_nothing() -> None:
    about = {"provider": "openai", "model": "gpt-5"}
    message = AIMessage("", usage_metadata=usage(M, 0), response_metadata=about)
    assert priced(message, list_prices()).response_metadata["cost"] == 1.25
    reported = message.model_copy(update={"response_metadata": {**about, "usage": {"cost": 3}}})
    assert priced(reported, list_prices()) is reported
    assert priced(message, PriceTable()) is message
    assert priced(AIMessage("", response_metadata=about), list_prices()).usage_metadata is None
