"""Loopwright: an agent runtime whose runs are LangGraph graphs and survive a crash.

The public names; each is loaded at its first use, so that importing the package stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopwright.agent import Agent
    from loopwright.errors import (
        BusyThreadError,
        ConfigurationError,
        ContextOverflowError,
        ContinuationError,
        DatabaseError,
        FatalToolError,
        InputError,
        LoopwrightError,
        MissingExtraError,
        MissingKeyError,
        ModelError,
        NestedCallError,
        OutputError,
        ProtocolError,
        StateError,
        ThreadError,
        ThreadExistsError,
        ThreadFileError,
        TraceFileError,
        TranscriptError,
        UnknownModelError,
        UnknownMomentError,
        UnknownThreadError,
    )
    from loopwright.hooks import Hooks
    from loopwright.outcome import RunResult
    from loopwright.settings import Environment, Limits, Settings
    from loopwright.state.backup import backup
    from loopwright.state.checkpointer import SqliteCheckpointer
    from loopwright.state.moments import Moment
    from loopwright.structured import Output
    from loopwright.tools import Tool, ToolContext, ToolResult, tool

_HOMES = {
    "loopwright.agent": ("Agent",),
    "loopwright.errors": (
        "BusyThreadError",
        "ConfigurationError",
        "ContextOverflowError",
        "ContinuationError",
        "DatabaseError",
        "FatalToolError",
        "InputError",
        "LoopwrightError",
        "MissingExtraError",
        "MissingKeyError",
        "ModelError",
        "NestedCallError",
        "OutputError",
        "ProtocolError",
        "StateError",
        "ThreadError",
        "ThreadExistsError",
        "ThreadFileError",
        "TraceFileError",
        "TranscriptError",
        "UnknownModelError",
        "UnknownMomentError",
        "UnknownThreadError",
    ),
    "loopwright.hooks": ("Hooks",),
    "loopwright.outcome": ("RunResult",),
    "loopwright.settings": ("Environment", "Limits", "Settings"),
    "loopwright.state.backup": ("backup",),
    "loopwright.state.checkpointer": ("SqliteCheckpointer",),
    "loopwright.state.moments": ("Moment",),
    "loopwright.structured": ("Output",),
    "loopwright.tools": ("Tool", "ToolContext", "ToolResult", "tool"),
}

__all__ = [
    "Agent",
    "BusyThreadError",
    "ConfigurationError",
    "ContextOverflowError",
    "ContinuationError",
    "DatabaseError",
    "Environment",
    "FatalToolError",
    "Hooks",
    "InputError",
    "Limits",
    "LoopwrightError",
    "MissingExtraError",
    "MissingKeyError",
    "ModelError",
    "Moment",
    "NestedCallError",
    "Output",
    "OutputError",
    "ProtocolError",
    "RunResult",
    "Settings",
    "SqliteCheckpointer",
    "StateError",
    "ThreadError",
    "ThreadExistsError",
    "ThreadFileError",
    "Tool",
    "ToolContext",
    "ToolResult",
    "TraceFileError",
    "TranscriptError",
    "UnknownModelError",
    "UnknownMomentError",
    "UnknownThreadError",
    "backup",
    "tool",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
