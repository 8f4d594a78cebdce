"""Whom a test kills, and the scripts that its agent follows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import httpx
import pytest

from sayso_api.runtimeconfig import ModelSettings
from support.a2a03 import Json, Refused, Unanswered
from support.agents import call, calls, says
from support.held_agent import script
from support.processes import Shop

REFUND = script(calls(call("refund", "c1", order="A-1")), says("Refunded."))
#: A function of the agent's own process, and a tool of a server.
TWO_TOOLS = script(calls(call("refund", "c1", order="A-1"), call("charge", "c2", order="A-2")), says("Both."))


def one_call(tool: str) -> ModelSettings:
    """A model that makes one call, and then says so."""
    return script(calls(call(tool, "c1", order="A-1")), says("Done."))


async def heard(sent: asyncio.Task[Json]) -> Json | Exception:
    """What a client got whose agent may have died before it answered."""
    (answer,) = await asyncio.gather(sent, return_exceptions=True)
    assert isinstance(answer, dict | Refused | Unanswered | httpx.TransportError), repr(answer)
    return answer


@dataclass(frozen=True)
class Victims:
    """What is killed at once: the agent's one replica, Redis, or both."""

    agent: bool
    redis: bool

    async def die(self, shop: Shop) -> None:
        """kill -9."""
        if self.agent:
            await shop.a.kill()
        if self.redis:
            await shop.redis.kill()

    async def come_back(self, shop: Shop) -> None:
        """Starts what died, Redis first, and waits until the agent is ready."""
        if self.redis:
            await shop.redis.start()
        if self.agent:
            await shop.a.start()
        else:
            await shop.a.ready()


AGENT, REDIS, BOTH = Victims(agent=True, redis=False), Victims(agent=False, redis=True), Victims(agent=True, redis=True)
VICTIMS = [pytest.param(AGENT, id="agent"), pytest.param(REDIS, id="redis"), pytest.param(BOTH, id="both")]
