"""What each agent of a tree may call, and how servers that come and go show."""

from __future__ import annotations

from typing import Any

import pytest

from sayso_api.runtimeconfig import (
    AgentBinding,
    AgentIdentity,
    AgentNode,
    FunctionBinding,
    McpBinding,
    ModelSettings,
    RuntimeConfig,
    ToolServer,
)
from sayso_runtime.tools.mcp_tool import McpTool
from sayso_runtime.tools.outcome import ConfigProblem, NotSent
from sayso_runtime.tools.toolbox import AdkToolset, Toolbox

NOWHERE = "http://127.0.0.1:9/mcp"


def node(*tools: Any, **fields: Any) -> AgentNode:
    """An agent with these bindings."""
    return AgentNode(name="desk", instruction="Help.", tools=tools, **fields)


def config(root: AgentNode, *servers: ToolServer) -> RuntimeConfig:
    """An agent's configuration."""
    model = ModelSettings(provider="Scripted")
    identity = AgentIdentity(namespace="shop", name="desk")
    # without the questions that every other agent can ask: `tests/questions` is about them
    return RuntimeConfig(agent=identity, root=root, model=model, servers=servers, ask_user=False)


async def names(toolset: AdkToolset) -> list[str]:
    """What the model is offered now."""
    return [tool.name for tool in await toolset.get_tools()]


async def test_an_agent_gets_the_tools_that_its_globs_name(counting: Any) -> None:
    server = counting("http").settings()
    desk = node(McpBinding(server=server.key, tool_names=("get_order", "re*nd", "cancel_*")))
    toolbox = Toolbox(config(desk, server), {})
    await toolbox.start()
    try:
        assert [tool.name for tool in toolbox.tools_for(desk)] == ["refund", "cancel_order", "get_order"]
        assert toolbox.problems() == []
        assert toolbox.offered()["shop/orders"] >= {"refund", "add_order"}
    finally:
        await toolbox.close()


async def test_a_tool_carries_what_a_say_so_is_bound_to_and_the_servers_own_schema(counting: Any) -> None:
    server = counting("http").settings(idempotent_tools=("get_*",), timeout_seconds=12)
    desk = node(McpBinding(server=server.key))
    toolbox = Toolbox(config(desk, server), {})
    await toolbox.start()
    try:
        tool = toolbox.find(desk, "get_order")
        assert isinstance(tool, McpTool)
        facts = (tool.server, tool.endpoint, tool.tool, tool.idempotent, tool.timeout_seconds)
        assert facts == ("shop/orders", server.url, "get_order", True, 12)
        assert tool._get_declaration().parameters_json_schema["properties"]["order_id"]["type"] == "string"
        refund = toolbox.find(desk, "refund")
        assert isinstance(refund, McpTool)
        assert not refund.idempotent
        answer = await refund.run_async(args={"order_id": "A-1", "amount": 2}, tool_context=None)  # type: ignore[arg-type]
        assert answer["content"][0]["text"] == "refunded 2 for A-1"
    finally:
        await toolbox.close()


async def test_a_server_that_is_down_is_a_problem_and_its_tools_come_when_it_does(
    counting: Any, wait_until: Any
) -> None:
    running, late = counting("http"), counting("http")
    late.kill()
    up = running.settings()
    down = late.settings().model_copy(update={"key": "shop/late"})
    desk = node(
        McpBinding(server=up.key, tool_names=("get_order",)), McpBinding(server=down.key, tool_names=("refund",))
    )
    toolbox = Toolbox(config(desk, up, down), {})
    toolset = AdkToolset(toolbox, desk)
    await toolbox.start()
    try:
        (problem,) = toolbox.problems()
        assert problem.server == "shop/late"
        assert "cannot connect" in problem.why
        assert toolbox.offered()["shop/late"] is None
        assert await names(toolset) == ["get_order"]

        late.start()
        await wait_until(lambda: not toolbox.problems())
        assert await names(toolset) == ["get_order", "refund"]
    finally:
        await toolbox.close()


async def test_the_tool_of_a_waiting_call_is_there_while_its_server_is_not() -> None:
    server = ToolServer(key="shop/orders", url=NOWHERE)
    desk = node(McpBinding(server=server.key, tool_names=("refund",)))
    toolbox = Toolbox(config(desk, server), {})
    await toolbox.start()
    try:
        assert toolbox.tools_for(desk) == []
        tool = toolbox.find(desk, "orders_refund", {"orders_refund": ("shop/orders", "refund")})
        assert isinstance(tool, McpTool)
        with pytest.raises(NotSent, match="shop/orders"):
            await tool.run_async(args={}, tool_context=None)  # type: ignore[arg-type]
        assert toolbox.tools_for(desk, {"x": ("shop/orders", "not_bound"), "y": ("shop/other", "refund")}) == []
    finally:
        await toolbox.close()


def test_other_agents_are_tools_whose_names_say_where_they_are() -> None:
    near = AgentBinding(name="ship-ping", namespace="shop", url="http://near")
    far = AgentBinding(name="ship-ping", url="http://far")
    tools = Toolbox(config(node(near, far)), {}).tools_for(node(near, far))

    assert [tool.name for tool in tools] == ["shop__NS__ship_ping", "ship_ping"]
    assert [(tool.server, tool.tool) for tool in tools] == [("agent", "ship-ping")] * 2  # type: ignore[attr-defined]
    assert [tool.endpoint for tool in tools] == ["agent:shop/ship-ping", "http://far"]  # type: ignore[attr-defined]


def test_a_long_name_of_an_agent_is_cut_and_stays_its_own() -> None:
    bindings = [AgentBinding(name="a" * 63 + end, namespace="shop", url="http://x") for end in "bc"]
    names = [tool.name for tool in Toolbox(config(node(*bindings)), {}).tools_for(node(*bindings))]

    assert len(set(names)) == 2
    assert all(len(name) <= 64 for name in names)


def test_a_server_that_the_configuration_does_not_hold_is_named() -> None:
    with pytest.raises(ConfigProblem, match="MCP server shop/orders is not in its configuration"):
        Toolbox(config(node(McpBinding(server="shop/orders"))), {})


def test_a_function_that_is_not_there_is_found_in_sub_agents_too() -> None:
    child = AgentNode(name="child", instruction="Help.", tools=(FunctionBinding(ref="no_such_module:x"),))

    with pytest.raises(ConfigProblem, match="no module no_such_module"):
        Toolbox(config(node(sub_agents=(child,))), {})


def test_a_function_is_a_tool_of_its_agent() -> None:
    desk = node(FunctionBinding(ref="os.path:basename"))
    toolbox = Toolbox(config(desk), {})

    assert [tool.name for tool in toolbox.tools_for(desk)] == ["basename"]
