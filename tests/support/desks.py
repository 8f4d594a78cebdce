"""A served agent with the real service behind it, for tests of doors: what it does, and what really ran."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
from redis.asyncio import Redis

from sayso_api.runtimeconfig import ScriptedTurn
from support.agents import Counter, Replica, agent
from support.serving import Door, running


class Desk:
    """One agent whose model follows `turns`, with a tool for each name; those in `gated` need a say-so."""

    def __init__(
        self,
        redis: Redis,
        turns: Sequence[ScriptedTurn],
        *,
        gated: Sequence[str] = ("refund", "cancel"),
        tools: Sequence[Any] | None = None,
        **more: Any,
    ) -> None:
        self.seen = Counter()
        made = tools if tools is not None else [self.seen.tool(name) for name in ("look", "refund", "cancel")]
        self.replica = Replica(redis, agent("desk", self.seen.model(*turns), made), gated, **more)
        self.door: Door

    def ran(self) -> list[str]:
        """Tools that ran, in order."""
        return [name for name, _ in self.seen.runs]

    async def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        """One POST of JSON. Header names with underscores for hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.door.http.post(self.door.url + path, json=body, headers=named)

    async def get(self, path: str, **query: str) -> httpx.Response:
        """One GET."""
        return await self.door.http.get(self.door.url + path, params=query)

    async def chat(self, prompt: str | None = None, session_id: str | None = "s1", **body: Any) -> httpx.Response:
        """One chat request; `resume=` for a decision."""
        said = {"prompt": prompt} if prompt is not None else {}
        named = {"session_id": session_id} if session_id is not None else {}
        return await self.post("api/v1/chat", {**said, **named, **body})

    async def resume(self, *decisions: dict[str, Any], run_id: str | None = None, **body: Any) -> httpx.Response:
        """One decision about session s1."""
        run = {"run_id": run_id} if run_id is not None else {}
        return await self.chat(resume={**run, "decisions": list(decisions)}, **body)


@asynccontextmanager
async def serving(desk: Desk) -> AsyncIterator[Desk]:
    """The desk behind a real server."""
    async with running(desk.replica.service) as door:
        desk.door = door
        yield desk


def events(body: str) -> list[dict[str, Any]]:
    """Server-sent events as a client reads them: each is its `data`; an event's name has to be the data's type."""
    assert "\r" not in body
    assert body.endswith("\n\n")
    found = []
    for block in body[:-2].split("\n\n"):
        lines = [line for line in block.split("\n") if not line.startswith(":")]
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
        if data:
            event = json.loads("\n".join(data))
            assert names in ([], [event["type"]])
            found.append(event)
    return found


def approved(call_id: str, **more: Any) -> dict[str, Any]:
    """A yes."""
    return {"id": call_id, "status": "approved", **more}


def denied(call_id: str, **more: Any) -> dict[str, Any]:
    """A no."""
    return {"id": call_id, "status": "denied", **more}
