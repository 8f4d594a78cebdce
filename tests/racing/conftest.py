"""Two replicas that many people decide on at once."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from support.agents import call, calls, says
from support.held_agent import script
from support.processes import Shop, shared


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """An agent that makes one gated call, c1, and then another one, c2."""
    first, second = call("refund", "c1", order="first"), call("refund", "c2", order="second")
    model = script(calls(first), calls(second), says("Both."))
    with shared(tmp_path_factory.mktemp("shop") / "s", model, replicas=2, stops=True) as shop:
        yield shop


@pytest.fixture
def new_session() -> Callable[[], str]:
    """Ids of sessions that nobody has used."""
    return lambda: f"s-{uuid.uuid4().hex}"
