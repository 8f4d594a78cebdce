"""An agent and its tool server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from support.agents import call, calls, says
from support.held_agent import script
from support.processes import Shop, shared


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One replica, and a server whose calls may take a second."""
    model = script(calls(call("charge", "c1", order="A-1")), says("Done."))
    with shared(tmp_path_factory.mktemp("shop") / "s", model, mcp=True, tool_seconds=1.0) as shop:
        yield shop


@pytest.fixture
def session() -> str:
    """The id of a session that nobody has used."""
    return f"s-{uuid.uuid4().hex}"
