"""A name gives a tool no way around the gate."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from redis.asyncio import Redis

from sayso_api.runtimeconfig import AgentIdentity, AgentNode, FunctionBinding, ModelSettings, RuntimeConfig
from sayso_approvals.ledger import Ledger
from sayso_runtime.interfaces.metrics import Metrics
from sayso_runtime.messages import Inbound, TaskState, TextPart
from sayso_runtime.process import build
from support.agents import AGENT, KEY, call, calls, says


@pytest.mark.parametrize("name", ["exit_loop", "transfer_to_agent", "finish_task", "set_model_response"])
async def test_a_gated_function_with_a_name_of_the_frameworks_still_asks(
    redis: Redis, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def function(order: str = "") -> dict[str, str]:
        """Does something that needs a say-so."""
        ran.append(order)
        return {"done": order}

    function.__name__ = name
    shop = ModuleType("borrowed_names")
    setattr(shop, name, function)
    monkeypatch.setitem(sys.modules, "borrowed_names", shop)
    binding = FunctionBinding(ref=f"borrowed_names:{name}", require_approval=True)
    script = [calls(call(called, order="A")) for called in (name, f"function_{name}")]
    config = RuntimeConfig(
        agent=AgentIdentity(namespace=AGENT.namespace, name=AGENT.name),
        root=AgentNode(name="refund-desk", instruction="Help.", tools=(binding,)),
        model=ModelSettings(provider="Scripted", turns=(*script, says("Done."))),
    )
    agent = await build(config, Ledger(redis, AGENT, KEY), Metrics(), {}, lease_seconds=5)
    try:
        run = await agent.service.send(Inbound("alice", "m1", (TextPart("go"),), context_id="s1"))
        task = await run.result()
    finally:
        await agent.close()
    assert ran == []
    if name == "exit_loop" or task.interruptions:
        assert task.state is TaskState.INPUT_REQUIRED
