"""The gate: what a list names asks, what a list leaves out runs, and what nobody knows asks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso_api.runtimeconfig import (
    AgentBinding,
    AgentIdentity,
    AgentNode,
    FunctionBinding,
    McpBinding,
    ModelSettings,
    RuntimeConfig,
)
from sayso_approvals.gate import Entry, Gate, Row, compile_gate

ORDERS, STOCK = "shop/orders", "shop/stock"


def gate(*tools: McpBinding | FunctionBinding | AgentBinding, below: tuple[AgentNode, ...] = ()) -> Gate:
    """The gate of an agent with these tools."""
    root = AgentNode(name="desk", instruction="Help.", tools=tools, sub_agents=below)
    model = ModelSettings(provider="Scripted")
    return compile_gate(RuntimeConfig(agent=AgentIdentity(namespace="shop", name="desk"), root=root, model=model))


def orders(*require: str, names: tuple[str, ...] | None = None, server: str = ORDERS) -> McpBinding:
    """Tools of an MCP server."""
    return McpBinding(server=server, tool_names=names, require_approval=require)


TABLE: list[tuple[str, McpBinding, str, str]] = [
    ("a tool that no list names runs", orders("refund"), "get_order", "allow"),
    ("a tool that a list names asks", orders("refund"), "refund", "ask"),
    ("a name is not a prefix", orders("refund"), "refund_all", "allow"),
    ("a glob covers what it matches", orders("cancel_*"), "cancel_order", "ask"),
    ("a glob covers nothing else", orders("cancel_*"), "uncancel_order", "allow"),
    ("a star covers everything", orders("*"), "anything at all", "ask"),
    ("names are case-sensitive", orders("Refund"), "refund", "allow"),
    ("a bracket is a bracket", orders("refund[1]"), "refund1", "allow"),
    ("a tool outside of toolNames asks", orders(names=("get_order",)), "refund", "ask"),
    ("a tool within toolNames runs", orders(names=("get_order",)), "get_order", "allow"),
    ("a tool that a glob in toolNames covers runs", orders(names=("get_*",)), "get_order", "allow"),
    ("a tool that is gated but not in toolNames asks", orders("refund", names=("get_order",)), "refund", "ask"),
    ("no tool has an empty name", orders(names=()), "", "ask"),
]


@pytest.mark.parametrize(("binding", "tool", "action"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_gate_of_one_server(binding: McpBinding, tool: str, action: str) -> None:
    judged = gate(binding).judge("desk", ORDERS, tool, {})
    assert judged.action == action, judged.why
    assert judged.gated_by == (("Agent shop/desk",) if action == "ask" else ())
    assert judged.why


def test_a_gate_is_about_its_own_server_only() -> None:
    both = gate(orders("refund"), orders(server=STOCK))
    assert both.judge("desk", ORDERS, "refund", {}).action == "ask"
    assert both.judge("desk", STOCK, "refund", {}).action == "allow"


def test_two_bindings_of_one_server_gate_what_either_gates() -> None:
    two = gate(orders(names=("refund", "get_order")), orders("refund", names=("refund",)))
    assert two.judge("desk", ORDERS, "refund", {}).action == "ask"
    assert two.judge("desk", ORDERS, "get_order", {}).action == "allow"


@pytest.mark.parametrize(("asks", "action"), [(True, "ask"), (False, "allow")])
def test_functions_and_agents_are_gated_by_their_own_names(asks: bool, action: str) -> None:
    both = gate(
        FunctionBinding(ref="shop_tools:send", require_approval=asks),
        AgentBinding(name="shipping", url="http://s", require_approval=asks),
    )
    assert both.judge("desk", "function", "shop_tools:send", {}).action == action
    assert both.judge("desk", "agent", "shipping", {}).action == action
    assert both.judge("desk", "function", "send", {}).action == "ask", "another name is another function"
    assert both.judge("desk", "agent", "shop_tools:send", {}).action == "ask"


def test_a_sub_agent_has_the_gates_of_its_own_lists() -> None:
    polite = AgentNode(name="polite", instruction="Be kind.", tools=(orders("*"),))
    deep = AgentNode(name="middle", instruction="…", sub_agents=(polite,))
    tree = gate(orders(), below=(deep,))
    assert tree.judge("desk", ORDERS, "refund", {}).action == "allow"
    assert tree.judge("polite", ORDERS, "refund", {}).action == "ask"
    assert tree.judge("middle", ORDERS, "refund", {}).action == "ask", "it has no tools of that server"


def test_two_nodes_of_one_name_gate_what_either_gates() -> None:
    twin = AgentNode(name="desk", instruction="…", tools=(orders("refund"),))
    assert gate(orders(), below=(twin,)).judge("desk", ORDERS, "refund", {}).action == "ask"


@pytest.mark.parametrize(
    ("node", "server", "tool"),
    [
        ("nobody", ORDERS, "get_order"),
        ("desk", "shop/other", "get_order"),
        ("desk", "", "get_order"),
        ("desk", ORDERS, None),
        ("desk", ORDERS, 7),
        (["desk"], ORDERS, "get_order"),
        ("desk", None, "get_order"),
        ({}, {}, {}),
    ],
)
def test_what_nobody_knows_or_can_judge_asks(node: Any, server: Any, tool: Any) -> None:
    judged = gate(orders("refund")).judge(node, server, tool, {})
    assert (judged.action, judged.gated_by) == ("ask", ("Agent shop/desk",))


@given(st.text(), st.text(), st.text())
def test_whatever_names_a_model_makes_up_it_gets_an_answer_and_never_a_yes(node: str, server: str, tool: str) -> None:
    judged = gate(orders("refund", names=("refund",))).judge(node, server, tool, {})
    assert judged.action == "ask"


def test_entries_that_match_nothing_are_reported() -> None:
    tools = gate(orders("refund", "refnud", "cancel_*", names=("refund", "get_*", "drop_*")), orders("x", server=STOCK))
    offered = {ORDERS: ["refund", "get_order", "cancel_order"], STOCK: ["x"]}
    assert tools.unmatched(offered) == [
        Entry("desk", ORDERS, "toolNames", "drop_*"),
        Entry("desk", ORDERS, "requireApproval", "refnud"),
        Entry("desk", ORDERS, "requireApproval", "cancel_*"),
    ]


def test_a_star_matches_nothing_only_where_nothing_is_offered() -> None:
    assert gate(orders("*")).unmatched({ORDERS: ["a"]}) == []
    assert [entry.field for entry in gate(orders("*")).unmatched({ORDERS: []})] == ["toolNames", "requireApproval"]


@pytest.mark.parametrize("offered", [{}, {ORDERS: None}])
def test_nothing_is_said_of_a_server_that_is_not_reached_yet(offered: dict[str, None]) -> None:
    assert gate(orders("refnud")).unmatched(offered) == []
    assert gate(orders("refnud")).table(offered) == []


def test_functions_and_agents_always_match_themselves() -> None:
    both = gate(FunctionBinding(ref="a:b", require_approval=True), AgentBinding(name="c*", url="http://s"))
    assert both.unmatched({"function": [], "agent": []}) == []


def test_the_table_shows_every_tool_that_can_be_called_with_its_gate() -> None:
    tools = gate(
        orders("refund", names=("refund", "get_*")),
        FunctionBinding(ref="m:f", require_approval=True),
        AgentBinding(name="shipping", url="http://s"),
    )
    by = "Agent shop/desk"
    assert tools.table({ORDERS: {"refund", "get_order", "drop"}}) == [
        Row("desk", ORDERS, "get_order", "Allow", ""),
        Row("desk", ORDERS, "refund", "RequireApproval", by),
        Row("desk", "function", "m:f", "RequireApproval", by),
        Row("desk", "agent", "shipping", "Allow", ""),
    ]
