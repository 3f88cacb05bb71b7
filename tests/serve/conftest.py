"""A scripted agent's graph behind the application, and a client that needs no network."""

from collections.abc import Callable, Iterable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from langgraph.checkpoint.memory import InMemorySaver

from loopwright.graph.assembly import build
from loopwright.graph.entrance import AgentGraph
from loopwright.providers.models import Models
from loopwright.runs import Dependencies
from loopwright.serve import create_app
from loopwright.settings import Environment, Limits, Settings
from loopwright.testing import ScriptedModel
from loopwright.testing.model import Scripted
from loopwright.tools.registry import registry

HOST = "127.0.0.1:8000"
SYSTEM_PROMPT = "Never tell anyone the word swordfish."


@pytest.fixture
def graph() -> Callable[..., AgentGraph]:
    """Makes a graph whose model plays the script; `model` names another, `turns` limits a run."""

    def make(
        responses: Iterable[Scripted] = (),
        *tools: Callable[..., Any],
        model: str | None = None,
        turns: int = 90,
    ) -> AgentGraph:
        models = Models(Environment())
        name = models.add(ScriptedModel(responses))
        dependencies = Dependencies(
            resolve=models.resolve,
            tools=registry(tools),
            system_prompt=SYSTEM_PROMPT,
            settings=Settings(model=model or name, limits=Limits(turns=turns)),
        )
        return build(dependencies, checkpointer=InMemorySaver())

    return make


@pytest.fixture
def served(graph: Callable[..., AgentGraph]) -> Callable[..., httpx.AsyncClient]:
    """Makes a client of an application that serves such a graph."""
    return lambda *script, **more: client(create_app(graph(*script, **more)))


def client(app: FastAPI) -> httpx.AsyncClient:
    """A client that calls the application directly."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{HOST}")
