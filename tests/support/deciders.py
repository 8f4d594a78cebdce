"""Many people who decide at once, on all replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from support import a2a03
from support.a2a03 import Json, Refused
from support.processes import Shop


async def decide_at_once(shop: Shop, session: str, decisions: Sequence[Json]) -> list[asyncio.Task[Json]]:
    """Sends each decision on a connection of its own, in turn to both replicas. All connections are open before the
    first of them is sent. A task ends with the run's task, or raises `Refused`."""
    clients = [a2a03.client() for _ in decisions]
    urls = [shop.replicas[number % len(shop.replicas)].url for number in range(len(decisions))]
    await asyncio.gather(*(client.get(f"{url}/healthz") for client, url in zip(clients, urls, strict=True)))

    async def send(number: int) -> Json:
        async with aclosing(clients[number]) as client:
            request = a2a03.decision(decisions[number], session)
            return a2a03.result(a2a03.read(await client.post(urls[number], json=request)))

    return [asyncio.create_task(send(number)) for number in range(len(decisions))]


async def outcome(sent: Sequence[asyncio.Task[Json]]) -> tuple[list[Json], list[Refused]]:
    """The answers of those whose decision counted, and what the others heard."""
    accepted: list[Json] = []
    refused: list[Refused] = []
    for answer in await asyncio.gather(*sent, return_exceptions=True):
        if isinstance(answer, Refused):
            refused.append(answer)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            accepted.append(answer)
    return accepted, refused
