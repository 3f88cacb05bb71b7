"""What a user may set: the policies of a run, and the environment of a process.

Defaults are the default runtime's (K28); presets replace them. Nothing is read at import.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_origin

import platformdirs
from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from loopwright.errors import ConfigurationError

QueueMode = Literal["one_at_a_time", "all"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of one run. A limit that is reached ends the run with status `limit`."""

    turns: int = 90
    """Model turns of one run (S3-02); at least 1."""

    def __post_init__(self) -> None:
        _require_whole("limits.turns", self.turns, at_least=1)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The policies of a run, plain JSON values only; a run keeps the ones it started with."""

    model: str = "offline"
    """Name of the model: `provider/model`, or the name of a model object given to the agent."""

    thinking_level: str = "off"
    """How much the model may think: off, minimal, low, medium, high; the provider maps it."""

    tools: tuple[str, ...] | None = None
    """Names of the tools offered to the model; None offers all registered ones."""

    tool_execution: Literal["parallel", "sequential"] = "parallel"
    """How a batch runs; a called tool that says sequential makes its whole batch sequential."""

    tool_timeout: float | None = None
    """Seconds after which one tool call is given up and answered with an error; None waits."""

    steering_mode: QueueMode = "one_at_a_time"
    """How many waiting steering messages one poll takes."""

    follow_up_mode: QueueMode = "one_at_a_time"
    """How many waiting follow-up messages one poll takes."""

    cancel_policy: Literal["record", "leave"] = "record"
    """Whether a cancelled run answers its open calls or leaves them to `load` (K1, K24)."""

    repair_policy: Literal["always", "died", "off"] = "died"
    """When `load` repairs a transcript: always, after a run that did not end, or never."""

    journal_sync: Literal["normal", "full"] = "normal"
    """Whether what is noted around a tool's effect waits for the disk, so that it survives a power
    loss too: costs some milliseconds per note, and needs a log that can do it (SQLite's)."""

    context_window: int | None = None
    """Tokens that fit the model; None asks the provider; unknown means never measured."""

    compaction_threshold: float = 0.6
    """Share of the window above which (strictly, S1-07) the older part is summarised."""

    compaction_tail: int = 6
    """Messages that a compaction keeps verbatim at least, rounded up to a legal cut."""

    keep_checkpoints: int | None = None
    """Newest checkpoints of its thread that a run leaves when it ends, at least 1; None leaves all.
    Messages are never deleted, but only these moments can be gone back to."""

    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        for choice in (f for f in fields(self) if get_origin(f.type) is Literal):
            _require_one_of(choice.name, getattr(self, choice.name), get_args(choice.type))
        _require_whole("compaction_tail", self.compaction_tail, at_least=1)
        if self.context_window is not None:
            _require_whole("context_window", self.context_window, at_least=1)
        if self.keep_checkpoints is not None:
            _require_whole("keep_checkpoints", self.keep_checkpoints, at_least=1)
        if not 0 < self.compaction_threshold <= 1:
            raise ConfigurationError(
                f"compaction_threshold is {self.compaction_threshold!r}: "
                "use a number above 0 and at most 1",
                field="compaction_threshold",
            )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` gives equal settings back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Raises ConfigurationError for a field that does not exist."""
        _require_known("setting", data, cls)
        _require_known("limit", data.get("limits", {}), Limits)
        limits = Limits(**data.get("limits", {}))
        tools = data.get("tools")
        return cls(**{**data, "limits": limits, "tools": None if tools is None else tuple(tools)})


def _require_known(word: str, given: Mapping[str, Any], kind: type[Any]) -> None:
    unknown = set(given) - {field.name for field in fields(kind)}
    if unknown:
        raise ConfigurationError(f"unknown {word} {min(unknown)!r}", field=min(unknown))


def _require_one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigurationError(f"{name} is {value!r}: use {' or '.join(allowed)}", field=name)


def _require_whole(name: str, value: object, *, at_least: int) -> None:
    """A bool is not a whole number here, and neither is 3.0 (S0-01)."""
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise ConfigurationError(
            f"{name} is {value!r}: use a whole number of at least {at_least}", field=name
        )


def workspace_folder(path: str | Path) -> Path:
    """The folder that file tools are confined to, links resolved. Raises ConfigurationError."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise ConfigurationError(f"workspace {str(path)!r} is not a folder", field="workspace")
    return folder.resolve()


class Environment(BaseSettings):
    """What the process's environment says, read from variables that start with `LOOPWRIGHT_`."""

    model_config = SettingsConfigDict(env_prefix="LOOPWRIGHT_", extra="ignore")

    model: str = "offline"
    """Model of agents that name none."""

    base_url: str | None = None
    """Address of an OpenAI-compatible server for models without a provider of their own."""

    api_key: SecretStr | None = None
    """Key for that server; provider keys have their usual variables (OPENAI_API_KEY, ...)."""

    database: Path | None = None
    """File with the threads of the command line; default: in the user's data folder."""

    tracing: bool = False
    """Whether LangSmith tracing, which sends content out, may be on. Off whatever LangSmith's own
    variables say, unless this is true."""

    def database_path(self) -> Path:
        """The database of the command line; its folder is made when it is opened."""
        return self.database or platformdirs.user_data_path("loopwright") / "threads.db"
