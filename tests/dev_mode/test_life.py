"""`sayso dev` from its start to its end: what it writes, what it keeps alive, what it leaves."""

from __future__ import annotations

import json
import signal
import socket
import urllib.request
from pathlib import Path

import psutil
import pytest

from dev_mode.conftest import Start
from dev_mode.local_mode import agent, executed, listed, look_until, sayso, written


def answers(url: str) -> bool:
    """Whether an agent answers there at all."""
    try:
        with urllib.request.urlopen(f"{url}/healthz") as response:
            return bool(response.status == 200)
    except OSError:
        return False


def free_base() -> int:
    """A port with enough free ones after it, as far as one can know."""
    for base in range(21_000, 60_000, 50):
        try:
            for port in (base, base + 1, *range(base + 10, base + 14)):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return base
    raise AssertionError("no free ports")


def test_the_same_call_gives_the_same_endpoints_and_pauses_outlive_the_end(tmp_path: Path, start: Start) -> None:
    file = written(tmp_path, agent())
    first = start(file, "--replicas", "2")
    endpoints = first.ready()
    assert list(endpoints) == ["agents", "redis"]
    assert [len(urls) for urls in endpoints["agents"].values()] == [2]
    assert all(answers(url) for url in endpoints["agents"]["shop/refund-desk"])
    asked = sayso("chat", "refund-desk", "please", "--session", "s1", state=first.state)
    assert asked.returncode == 3, asked.stdout + asked.stderr
    (pending,) = listed(first.state)
    assert first.stop(signal.SIGTERM) == 0
    assert not (first.state / "endpoints.json").exists()
    assert not any(answers(url) for url in endpoints["agents"]["shop/refund-desk"])

    second = start(file, "--replicas", "2")
    assert second.ready() == endpoints
    assert listed(second.state) == [pending]
    assert executed(tmp_path) == []
    approved = sayso("approvals", "approve", pending["id"], state=second.state)
    assert approved.returncode == 0, approved.stderr
    look_until("the refund", lambda: executed(tmp_path))
    look_until("its end on record", lambda: listed(second.state)[0]["execution"] == "succeeded")
    assert [one["tool"] for one in executed(tmp_path)] == ["refund"]


def test_a_port_base_fixes_every_port_in_the_order_of_the_manifests(tmp_path: Path, start: Start) -> None:
    base = free_base()
    dev = start(written(tmp_path, agent("b-desk"), agent("a-desk")), "--port-base", str(base))
    endpoints = dev.ready()
    assert endpoints == {
        "agents": {
            "shop/b-desk": [f"http://127.0.0.1:{base + 10}"],
            "shop/a-desk": [f"http://127.0.0.1:{base + 11}"],
        },
        "redis": f"redis://127.0.0.1:{base + 1}/0",
    }


def test_an_agent_and_a_redis_that_are_killed_come_back_with_the_pause(tmp_path: Path, start: Start) -> None:
    dev = start(written(tmp_path, agent()))
    endpoints = dev.ready()
    assert sayso("chat", "refund-desk", "please", "--session", "s1", state=dev.state).returncode == 3
    (pending,) = listed(dev.state)
    for process in (*dev.children("sayso_runtime"), *dev.children("redis-server")):
        process.kill()
    dev.says("shop/refund-desk#0 died", "SIGKILL")
    dev.says("redis died")
    dev.says("shop/refund-desk#0 is started again")
    dev.says("redis is started again")
    (url,) = endpoints["agents"]["shop/refund-desk"]
    look_until("the agent", lambda: answers(url))
    assert listed(dev.state) == [pending]
    assert sayso("approvals", "approve", pending["id"], state=dev.state).returncode == 0
    look_until("the refund", lambda: executed(tmp_path))
    assert len(executed(tmp_path)) == 1


def test_a_second_one_on_the_same_state_directory_is_refused_by_the_first_ones_process(
    tmp_path: Path, start: Start
) -> None:
    file = written(tmp_path, agent())
    first = start(file)
    endpoints = first.ready()
    second = start(file)
    assert second.process.wait() == 2
    assert str(first.process.pid) in second.text()
    assert first.ready() == endpoints
    assert first.process.poll() is None


def test_a_kill_of_the_whole_leaves_no_process_behind_and_the_next_start_finds_everything(
    tmp_path: Path, start: Start
) -> None:
    file = written(tmp_path, agent())
    first = start(file)
    endpoints = first.ready()
    assert sayso("chat", "refund-desk", "please", state=first.state).returncode == 3
    (pending,) = listed(first.state)
    children = psutil.Process(first.process.pid).children(recursive=True)
    assert children
    first.stop(signal.SIGKILL)
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []
    assert (first.state / "endpoints.json").exists()
    second = start(file)
    second.says("answers at")
    assert json.loads((second.state / "endpoints.json").read_text()) == endpoints
    assert listed(second.state) == [pending]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_can_be_ended_while_it_still_starts(tmp_path: Path, start: Start, number: signal.Signals) -> None:
    dev = start(written(tmp_path, agent()))
    look_until("a first child", lambda: dev.children("sayso_runtime"))
    children = psutil.Process(dev.process.pid).children(recursive=True)
    assert dev.stop(number) == 0
    assert not [process for process in children if process.is_running()]
    assert not (dev.state / "endpoints.json").exists()


def test_the_pauses_of_an_agent_that_left_the_manifests_stay_listed(tmp_path: Path, start: Start) -> None:
    first = start(written(tmp_path, agent("old-desk")))
    first.ready()
    assert sayso("chat", "old-desk", "please", state=first.state).returncode == 3
    first.stop()
    second = start(written(tmp_path, agent("new-desk")))
    second.ready()
    (call,) = listed(second.state)
    assert (call["agent"], call["state"]) == ("shop/old-desk", "orphaned")
