"""`sayso validate`: every fault in one message, from files alone and from the servers themselves."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from cli.running import sayso, sayso_apart

SERVER = Path(__file__).parent.parent / "support" / "counting_server.py"


def agent(tools: list[str], gates: list[str], name: str = "refund-desk", model: str = "default") -> dict[str, object]:
    """An Agent with tools of one server."""
    binding = {"name": "orders", "toolNames": tools, "requireApproval": gates}
    spec = {"instruction": "Help.", "modelConfig": model, "tools": [{"mcpServer": binding}]}
    return manifest("Agent", name, spec)


def manifest(kind: str, name: str, spec: dict[str, object]) -> dict[str, object]:
    """One object."""
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "sayso.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def written(folder: Path, *objects: dict[str, object]) -> str:
    """A file with these objects, a model, and a server that is started by whoever uses it."""
    turns: dict[str, object] = {"provider": "Scripted", "scripted": {"turns": [{"text": "Hello."}]}}
    server: dict[str, object] = {
        "command": [sys.executable, str(SERVER), "--transport", "stdio"],
        "env": [{"name": "COUNTING_FILE", "value": str(folder / "calls")}],
    }
    common = [manifest("ModelConfig", "default", turns), manifest("MCPServer", "orders", server)]
    file = folder / "agent.yaml"
    file.write_text(yaml.safe_dump_all([*objects, *common]))
    return str(file)


def test_manifests_without_fault_are_counted(tmp_path: Path) -> None:
    found = sayso("validate", written(tmp_path, agent(["refund"], ["refund"])))
    assert (found.code, found.out) == (0, "1 Agent, 1 ModelConfig, 1 MCPServer: no faults\n")


def test_all_faults_come_in_one_message(tmp_path: Path) -> None:
    one, two = agent(["refund"], [], model="no-such"), agent(["refund"], [], name="other", model="nor-this")
    found = sayso("validate", written(tmp_path, one, two))
    assert found.code == 2
    assert found.out == ""
    assert "2 faults" in found.err
    assert "no-such" in found.err
    assert "nor-this" in found.err


def test_a_gate_outside_of_the_given_tools_is_a_fault(tmp_path: Path) -> None:
    found = sayso("validate", written(tmp_path, agent(["get_order"], ["refnd"])), "-o", "json")
    assert found.code == 2
    assert found.json["valid"] is False
    (fault,) = found.json["faults"]
    assert fault["path"] == "spec.tools[0].mcpServer.requireApproval[0]"
    assert "refnd" in fault["found"]


def test_a_file_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    found = sayso("validate", str(tmp_path / "nothing.yaml"))
    assert found.code == 2
    assert "nothing.yaml" in found.err


def test_nothing_in_a_file_acts_on_the_terminal(tmp_path: Path) -> None:
    found = sayso("validate", written(tmp_path, agent(["refund"], [], model="a\x1b[2Jb")))
    assert found.code == 2
    assert "\x1b" not in found.err


def test_online_the_servers_say_whether_every_entry_matches(tmp_path: Path) -> None:
    file = written(tmp_path, agent(["get_order", "cancel_*"], ["cancel_*"]))
    found = sayso_apart("validate", file, "--online")
    assert found.code == 0, found.err
    assert "every name is offered" in found.out


def test_online_an_entry_that_matches_nothing_is_a_fault_with_its_place(tmp_path: Path) -> None:
    file = written(tmp_path, agent(["get_order", "canzel_*", "refund"], ["refund", "canzel_*"]))
    assert sayso("validate", file).code == 0
    found = sayso_apart("validate", file, "--online", "-o", "json")
    assert found.code == 2
    paths = [fault["path"] for fault in found.json["faults"]]
    assert paths == ["spec.tools[0].mcpServer.toolNames[1]", "spec.tools[0].mcpServer.requireApproval[1]"]


def test_online_a_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    file = Path(written(tmp_path, agent(["refund"], ["refund"])))
    file.write_text(file.read_text().replace(str(SERVER), str(SERVER.with_name("not_there.py"))))
    found = sayso_apart("validate", str(file), "--online")
    assert found.code == 2
    assert "shop/orders" in found.err
