"""Fixtures that every test may use. Fakes are not here: `loopwright.testing` ships them."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Tests marked `anyio` run on asyncio, the loop that LangGraph itself runs on."""
    return "asyncio"
