"""What tokens cost: a table of dated list prices, found by provider and model.

The numbers are in `prices.toml`. What a run adds up is in `spending`; nothing is fetched.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from datetime import date as Day
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from loopwright.errors import ConfigurationError
from loopwright.spending import COST, cost_of

EVERY_MODEL = "*"
"""Instead of a model's name: all models of the provider that have no row of their own."""

_VERSION = re.compile(r"(-latest|[-@]\d{4}-\d{2}-\d{2}|[-@]\d{8}|-\d{3,4}|-\d{2}-\d{4})$")
_OTHER_TIERS = ("flex", "priority")
"""Keys of langchain-openai among the details of a request that was served at another price."""

_CLIENTS = {
    "ChatOpenAI": "openai",
    "ChatAnthropic": "anthropic",
    "ChatGoogleGenerativeAI": "google",
    "ChatMistralAI": "mistral",
    "ChatDeepSeek": "deepseek",
    "ChatXAI": "xai",
    "ChatOllama": "ollama",
}
"""Models that were given as langchain's objects are stored with the class as their provider."""


class Price(BaseModel):
    """US dollars for a million tokens. `input` is what a cached or written token costs too where
    no price of its own is given; `long` replaces all of them for requests above its input tokens.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cache_write_hour: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    long: "LongPrice | None" = None

    def cost(self, usage: UsageMetadata) -> float | None:
        """What a request with these counts costs in US dollars; None if it was served at another
        tier than the price is for.

        `input_tokens` includes cached and written ones. Reasoning is output: where a provider
        counts it beside `output_tokens`, it is in the total only.
        """
        details: dict[str, Any] = dict(usage.get("input_token_details") or {})
        if any(details.get(tier) for tier in _OTHER_TIERS):
            return None
        given, total = max(usage["input_tokens"], 0), usage["total_tokens"]
        made = max(usage["output_tokens"], total - given, 0)
        if self.long is not None and given > self.long.above:
            return self.long.cost(usage)
        read = _count(details, "cache_read")
        hour = _count(details, "ephemeral_1h_input_tokens")
        written = _count(details, "cache_creation") + _count(details, "ephemeral_5m_input_tokens")
        plain = max(given - read - written - hour, 0)
        write = self._or_input(self.cache_write)
        parts = (
            plain * self.input,
            read * self._or_input(self.cached),
            written * write,
            hour * (write if self.cache_write_hour is None else self.cache_write_hour),
            made * self.output,
        )
        return sum(parts) / 1_000_000

    def _or_input(self, price: float | None) -> float:
        return self.input if price is None else price


class LongPrice(Price):
    """The price of a request with more than `above` input tokens, for all of its tokens."""

    above: int = Field(ge=0)


@dataclass(frozen=True)
class Listed:
    """A row of a table: a price, the day from which it holds, and where it was read and when."""

    price: Price
    since: Day = Day.min
    source: str = ""
    read: Day | None = None


class PriceTable:
    """Prices by `provider/model`, whatever the case; `PriceTable()` is the empty one.

    A name has the row that is called so; without one, the row of the name without the version
    behind it; without that, the provider's `*`. docs/costs.md lists what counts as a version.
    """

    def __init__(self, rows: Mapping[str, Iterable[Listed]] | None = None) -> None:
        self._rows = {
            name.lower(): sorted(listed, key=lambda row: row.since)
            for name, listed in (rows or {}).items()
        }

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The table of a TOML file in the form of `prices.toml`. Raises ConfigurationError."""
        try:
            return cls.parsed(Path(path).read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"the price table {str(path)!r} cannot be read: {error}", field="prices"
            ) from None

    @classmethod
    def parsed(cls, text: str, name: str = "prices") -> Self:
        """The table of such a text. Raises ConfigurationError that begins with the name."""
        try:
            providers = _FORM.validate_python(tomllib.loads(text))
        except (tomllib.TOMLDecodeError, ValidationError) as error:
            raise ConfigurationError(
                f"the price table {name!r} is not right: {error}", field="prices"
            ) from None
        rows: dict[str, list[Listed]] = {}
        for provider, listed in providers.items():
            for row in listed.rows:
                source, read = row.source or listed.source, row.date or listed.date
                for model in (row.model, *row.also):
                    entry = Listed(row.price(), row.since, source, read)
                    rows.setdefault(f"{provider}/{model}", []).append(entry)
        return cls(rows)

    def with_prices(self, prices: "Mapping[str, Price] | PriceTable") -> "PriceTable":
        """This table with other prices instead or besides, by `provider/model`."""
        if isinstance(prices, PriceTable):
            return PriceTable({**self._rows, **prices._rows})
        for name in prices:
            if not all(name.partition("/")):
                raise ConfigurationError(
                    f"a price is for {name!r}: name the model as 'provider/model', or all models "
                    "of a provider as 'provider/*'",
                    field="prices",
                )
        own = {name.lower(): [Listed(price)] for name, price in prices.items()}
        return PriceTable({**self._rows, **own})

    def listed(self, provider: str, model: str, on: Day | None = None) -> Listed | None:
        """The row for a model on a day, None for today (UTC); None if there is none."""
        day = on or datetime.now(UTC).date()
        owner = _CLIENTS.get(provider, provider)
        names = (model, _VERSION.sub("", model), EVERY_MODEL)
        for name in dict.fromkeys(names):
            held = self._rows.get(f"{owner}/{name}".lower(), ())
            begun = [row for row in held if row.since <= day]
            if begun:
                return begun[-1]
        return None

    def cost(
        self, provider: str, model: str, usage: UsageMetadata, on: Day | None = None
    ) -> float | None:
        """What a request costs in US dollars; None if the price is not known, which is never 0."""
        row = self.listed(provider, model, on)
        return None if row is None else row.price.cost(usage)

    def __iter__(self) -> Iterator[str]:
        """The names in it, as `provider/model`."""
        return iter(self._rows)


