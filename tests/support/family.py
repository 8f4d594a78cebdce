"""Agents that call each other, each as its process would be: one ledger, toolbox and door per agent, over HTTP.

    async with family(redis, tmp_path) as home:
        child = await home.add("child", script(...), gated=("refund",))
        root = await home.add("root", script(...), children=["child"])
        task = await root.say("go")

Tools are functions of the test's process that note what they did in `home.ran`. Any agent can be stopped and started
again on its port; what it keeps is in Redis alone.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from google.adk.tools.tool_context import ToolContext
from redis.asyncio import Redis

from sayso_api.runtimeconfig import (
    AgentBinding,
    AgentIdentity,
    AgentNode,
    ApprovalSettings,
    Binding,
    FunctionBinding,
    RuntimeConfig,
    ScriptedTurn,
)
from sayso_approvals.ledger import Choice, Ledger
from sayso_approvals.records import AgentId, CallView, Verdict
from sayso_runtime.children import Children
from sayso_runtime.interfaces.http import build_app, loopback_user
from sayso_runtime.interfaces.metrics import Metrics
from sayso_runtime.interfaces.serve import serve
from sayso_runtime.process import Agent, build
from sayso_runtime.worker import Worker
from support import a2a03
from support.a2a03 import Json
from support.held_agent import script
from support.processes import until
from support.serving import free_port

LEASE = 2.0
TOOLS = ("refund", "wipe", "look", "careful")
_numbers = itertools.count(1)
#: What ran, as (tool, order), in every agent of the test.
RAN: list[tuple[str, str]] = []


def refund(order: str) -> str:
    """Pay money back."""
    RAN.append(("refund", order))
    return f"refunded {order}"


def wipe(order: str) -> str:
    """Remove an order."""
    RAN.append(("wipe", order))
    return f"wiped {order}"


def look(order: str) -> str:
    """Look an order up."""
    RAN.append(("look", order))
    return f"looked at {order}"


def careful(order: str, tool_context: ToolContext) -> str:
    """Remove an order, after asking whether that is meant."""
    answer = tool_context.tool_confirmation
    if answer is None or not isinstance(answer.payload, dict):
        tool_context.request_confirmation(hint="Really?", payload={"really": True})
        return "asked"
    RAN.append(("careful", order))
    return f"removed {order}"


@dataclass(eq=False)
class Member:
    """One agent of the family."""

    name: str
    config: RuntimeConfig
    redis: Redis
    port: int
    user: str = "ada"
    agent: Agent | None = None
    ledger: Ledger | None = None
    _work: AsyncExitStack | None = None
    children: Children | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/"

    async def start(self) -> None:
        """Begins to serve, with its worker and its looks at its children."""
        identity = AgentId("shop", self.name)
        ledger = self.ledger = Ledger(self.redis, identity, self.name.encode().ljust(32, b"k"), lease_seconds=LEASE)
        metrics = Metrics()
        agent = self.agent = await build(self.config, ledger, metrics, {}, lease_seconds=LEASE)
        agent.readiness.warm = True
        app = build_app(agent.service, self.config, metrics, identify=loopback_user(self.user))
        taking = asyncio.Event()

        async def ready() -> None:
            taking.set()

        worker = Worker(ledger, agent.service.go_on, f"r{next(_numbers)}", lease=LEASE)
        self.children = Children(ledger, agent.toolbox.agent)
        tasks = [
            asyncio.create_task(serve(app, "127.0.0.1", self.port, on_ready=ready, drain_seconds=0)),
            asyncio.create_task(worker.run()),
            asyncio.create_task(self.children.run()),
        ]
        stack = AsyncExitStack()

        async def end() -> None:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await worker.finish(0)
            await agent.service.drain(0)
            for left in list(agent.service._tasks):
                left.cancel()
            await asyncio.gather(*agent.service._tasks, return_exceptions=True)
            await agent.close()

        stack.push_async_callback(end)
        self._work = stack
        await taking.wait()

    async def stop(self) -> None:
        """As if it were killed: what runs is cut off."""
        if self._work is not None:
            work, self._work = self._work, None
            await work.aclose()

    async def post(self, document: Json) -> Json:
        """One JSON-RPC request; its result. Raises `Refused`."""
        async with httpx.AsyncClient(timeout=60) as http:
            return a2a03.result(a2a03.read(await http.post(self.url, json=document)))

    async def say(self, text: str = "go", session: str = "s1", **more: Any) -> Json:
        """Sends a message; the task at the end of its run."""
        return await self.post(a2a03.message(text, session, **more))

    async def decide(self, said: Json, session: str = "s1", **more: Any) -> Json:
        """Sends a decision part; the task at the end of its run."""
        return await self.post(a2a03.decision(said, session, **more))

    async def becomes(self, task: Json, state: str) -> Json:
        """The task once it has this state, without anybody sending anything."""

        async def there() -> Json | None:
            found = await self.post(a2a03.get_task(task["id"]))
            return found if a2a03.state(found) == state else None

        found: Json = await until(there, f"task {task['id']} of {self.name} becomes {state}")
        return found

    async def open(self) -> list[CallView]:
        """What waits in its ledger."""
        assert self.ledger is not None
        return [view for view in await self.ledger.calls() if view.open]

    async def decide_aside(self, verdict: Verdict, reason: str = "", by: str = "bob", payload: str = "null") -> None:
        """A verdict about its one open call, as the command line gives it."""
        assert self.ledger is not None
        (view,) = await self.open()
        choice = Choice(view.pause.pause_id, view.call.call_id, view.call.digest, verdict, reason, payload)
        await self.ledger.decide([choice], by=by, via="cli", decision_id="aside")


@dataclass(eq=False)
class Family:
    """All agents of one test."""

    redis: Redis
    members: dict[str, Member] = field(default_factory=dict)

    @property
    def ran(self) -> list[tuple[str, str]]:
        """What tools did, in order."""
        return RAN

    async def add(
        self,
        name: str,
        *turns: ScriptedTurn,
        gated: Sequence[str] = ("refund", "wipe", "careful"),
        children: Sequence[str] = (),
        asks: Sequence[str] = (),
        more: Sequence[Binding] = (),
        tools: Sequence[str] = TOOLS,
        **settings: Any,
    ) -> Member:
        """An agent with this script. `children` are agents that it may call, `asks` those whose call needs a say-so."""
        bound: list[Binding] = [
            FunctionBinding(ref=f"support.family:{tool}", require_approval=tool in gated) for tool in tools
        ]
        for child in children:
            other = self.members[child]
            bound.append(AgentBinding(name=child, namespace="shop", url=other.url, require_approval=child in asks))
        config = RuntimeConfig(
            agent=AgentIdentity(namespace="shop", name=name),
            root=AgentNode(name=name, instruction="Help.", tools=(*bound, *more)),
            model=script(*turns),
            approval=ApprovalSettings(timeout_seconds=3600),
            **settings,
        )
        member = self.members[name] = Member(name, config, self.redis, free_port())
        await member.start()
        return member


@asynccontextmanager
async def family(redis: Redis) -> AsyncIterator[Family]:
    """Everybody, gone at the end."""
    RAN.clear()
    home = Family(redis)
    try:
        yield home
    finally:
        for member in reversed(home.members.values()):
            await member.stop()


def inner(task: Json) -> list[tuple[str, str]]:
    """Ids and names of the calls of other agents that a paused task shows, in order."""
    return [
        (part["originalFunctionCall"]["id"], part["originalFunctionCall"]["name"])
        for payload in payloads(task)
        for part in payload["hitl_parts"]
    ]


def payloads(task: Json) -> list[Json]:
    """The payloads of a paused task's questions about other agents."""
    found = []
    for part in task["status"]["message"]["parts"]:
        payload = part.get("data", {}).get("args", {}).get("toolConfirmation", {}).get("payload")
        if payload:
            found.append(payload)
    return found
