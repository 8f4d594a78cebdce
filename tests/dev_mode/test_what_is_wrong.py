"""What is found wrong before anything starts, and what is only said because the rest can go on."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
import yaml

from dev_mode.conftest import Start
from dev_mode.local_mode import Dev, agent, manifest, sayso, written
from sayso_approvals.server import RedisServer, free_port


def refused(dev: Dev) -> str:
    """What it said before it ended with 2, having started nothing."""
    assert dev.process.wait() == 2, dev.text()
    assert not (dev.state / "endpoints.json").exists()
    assert not list(dev.state.glob("redis/*.aof"))
    assert not list(dev.state.glob("logs/*"))
    return dev.text()


def test_faults_in_the_manifests_are_all_named(tmp_path: Path, start: Start) -> None:
    text = refused(start(written(tmp_path, agent(modelConfig="gone"), agent("other", modelConfig="away"))))
    assert "gone" in text
    assert "away" in text


def test_secrets_that_are_missing_are_all_named_with_what_they_are_for(tmp_path: Path, start: Start) -> None:
    reference = {"secretKeyRef": {"name": "orders", "key": "token"}}
    model = {"provider": "OpenAI", "model": "x", "apiKeySecretRef": {"name": "keys", "key": "openai"}}
    server = {"url": "http://127.0.0.1:1/mcp", "headers": [{"name": "Authorization", "valueFrom": reference}]}
    file = tmp_path / "agent.yaml"
    objects = [agent(), manifest("ModelConfig", "default", model), manifest("MCPServer", "orders", server)]
    file.write_text(yaml.safe_dump_all(objects))
    text = refused(start(str(file), env={"OPENAI_API_KEY": ""}))
    assert "SAYSO_SECRET_KEYS_OPENAI" in text
    assert "SAYSO_SECRET_ORDERS_TOKEN" in text
    assert "MCPServer shop/orders" in text


def test_manifests_without_an_agent_are_refused(tmp_path: Path, start: Start) -> None:
    assert "no Agent" in refused(start(written(tmp_path)))


def test_ports_that_are_taken_are_named(tmp_path: Path, start: Start) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        base = port - 10
        text = refused(start(written(tmp_path, agent()), "--port-base", str(base)))
    assert f"{port} (shop/refund-desk#0)" in text


def test_a_redis_url_that_is_none_is_refused(tmp_path: Path, start: Start) -> None:
    assert "--redis-url" in refused(start(written(tmp_path, agent()), "--redis-url", "http://127.0.0.1"))


def test_a_redis_that_does_not_answer_ends_it_with_a_message(tmp_path: Path, start: Start) -> None:
    dev = start(written(tmp_path, agent()), "--redis-url", "redis://127.0.0.1:1/0")
    assert dev.process.wait() == 1
    assert "does not answer" in dev.text()
    assert "Traceback" not in dev.text()


def test_a_configuration_that_can_never_work_ends_it_and_nothing_stays(tmp_path: Path, start: Start) -> None:
    tools = [{"function": {"ref": "no_such_module:send_voucher"}}]
    dev = start(written(tmp_path, agent(), agent("other", tools=tools)))
    assert dev.process.wait() == 2
    assert "no_such_module" in dev.text()
    assert "shop/other#0 cannot work" in dev.text()
    assert not (dev.state / "endpoints.json").exists()


def test_a_tool_server_that_is_away_is_named_and_the_rest_goes_on(tmp_path: Path, start: Start) -> None:
    dev = start(written(tmp_path, agent(), url="http://127.0.0.1:1/mcp", turns=[{"text": "Hello."}]))
    endpoints = dev.ready()
    assert list(endpoints["agents"]) == ["shop/refund-desk"]
    dev.says("shop/refund-desk#0 is not ready", "shop/orders")
    found = sayso("chat", "refund-desk", "hi", state=dev.state)
    assert (found.returncode, found.stdout.strip()) == (0, "Hello."), found.stderr


def test_a_gate_entry_that_matches_nothing_is_a_warning_by_name(tmp_path: Path, start: Start) -> None:
    dev = start(written(tmp_path, agent(gates=["refund", "refnud_*"])))
    dev.ready()
    assert "warning" in dev.says("refnud_*")


@pytest.fixture
async def forgetful(tmp_path: Path) -> RedisServer:
    """A Redis that writes to disk once a second."""
    return RedisServer(tmp_path / "forgetful", port=free_port(), fsync="everysec")


async def test_a_redis_that_would_forget_is_a_warning_by_name(
    tmp_path: Path, start: Start, forgetful: RedisServer
) -> None:
    await forgetful.start()
    try:
        dev = start(written(tmp_path, agent()), "--redis-url", forgetful.url)
        assert dev.ready()["redis"] == forgetful.url
        assert "warning" in dev.says("FsyncNotAlways")
        assert not dev.children("redis-server")
        dev.stop()
    finally:
        await forgetful.stop()


def test_an_agent_gets_its_own_secrets_only(tmp_path: Path, start: Start) -> None:
    env = {"SAYSO_SECRET_OTHERS_TOKEN": "of another", "COUNTING_FILE": str(tmp_path / "calls.jsonl")}
    dev = start(written(tmp_path, agent()), env=env)
    dev.ready()
    (process,) = dev.children("sayso_runtime")
    assert "SAYSO_SECRET_OTHERS_TOKEN" not in process.environ()
    assert process.environ()["PATH"] == os.environ["PATH"]