Prices = PriceTable | Mapping[str, Price] | str | Path
"""What a user gives as prices: a table, prices by `provider/model`, or the path of a file."""


def price_table(*given: Prices | None) -> PriceTable:
    """The table that comes with the package, and what was given over it, the last one first.

    Raises ConfigurationError.
    """
    table = list_prices()
    for prices in given:
        if prices is not None:
            own = PriceTable.read(prices) if isinstance(prices, str | Path) else prices
            table = table.with_prices(own)
    return table


def priced(message: AIMessage, prices: PriceTable) -> AIMessage:
    """The answer with what it has cost as `response_metadata["cost"]`: a price that changes later
    does not change it. As it is if its provider has reported a cost, or if none is known.
    """
    about, usage = message.response_metadata, message.usage_metadata
    if usage is None or cost_of(message) is not None:
        return message
    cost = prices.cost(str(about.get("provider")), str(about.get("model")), usage)
    if cost is None:
        return message
    return message.model_copy(update={"response_metadata": {**about, COST: cost}})


class _Row(Price):
    model: str
    also: list[str] = []
    since: Day = Day.min
    source: str = ""
    date: Day | None = None

    def price(self) -> Price:
        return Price(**{name: getattr(self, name) for name in Price.model_fields})


class _Provider(BaseModel):
    model_config = ConfigDict(extra="forbid")

    source: str
    date: Day
    rows: list[_Row]


_FORM = TypeAdapter(dict[str, _Provider])


def _count(details: Mapping[str, Any], name: str) -> int:
    value = details.get(name)
    return max(value, 0) if isinstance(value, int) else 0


@cache
def list_prices() -> PriceTable:
    """The table that comes with the package."""
    return PriceTable.parsed(files(__package__).joinpath("prices.toml").read_text("utf-8"))
