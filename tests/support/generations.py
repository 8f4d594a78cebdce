"""Three agents, each a process of its own, one calling the next; the last one has the tools of `held_tools.py`.

async with three(tmp_path) as house:
    paused = await house.root.say("go", "s1")
    await house.middle.kill()
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sayso_api.runtimeconfig import (
    AgentBinding,
    AgentIdentity,
    AgentNode,
    Binding,
    FunctionBinding,
    RuntimeConfig,
    ScriptedTurn,
)
from sayso_approvals.server import RedisServer, free_port
from support.agents import call, calls, says
from support.held_agent import script
from support.processes import LEASE, TESTS, Process, Replica, Shop

NAMES = ("root", "middle", "leaf")


@dataclass(eq=False)
class House:
    """The three of them, and what their tools wrote (`shop.touch`, `shop.effects`)."""

    shop: Shop

    def __getitem__(self, name: str) -> Replica:
        return self.shop.replicas[NAMES.index(name)]

    @property
    def root(self) -> Replica:
        """Whom people talk to."""
        return self["root"]


def _config(name: str, turns: Sequence[ScriptedTurn], tools: tuple[Binding, ...]) -> RuntimeConfig:
    return RuntimeConfig(
        agent=AgentIdentity(namespace="shop", name=name),
        root=AgentNode(name=name, instruction="Help.", tools=tools),
        model=script(*turns),
    )


def _configs(ports: dict[str, int]) -> Sequence[RuntimeConfig]:
    def below(name: str) -> tuple[Binding, ...]:
        return (AgentBinding(name=name, namespace="shop", url=f"http://127.0.0.1:{ports[name]}/"),)

    tools = (
        FunctionBinding(ref="support.held_tools:refund", require_approval=True),
        FunctionBinding(ref="support.held_tools:slow", require_approval=True),
    )
    leaf = (
        calls(call("refund", "k1", order="A-1")),
        calls(call("slow", "k2", order="A-2")),
        says("The leaf is done."),
    )
    return (
        _config("root", [calls(call("shop__NS__middle", "r1", request="go"))], below("middle")),
        _config("middle", [calls(call("shop__NS__leaf", "m1", request="go"))], below("leaf")),
        _config("leaf", leaf, tools),
    )


@asynccontextmanager
async def three(directory: Path) -> AsyncIterator[House]:
    """All of it, gone at the end."""
    (directory / "held").mkdir()
    shop = Shop(directory, RedisServer(directory / "redis", port=free_port()), None, 0)
    ports = {name: free_port() for name in NAMES}
    environment = os.environ | {"HELD_DIR": str(shop.held), "PYTHONPATH": str(TESTS)}
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(TESTS.parent / "build" / "bytecode")}
    for name, config in zip(NAMES, _configs(ports), strict=True):
        (directory / f"{name}.json").write_text(config.model_dump_json())
        command = [sys.executable, "-m", "sayso_runtime", "--config", str(directory / f"{name}.json")]
        command += ["--redis-url", shop.redis.url, "--key-file", str(directory / f"{name}.key")]
        command += ["--port", str(ports[name]), "--replica", name, "--user", "alice", "--lease-seconds", str(LEASE)]
        shop.replicas.append(Replica(Process(command, directory / f"{name}.log", environment), ports[name]))
    try:
        await shop.redis.start()
        for replica in shop.replicas:
            await replica.start()
        yield House(shop)
    finally:
        await shop.close()
