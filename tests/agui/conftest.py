"""A desk for AG-UI clients: it looks, and asks for two gated calls."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from support.agents import call, calls, says
from support.agui_client import Client
from support.desks import Desk, serving


@pytest.fixture
async def desk(redis: Redis) -> AsyncIterator[Desk]:
    """`look` runs at once, `refund` (c1) and `cancel` (c2) wait; then it says that all is done, and then hello."""
    script = calls(
        call("look", "c0", order="A"),
        call("refund", "c1", order="A"),
        call("cancel", "c2", order="B"),
        text="Let me see.",
    )
    async with serving(Desk(redis, [script, says("All done."), says("Hello.")])) as made:
        yield made


@pytest.fixture
def client(desk: Desk) -> Client:
    """A front end of that desk."""
    return Client(desk.door)
