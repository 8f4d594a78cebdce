"""The pages beside the protocol: the card, health, readiness and metrics."""

from __future__ import annotations

from typing import Any

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.compat.v0_3.types import AgentCard as AgentCard03

from sayso_api.runtimeconfig import AgentIdentity, AgentNode, ModelSettings, RuntimeConfig, Skill
from sayso_runtime.interfaces.a2a.card import agent_card, valid_host


@pytest.mark.parametrize("path", [".well-known/agent-card.json", ".well-known/agent.json"])
async def test_the_card_follows_the_requests_host_and_reads_in_both_generations(door: Any, path: str) -> None:
    for host in (f"localhost:{door.port}", "refund-desk.shop:8080", "[::1]:8080"):
        response = await door.http.get(door.url + path, headers={"host": host})
        card = response.json()
        assert card["url"] == f"http://{host}/"
        old = AgentCard03.model_validate(card)
        assert (old.url, old.protocol_version, old.preferred_transport) == (card["url"], "0.3.0", "JSONRPC")
        assert old.capabilities.streaming
        assert old.skills[0].tags
        new = parse_agent_card(card)
        offered = [(item.url, item.protocol_binding, item.protocol_version) for item in new.supported_interfaces]
        assert offered == [(f"http://{host}/", "JSONRPC", "1.0"), (f"http://{host}/", "JSONRPC", "0.3")]
        assert new.capabilities.streaming
        assert new.name == "refund-desk"


@pytest.mark.parametrize("host", ["a b", 'x"y', "x/y", "http://x", "x:y", "", "x\\y", "a..b", "x:123456", "[::1", "ü"])
def test_a_host_that_could_be_read_otherwise_does_not_get_into_a_card(host: str) -> None:
    assert not valid_host(host)


async def test_a_card_for_a_strange_host_is_refused(door: Any) -> None:
    response = await door.http.get(f"{door.url}.well-known/agent-card.json", headers={"host": "evil.example/path"})
    assert response.status_code == 400


def test_the_configured_skills_replace_the_default_one() -> None:
    config = RuntimeConfig(
        agent=AgentIdentity(namespace="shop", name="desk"),
        root=AgentNode(name="desk", instruction="Help."),
        model=ModelSettings(provider="Scripted"),
        skills=(Skill(id="refunds", name="Refunds", tags=("shop",), examples=("Refund A-1",)),),
    )
    card = agent_card(config, scheme="https", host="x", version="1")
    assert card["skills"] == [
        {"id": "refunds", "name": "Refunds", "description": "Refunds", "tags": ["shop"], "examples": ["Refund A-1"]}
    ]
    assert card["url"] == "https://x/"


async def test_ready_says_why_not(door: Any) -> None:
    assert (await door.http.get(f"{door.url}readyz")).status_code == 200
    door.service.reasons = ["tool server shop/orders: connection refused"]
    response = await door.http.get(f"{door.url}readyz")
    assert response.status_code == 503
    assert response.json() == {"ready": False, "reasons": ["tool server shop/orders: connection refused"]}
    assert (await door.http.get(f"{door.url}healthz")).status_code == 200


async def test_metrics_are_prometheus_text_under_the_documented_names(door: Any) -> None:
    door.metrics.model_called()
    door.metrics.tool_executed("shop/orders", "refund", "success")
    door.metrics.pauses_open(2)
    door.metrics.decided("approved")
    door.metrics.refused("busy")
    door.metrics.gate_entries_unmatched(1)
    door.metrics.observe("pause", 0.2)
    door.metrics.observe("resume", 0.3)
    response = await door.http.get(f"{door.url}metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = response.text.splitlines()
    for line in (
        "sayso_model_calls_total 1.0",
        'sayso_tool_executions_total{outcome="success",server="shop/orders",tool="refund"} 1.0',
        "sayso_pauses_open 2.0",
        'sayso_decisions_total{verdict="approved"} 1.0',
        'sayso_refusals_total{code="busy"} 1.0',
        "sayso_gate_entries_unmatched 1.0",
        "sayso_pause_seconds_count 1.0",
        "sayso_resume_seconds_sum 0.3",
    ):
        assert line in lines


async def test_other_paths_and_methods_are_problems(door: Any) -> None:
    missing = await door.http.get(f"{door.url}nope")
    assert (missing.status_code, missing.headers["content-type"]) == (404, "application/problem+json")
    wrong = await door.http.get(door.url)
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    head = await door.http.head(f"{door.url}healthz")
    assert (head.status_code, head.content) == (200, b"")
