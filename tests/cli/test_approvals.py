"""`sayso approvals` on a real ledger: what it lists, what it decides, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from redis.asyncio import Redis

from cli.running import Result, sayso_beside
from ledger.desk import Desk
from sayso_approvals.keys import Keys
from sayso_approvals.ledger import Ledger
from sayso_approvals.records import Begin, Kind
from sayso_cli.dev.state import StateDir

ME = pwd.getpwuid(os.getuid()).pw_name
FIELDS = [
    *("id", "agent", "session", "run", "call", "kind", "tool", "server", "arguments", "digest", "state", "execution"),
    *("by", "openedAt", "expiresAt", "path", "requirements"),
]


@pytest.fixture
def state(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[StateDir]:
    """The state directory of a `sayso dev` that knows one agent, found by its variable."""
    state = StateDir(tmp_path / "state")
    state.create()
    state.write_known(["shop/refund-desk"], redis_url)
    monkeypatch.setenv("SAYSO_STATE_DIR", str(state.root))
    return state


@pytest.fixture
def desk(redis: Redis, state: StateDir) -> Desk:
    """The agent's ledger, under the key in the state directory."""
    desk = Desk(redis)
    desk.key = bytes.fromhex(state.ensure_key("shop", "refund-desk").read_text())
    return desk


@pytest.fixture
def ledger(desk: Desk) -> Ledger:
    """One replica."""
    return desk.replica()


async def approvals(*arguments: str) -> Result:
    """Runs a command of `sayso approvals`."""
    return await sayso_beside("approvals", *arguments)


async def listed(*arguments: str) -> list[dict[str, Any]]:
    """What `list -o json` says."""
    found = await approvals("list", "-o", "json", *arguments)
    assert found.code == 0, found.err
    calls: list[dict[str, Any]] = found.json
    return calls


async def doubtful(desk: Desk, redis: Redis, *call_ids: str) -> Ledger:
    """Calls that were started and whose outcome nobody knows."""
    ledger = desk.replica(lease=1.0)
    calls = [desk.call(call_id, timeout_seconds=0.0) for call_id in call_ids or ("c1",)]
    turn, views = await desk.claimed(ledger, *calls)
    for view in views:
        assert (await ledger.begin(turn, view))[0] is Begin.RUN
        await ledger.doubt(turn, view, "the connection was lost")
    await ledger.release(turn)
    return ledger


