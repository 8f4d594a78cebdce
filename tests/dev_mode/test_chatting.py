"""`sayso chat`: a pause in the terminal, decided by a person who sees what it is about, and by nobody else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dev_mode.conftest import Start
from dev_mode.local_mode import Dev, agent, call, executed, listed, look_until, manifest, sayso, written
from dev_mode.terminal import Terminal

EVIL = "\x1b[2J\x1b[1;1H\u202e"
DIRTY = f"A-2{EVIL}\r\nhidden"
TWO = {"calls": [call("refund", "c1", order_id="A-1", amount=20), call("cancel_order", "c2", order_id=DIRTY)]}


def talks(name: str, *turns: dict[str, Any]) -> list[dict[str, Any]]:
    """An agent with a scripted model of its own."""
    model = {"provider": "Scripted", "scripted": {"turns": list(turns)}}
    return [agent(name, modelConfig=name), manifest("ModelConfig", name, model)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where everything of this module is."""
    return tmp_path_factory.mktemp("chat")


@pytest.fixture(scope="module")
def dev(folder: Path) -> Iterator[Dev]:
    """One `sayso dev` with a desk for each kind of conversation."""
    look = {"calls": [call("get_order", "c0", order_id="A-1")]}
    refund = {"calls": [call("refund", "c1", order_id="A-1", amount=20)]}
    database = {"question": "Which database?", "choices": ["PostgreSQL", "SQLite"]}
    extras = {"question": "What else?", "choices": ["backups", "replicas"], "multiple": True}
    ask = {
        "calls": [call("ask_user", "q1", questions=[database, extras, {"question": EVIL + "Who?"}]), *refund["calls"]]
    }
    objects = [
        *talks("asking-desk", ask),
        *talks("one-desk", look, refund, {"text": "That is all."}),
        *talks("two-desk", TWO, {"text": f"Both are settled.{EVIL}"}),
        *talks("broken-desk", {"fail": "503 overloaded", "failTimes": 9}),
    ]
    dev = Dev(folder, written(folder, *objects))
    dev.ready()
    yield dev
    dev.stop()


def chat(dev: Dev, *arguments: str) -> Terminal:
    """`sayso chat` on a terminal."""
    return Terminal([sys.executable, "-m", "sayso_cli.main", "chat", *arguments, "--state-dir", str(dev.state)])


def ran(folder: Path, order: str) -> list[str]:
    """The tools that were called with this order."""
    return [one["tool"] for one in executed(folder) if one["args"].get("order_id") == order]


def of(dev: Dev, session: str) -> list[dict[str, Any]]:
    """The calls of one session."""
    return [one for one in listed(dev.state) if one["session"] == session]


def test_a_pause_shows_what_it_is_about_and_an_approval_runs_it(dev: Dev, folder: Path) -> None:
    before = ran(folder, "A-1").count("refund")
    with chat(dev, "one-desk", "my money back", "--session", "approve") as terminal:
        terminal.sees("→ get_order")
        terminal.sees("refund wants your say-so")
        terminal.sees("shop/orders")
        terminal.sees('"amount": 20')
        terminal.sees("[l] later > ")
        assert ran(folder, "A-1").count("refund") == before
        terminal.types("a")
        terminal.sees("That is all.")
        assert terminal.ends() == 0
    assert ran(folder, "A-1").count("refund") == before + 1
    assert [one["state"] for one in of(dev, "approve")] == ["approved"]


def test_a_rejection_asks_for_its_reason_and_runs_nothing(dev: Dev, folder: Path) -> None:
    before = ran(folder, "A-1").count("refund")
    with chat(dev, "one-desk", "my money back", "--session", "reject") as terminal:
        terminal.sees("[l] later > ")
        terminal.types("maybe")
        terminal.sees("Please type a, r or l.")
        terminal.types("r")
        terminal.sees("reason")
        terminal.types("no receipt")
        terminal.sees("no receipt")
        assert terminal.ends() == 0
    assert ran(folder, "A-1").count("refund") == before
    (one,) = of(dev, "reject")
    assert (one["state"], one["execution"]) == ("rejected", "not_started")


def test_later_leaves_one_call_pending_and_decides_the_other(dev: Dev, folder: Path) -> None:
    with chat(dev, "two-desk", "both", "--session", "later") as terminal:
        terminal.sees("refund: [a]")
        terminal.types("l")
        terminal.sees("cancel_order: [a]")
        terminal.types("a")
        terminal.sees("Left pending")
        assert terminal.ends() == 3
    assert ran(folder, DIRTY) == ["cancel_order"]
    states = {one["tool"]: one["state"] for one in of(dev, "later")}
    assert states == {"refund": "pending", "cancel_order": "approved"}


def test_no_more_input_decides_nothing(dev: Dev) -> None:
    with chat(dev, "two-desk", "both", "--session", "silent") as terminal:
        terminal.sees("refund: [a]")
        terminal.presses(b"\x04")
        assert terminal.ends() == 3
    assert {one["state"] for one in of(dev, "silent")} == {"pending"}


def test_a_rejection_that_is_broken_off_is_none(dev: Dev) -> None:
    with chat(dev, "one-desk", "x", "--session", "broken-off") as terminal:
        terminal.sees("[l] later > ")
        terminal.types("r")
        terminal.sees("reason")
        terminal.presses(b"\x04")
        assert terminal.ends() == 3
    assert [one["state"] for one in of(dev, "broken-off")] == ["pending"]


