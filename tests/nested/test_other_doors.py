"""Nested pauses through the other doors, in the terminal's listing, and as text that streams."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from sayso_api.runtimeconfig import AgentBinding, ScriptedTurn
from sayso_approvals.records import Verdict
from sayso_cli.approvals.deciding import passed_on
from sayso_cli.approvals.rows import Row
from support import a2a03
from support.a2a03 import Json, reply
from support.agents import call, calls
from support.family import Family, Member, family
from support.odd_agent import events, odd_agent, task, text

REFUND = calls(call("refund", "k1", order="A-1"), call("wipe", "k2", order="A-2"))


async def _root(home: Family, *turns: ScriptedTurn) -> Member:
    await home.add("child", *(turns or (REFUND,)))
    return await home.add("root", calls(call("shop__NS__child", "p1", request="go")), children=["child"])


async def _chat(root: Member, **body: Any) -> httpx.Response:
    async with httpx.AsyncClient(timeout=60) as http:
        return await http.post(f"{root.url}api/v1/chat", json={"session_id": "s1", **body})


async def test_rest_shows_and_decides_the_calls_behind(redis: Redis) -> None:
    async with family(redis) as home:
        root = await _root(home)
        paused = (await _chat(root, prompt="go")).json()
        shown = [(one["id"], one["kind"], one["tool_name"], one["arguments"]) for one in paused["interruptions"]]
        assert shown == [
            ("k1", "tool_call", "refund", '{"order": "A-1"}'),
            ("k2", "tool_call", "wipe", '{"order": "A-2"}'),
        ]
        no = {"id": "k1", "status": "denied", "message": "not this one"}
        rest = await _chat(root, resume={"run_id": paused["run_id"], "decisions": [no]})
        assert (rest.status_code, [one["id"] for one in rest.json()["interruptions"]]) == (202, ["k2"])
        yes = {"id": "k2", "status": "approved"}
        done = await _chat(root, resume={"run_id": rest.json()["run_id"], "decisions": [yes]})
        assert (done.status_code, home.ran) == (200, [("wipe", "A-2")])
        assert "not this one" in done.json()["result"]


async def test_rest_cancels_what_waits_behind_as_a_whole(redis: Redis) -> None:
    async with family(redis) as home:
        root = await _root(home)
        paused = (await _chat(root, prompt="go")).json()
        both = [{"id": one["id"], "status": "cancelled"} for one in paused["interruptions"]]
        half = await _chat(root, resume={"decisions": both[:1]})
        assert (half.status_code, half.json()["code"]) == (422, "malformed_decision")
        done = await _chat(root, resume={"decisions": both})
        assert (done.status_code, home.ran, await home.members["child"].open()) == (200, [], [])
        assert "Nobody decided" in done.json()["result"]


@pytest.mark.parametrize(("verdict", "runs"), [(Verdict.APPROVED, 2), (Verdict.REJECTED, 0)])
async def test_one_verdict_on_the_command_line_is_for_all_that_waits_behind(
    redis: Redis, verdict: Verdict, runs: int
) -> None:
    async with family(redis) as home:
        root = await _root(home)
        paused = await root.say()
        (view,) = await root.open()
        row = Row(view.pause.agent, view)
        assert (row.document()["kind"], row.document()["expiresAt"]) == ("forward", None)
        recorded, payload = passed_on(row, verdict, "so it is", None)
        await root.decide_aside(recorded, payload=payload)
        done = await root.becomes(paused, "completed")
        assert len(home.ran) == runs
        assert ("so it is" in reply(done)) is (runs == 0)
        assert root.ledger is not None
        (after,) = await root.ledger.view(view.pause.pause_id)
        assert Row(view.pause.agent, after).state == verdict.value


async def test_text_of_a_called_agent_is_passed_on_as_it_comes(redis: Redis) -> None:
    piece: Json = {"kind": "text", "text": "Tidy", "metadata": {"adk_partial": True}}

    def answer(request: Json) -> bytes:
        working = {"kind": "status-update", "taskId": "t1", "contextId": "c9"}
        said = {"state": "working", "message": {"kind": "message", "messageId": "m", "parts": [piece]}}
        ended = task("completed", artifacts=[{"artifactId": "a", "parts": [text("Tidied.")]}])
        return events(request, task("submitted"), working | {"status": said}, ended)

    async with family(redis) as home, odd_agent(answer) as other:
        binding = AgentBinding(name="elsewhere", url=other.url)
        root = await home.add("root", calls(call("elsewhere", "p1", request="go")), more=[binding])
        document = a2a03.message("go", "s1") | {"method": "message/stream"}
        async with httpx.AsyncClient(timeout=60) as http:
            body = (await http.post(root.url, json=document)).text
        heard = [json.loads(line[6:])["result"] for line in body.split("\n") if line.startswith("data: ")]
        updates = [event["status"].get("message", {}) for event in heard if event["kind"] == "status-update"]
        parts = [part for message in updates for part in message.get("parts", [])]
        assert "Tidy" in [part.get("text") for part in parts]