async def test_a_pending_call_is_listed_with_exactly_these_fields(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    (call,) = await listed()
    assert list(call) == FIELDS
    assert call["agent"] == "shop/refund-desk"
    assert (call["session"], call["run"], call["call"]) == ("s1", "t1", "c1")
    assert (call["kind"], call["tool"], call["server"]) == ("tool_call", "refund", "shop/orders")
    assert call["arguments"] == {"order": "c1"}
    assert call["digest"] == view.call.digest
    assert (call["state"], call["execution"], call["by"]) == ("pending", "not_started", None)
    assert call["path"] == ["shop/refund-desk"]
    assert call["requirements"] == ["Agent shop/refund-desk"]
    assert call["openedAt"] < call["expiresAt"]


async def test_yaml_and_the_tables_show_the_same_calls(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger, desk.call("c1"), desk.call("c2"))
    calls = await listed()
    assert [call["call"] for call in calls] == ["c1", "c2"]
    assert yaml.safe_load((await approvals("list", "-o", "yaml")).out) == calls
    narrow, wide = (await approvals("list")).out, (await approvals("list", "-o", "wide")).out
    for call in calls:
        assert call["id"] in narrow
        assert call["digest"] not in narrow
        assert call["digest"] in wide
    assert "\x1b" not in narrow


async def test_an_approval_is_on_record_with_its_reason_and_the_name_of_the_system(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger)
    (call,) = await listed()
    found = await approvals("approve", call["id"], "--reason", "seen the receipt")
    assert found.code == 0, found.err
    assert "approved" in found.out
    (view,) = await ledger.calls()
    record = view.state.verdict
    assert record is not None
    assert (record.verdict, record.by, record.via, record.reason) == ("approved", ME, "cli", "seen the receipt")
    assert view.intact
    (call,) = await listed()
    assert (call["state"], call["by"]) == ("approved", ME)


async def test_the_name_on_record_is_not_taken_from_the_environment(
    desk: Desk, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    await desk.paused(ledger)
    await approvals("reject", "c1")
    assert (await listed())[0]["by"] == ME


async def test_a_second_decision_is_refused_with_who_and_when(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    await desk.decide(ledger, view, by="ann")
    found = await approvals("reject", "c1")
    assert found.code == 1
    assert "approved" in found.err
    assert "ann" in found.err
    assert "20" in found.err
    assert (await listed())[0]["state"] == "approved"


@pytest.mark.parametrize(("verb", "word"), [("reject", "rejected"), ("cancel", "cancelled")])
async def test_what_is_not_approved_never_runs(desk: Desk, ledger: Ledger, verb: str, word: str) -> None:
    await desk.paused(ledger)
    assert (await approvals(verb, "c1", "--reason", "no")).code == 0
    (call,) = await listed()
    assert (call["state"], call["execution"]) == (word, "not_started")


async def test_several_ids_are_decided_each_for_itself(desk: Desk, ledger: Ledger) -> None:
    views = await desk.paused(ledger, desk.call("c1"), desk.call("c2"), desk.call("c3"))
    await desk.decide(ledger, views[1])
    found = await approvals("approve", "c1", "c2", "c3", "-o", "json")
    assert found.code == 1
    assert [one["result"] for one in found.json] == ["approved", "refused", "approved"]
    assert found.json[1]["code"] == "already_decided"
    assert [call["state"] for call in await listed()] == ["approved"] * 3


async def test_the_summary_counts_what_was_done_and_what_was_refused(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger, desk.call("c1"), desk.call("c2"))
    found = await approvals("approve", "c1", "c2")
    assert found.code == 0
    assert found.out.splitlines()[-1] == "2 done, 0 refused"


async def test_one_unknown_id_means_that_nothing_is_decided(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger)
    found = await approvals("approve", "c1", "no-such-call")
    assert found.code == 2
    assert "no-such-call" in found.err
    assert (await listed())[0]["state"] == "pending"


async def test_a_call_id_of_two_sessions_is_refused_with_both(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger, session="s1")
    await desk.paused(ledger, session="s2")
    found = await approvals("approve", "c1")
    assert found.code == 2
    calls = await listed()
    assert all(call["id"] in found.err for call in calls)
    assert [call["state"] for call in calls] == ["pending", "pending"]


async def test_a_question_for_a_value_is_answered_with_one(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger, desk.call(kind=Kind.INPUT_REQUIRED))
    without = await approvals("approve", "c1")
    assert without.code == 1
    assert "--answer" in without.err
    assert (await approvals("approve", "c1", "--answer", '{"size": 3}')).code == 0
    (view,) = await ledger.calls()
    assert view.state.verdict is not None
    assert json.loads(view.state.verdict.payload) == {"size": 3}
    assert (await listed())[0]["state"] == "approved"


@pytest.mark.parametrize(
    ("answer", "kept"),
    [("SQLite", [["SQLite"]]), ('[["SQLite", "in memory"]]', [["SQLite", "in memory"]])],
)
async def test_a_question_of_an_agent_is_answered_in_words_or_json(
    desk: Desk, ledger: Ledger, answer: str, kept: list[list[str]]
) -> None:
    questions = json.dumps({"questions": [{"question": "Which?", "choices": ["PostgreSQL", "SQLite"]}]})
    await desk.paused(ledger, desk.call(kind=Kind.QUESTION, arguments=questions))
    without = await approvals("approve", "c1")
    assert (without.code, "--answer" in without.err) == (1, True)
    both = await approvals("approve", "c1", "--answer", '[["PostgreSQL", "SQLite"]]')
    assert (both.code, "Which?" in both.err) == (1, True)
    assert (await listed())[0]["state"] == "pending"
    assert (await approvals("approve", "c1", "--answer", answer)).code == 0
    (view,) = await ledger.calls()
    assert view.state.verdict is not None
    assert json.loads(view.state.verdict.payload) == {"ask_user_answers": [{"answer": texts} for texts in kept]}


async def test_a_question_of_an_agent_is_declined(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger, desk.call(kind=Kind.QUESTION, arguments='{"questions":[{"question":"Which?"}]}'))
    assert (await approvals("reject", "c1", "--reason", "ask the team")).code == 0
    assert (await listed())[0]["state"] == "rejected"


async def test_a_value_for_a_yes_or_no_is_refused(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger)
    assert (await approvals("approve", "c1", "--answer", "5")).code == 1
    assert (await listed())[0]["state"] == "pending"


async def test_a_pause_of_an_agent_that_left_the_manifests_is_orphaned_and_can_be_decided(
    desk: Desk, ledger: Ledger, state: StateDir, redis_url: str
) -> None:
    await desk.paused(ledger)
    state.write_known(["shop/another"], redis_url)
    (call,) = await listed()
    assert (call["agent"], call["state"]) == ("shop/refund-desk", "orphaned")
    assert (await approvals("cancel", call["id"])).code == 0
    assert (await listed())[0]["state"] == "cancelled"


async def test_without_the_agents_key_a_record_cannot_be_believed_but_cancelled(
    desk: Desk, ledger: Ledger, state: StateDir
) -> None:
    await desk.paused(ledger)
    state.key_file("shop", "refund-desk").unlink()
    (call,) = await listed()
    assert call["state"] == "integrity"
    found = await approvals("approve", call["id"])
    assert found.code == 1
    assert f"sayso approvals cancel {call['id']}" in found.err
    assert not state.key_file("shop", "refund-desk").exists()


async def test_a_record_that_was_changed_in_redis_shows_as_integrity(desk: Desk, ledger: Ledger, redis: Redis) -> None:
    await desk.paused(ledger)
    key = await desk.live_key()
    for field, value in (await redis.hgetall(key)).items():
        if "order" in value:
            await redis.hset(key, field, value.replace("refund-desk", "refund-dask"))
    assert [call["state"] for call in await listed()] == ["integrity"]


async def test_keys_of_others_in_the_same_redis_are_passed_over(desk: Desk, ledger: Ledger, redis: Redis) -> None:
    await desk.paused(ledger)
    foreign = Keys(desk.agent).prefix.replace("refund-desk", "Not A Name") + "open"
    for key in (foreign, "sayso:{s01}:x", "sayso:{s99}:a/b:open", "other"):
        await redis.set(key, "1")
    assert len(await listed()) == 1


async def test_an_unknown_outcome_is_not_approved_again_but_settled(desk: Desk, redis: Redis) -> None:
    await doubtful(desk, redis)
    (call,) = await listed("--pending")
    assert call["execution"] == "outcome_unknown"
    again = await approvals("approve", call["id"])
    assert again.code == 1
    assert "settle" in again.err
    shown = await approvals("show", call["id"])
    assert "the connection was lost" in shown.out
    assert f"sayso approvals settle {call['id']} --retry" in shown.out


async def test_an_unknown_outcome_is_settled_as_a_person_says(desk: Desk, redis: Redis) -> None:
    ledger = await doubtful(desk, redis, "c1", "c2", "c3")
    for call_id, how in (("c1", ["--result", '{"refunded": 20}']), ("c2", ["--abandon"]), ("c3", ["--retry"])):
        # Refused for as long as the call might still be on its way: said again until that is over.
        while (found := await approvals("settle", call_id, *how)).code == 1:
            assert "still" in found.err, found.err
        assert found.code == 0, found.err
    calls = {call["call"]: call["execution"] for call in await listed()}
    assert calls == {"c1": "succeeded", "c2": "failed", "c3": "not_started"}
    results = {view.call.call_id: view.state.result for view in await ledger.calls(include_done=True)}
    assert json.loads(results["c1"] or "") == {"refunded": 20}


@pytest.mark.parametrize(
    "how", [[], ["--retry", "--abandon"], ["--result", "{not json"], ["--result", '{"a": 1, "a": 2}']]
)
async def test_settling_wants_exactly_one_way_that_makes_sense(desk: Desk, redis: Redis, how: list[str]) -> None:
    await doubtful(desk, redis)
    assert (await approvals("settle", "c1", *how)).code == 2
    assert (await listed())[0]["execution"] == "outcome_unknown"


async def test_a_call_whose_outcome_is_known_cannot_be_settled(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger)
    found = await approvals("settle", "c1", "--abandon")
    assert found.code == 1
    assert "nothing to settle" in found.err


async def test_nothing_in_a_call_acts_on_the_terminal(desk: Desk, ledger: Ledger) -> None:
    evil = "\x1b[2J\x1b[H\u202e"
    call = desk.call(tool=f"re{evil}fund", hint=f"fine{evil}", arguments=json.dumps({"note": evil}))
    await desk.paused(ledger, call)
    for command in (["list"], ["list", "-o", "wide"], ["list", "-o", "json"], ["list", "-o", "yaml"], ["show", "c1"]):
        found = await approvals(*command)
        assert found.code == 0, found.err
        assert not {"\x1b", "\u202e"} & set(found.out)


async def test_watching_shows_each_change_until_it_is_interrupted(desk: Desk, ledger: Ledger) -> None:
    command = ("-m", "sayso_cli.main", "approvals", "list", "--watch", "-o", "yaml")
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        await process.stdout.readuntil(b"---\n[]\n")
        (view,) = await desk.paused(ledger)
        await process.stdout.readuntil(b"state: pending")
        await desk.decide(ledger, view)
        await process.stdout.readuntil(b"state: approved")
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_no_state_directory_is_a_message_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAYSO_STATE_DIR", str(tmp_path / "nothing"))
    found = await approvals("list")
    assert found.code == 1
    assert "sayso dev" in found.err
    assert not (tmp_path / "nothing").exists()


async def test_a_store_that_does_not_answer_is_named(state: StateDir) -> None:
    found = await approvals("list", "--redis-url", "redis://127.0.0.1:1/0")
    assert found.code == 1
    assert "redis://127.0.0.1:1/0" in found.err