def test_ctrl_c_leaves_the_pause_where_it_is(dev: Dev) -> None:
    with chat(dev, "one-desk", "x", "--session", "ctrl-c") as terminal:
        terminal.sees("[l] later > ")
        assert terminal.interrupts() == 130
        assert "Traceback" not in terminal.text
    assert [one["state"] for one in of(dev, "ctrl-c")] == ["pending"]


def test_a_conversation_goes_on_after_a_pause_was_put_off(dev: Dev) -> None:
    with chat(dev, "one-desk", "--session", "talk") as terminal:
        terminal.sees("you > ")
        terminal.types("my money back")
        terminal.sees("[l] later > ")
        terminal.types("l")
        terminal.sees("you > ")
        terminal.types("and now?")
        terminal.sees("refund wants your say-so")
        terminal.sees("[l] later > ")
        terminal.types("a")
        terminal.sees("That is all.")
        terminal.sees("you > ")
        terminal.presses(b"\x04")
        assert terminal.ends() == 0


def test_nothing_that_a_model_wrote_moves_the_cursor(dev: Dev) -> None:
    with chat(dev, "two-desk", "x", "--session", "dirty") as terminal:
        terminal.sees("\\u001b[2J")
        for _ in range(2):
            terminal.sees("[l] later > ")
            terminal.types("a")
        terminal.sees("Both are settled.")
        assert terminal.ends() == 0
        assert not {"\x1b", "\u202e"} & set(terminal.text)
        assert "hidden" not in [line.strip() for line in terminal.text.splitlines()]


def test_questions_are_put_one_by_one_beside_a_call_that_waits(dev: Dev) -> None:
    with chat(dev, "asking-desk", "set it up", "--session", "asked") as terminal:
        terminal.sees("The agent asks you")
        terminal.sees("refund wants your say-so")
        terminal.sees("[a] answer  [r] decline  [l] later > ")
        terminal.types("a")
        terminal.sees("Which database?")
        terminal.sees("2  SQLite")
        terminal.sees("answer (number or your own words) > ")
        terminal.types(" ")
        terminal.sees("Please type an answer")
        terminal.types("2")
        terminal.sees("several separated by commas) > ")
        terminal.types("1, and a monitor")
        terminal.sees("Who?")
        terminal.types("the team, all of it")
        terminal.sees("refund: [a]")
        terminal.types("r")
        terminal.types("no receipt")
        terminal.sees('"answer": ["SQLite"]')
        terminal.sees('"answer": ["backups", "and a monitor"]')
        terminal.sees('"answer": ["the team, all of it"]')
        assert terminal.ends() == 0
        assert not {"\x1b", "\u202e"} & set(terminal.text)


def test_answers_that_are_broken_off_are_none(dev: Dev) -> None:
    with chat(dev, "asking-desk", "set it up", "--session", "half-asked") as terminal:
        terminal.sees("[a] answer")
        terminal.types("a")
        terminal.sees("your own words) > ")
        terminal.types("1")
        terminal.sees("separated by commas) > ")
        terminal.presses(b"\x04")
        assert terminal.ends() == 3
    assert {one["state"] for one in of(dev, "half-asked")} == {"pending"}


def test_without_a_terminal_it_decides_nothing_and_says_how_to(dev: Dev) -> None:
    found = sayso("chat", "shop/two-desk", "both", "--session", "no-terminal", state=dev.state, stdin="a\na\n")
    assert found.returncode == 3
    for one in of(dev, "no-terminal"):
        assert one["state"] == "pending"
        assert f"sayso approvals approve {one['id']}" in found.stdout


def test_text_can_come_from_standard_input(dev: Dev) -> None:
    found = sayso("chat", "two-desk", "--session", "piped", state=dev.state, stdin="both\n")
    assert found.returncode == 3
    assert len(of(dev, "piped")) == 2


def test_a_model_that_fails_is_a_message_and_not_a_traceback(dev: Dev) -> None:
    found = sayso("chat", "broken-desk", "hello", state=dev.state)
    assert found.returncode == 1
    assert "503 overloaded" in found.stdout + found.stderr
    assert "Traceback" not in found.stdout + found.stderr


def test_an_agent_that_is_not_there_is_refused_with_those_that_are(dev: Dev) -> None:
    found = sayso("chat", "no-desk", "hello", state=dev.state)
    assert found.returncode == 2
    assert "shop/one-desk" in found.stderr


def test_without_a_sayso_dev_it_says_so(tmp_path: Path) -> None:
    found = sayso("chat", "one-desk", "hello", state=tmp_path)
    assert found.returncode == 1
    assert "sayso dev" in found.stderr


def test_a_replica_that_is_down_is_passed_over(tmp_path: Path, start: Start) -> None:
    own = start(written(tmp_path, agent(), turns=[{"text": "Hello."}]), "--replicas", "2")
    endpoints = own.ready()
    port = endpoints["agents"]["shop/refund-desk"][0].rpartition(":")[2]
    first = next(child for child in own.children("sayso_runtime") if port in child.cmdline())
    first.kill()
    found = sayso("chat", "refund-desk", "hi", state=own.state)
    assert (found.returncode, found.stdout.strip()) == (0, "Hello."), found.stderr
    look_until("its return", lambda: "#0 is started again" in own.text())
