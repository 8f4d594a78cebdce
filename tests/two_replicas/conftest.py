"""Two replicas of one agent on one Redis."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from support.agents import call, calls, says
from support.held_agent import script
from support.processes import Shop, shared


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """An agent that looks an order up at first, which needs no say-so, and later makes a gated call."""
    model = script(
        calls(call("look", "l1", order="A-1")), says("first"), calls(call("refund", "c1", order="A-1")), says("last")
    )
    with shared(tmp_path_factory.mktemp("shop") / "s", model, replicas=2) as shop:
        yield shop


@pytest.fixture
def session() -> str:
    """The id of a session that nobody has used."""
    return f"s-{uuid.uuid4().hex}"
