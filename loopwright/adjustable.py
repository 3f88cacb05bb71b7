"""What of an agent may be changed after it was made; a run keeps what it started with.

The policies themselves are in `settings`, the hooks in `hooks`.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel

from loopwright.graph.entrance import AgentGraph
from loopwright.hooks import Hooks
from loopwright.providers.contract import Provider
from loopwright.providers.models import Models
from loopwright.runs import QueueModes
from loopwright.settings import QueueMode, Settings
from loopwright.tools.contract import Tool
from loopwright.tools.registry import registry


class Adjustable:
    """Properties over the dependencies of a graph. Changes count from the next run on, the queue
    modes from the next poll on (S2-08).
    """

    graph: AgentGraph
    _models: Models
    _modes: QueueModes

    def _adjust(self, **changes: Any) -> None:
        self.graph.dependencies = replace(self.graph.dependencies, **changes)

    @property
    def settings(self) -> Settings:
        """The policies of the next run; its `model` is a name that this agent knows."""
        return self.graph.dependencies.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._adjust(settings=settings)

    @property
    def model(self) -> str:
        """Name of the model; a model object may be assigned."""
        return self.settings.model

    @model.setter
    def model(self, model: str | BaseChatModel | Provider) -> None:
        self._models, name = self._models.with_model(model)
        self._adjust(resolve=self._models.resolve, settings=replace(self.settings, model=name))

    @property
    def thinking_level(self) -> str:
        """How much the model may think."""
        return self.settings.thinking_level

    @thinking_level.setter
    def thinking_level(self, level: str) -> None:
        self.settings = replace(self.settings, thinking_level=level)

    @property
    def tool_execution(self) -> Literal["parallel", "sequential"]:
        """How a batch of calls runs."""
        return self.settings.tool_execution

    @tool_execution.setter
    def tool_execution(self, mode: Literal["parallel", "sequential"]) -> None:
        self.settings = replace(self.settings, tool_execution=mode)

    @property
    def system_prompt(self) -> str | None:
        """The system prompt; None keeps the one that a thread was begun with."""
        return self.graph.dependencies.system_prompt

    @system_prompt.setter
    def system_prompt(self, prompt: str | None) -> None:
        self._adjust(system_prompt=prompt)

    @property
    def tools(self) -> list[Tool]:
        """The tools offered to the model; names of known tools may be assigned too."""
        return list(self.graph.dependencies.tools.select(self.settings.tools).tools)

    @tools.setter
    def tools(self, tools: Iterable[Any]) -> None:
        known = self.graph.dependencies.tools
        named: list[Any] = [
            known.get(tool) or tool if isinstance(tool, str) else tool for tool in tools
        ]
        chosen = registry(named)
        others = tuple(tool for tool in known.tools if chosen.get(tool.name) is None)
        self._adjust(
            tools=replace(chosen, tools=(*chosen.tools, *others)),
            settings=replace(self.settings, tools=tuple(chosen.names())),
        )

    @property
    def hooks(self) -> Hooks:
        """The hooks."""
        return self.graph.dependencies.hooks

    @hooks.setter
    def hooks(self, hooks: Hooks) -> None:
        self._adjust(hooks=hooks)

    @property
    def steering_mode(self) -> QueueMode:
        """How many steering messages a poll takes."""
        return self._modes.steering

    @steering_mode.setter
    def steering_mode(self, mode: QueueMode) -> None:
        self._modes.steering = mode

    @property
    def follow_up_mode(self) -> QueueMode:
        """How many follow-up messages a poll takes."""
        return self._modes.follow_up

    @follow_up_mode.setter
    def follow_up_mode(self, mode: QueueMode) -> None:
        self._modes.follow_up = mode
