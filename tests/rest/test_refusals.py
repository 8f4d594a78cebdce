"""Whatever is wrong, late, foreign or half is refused with a code and the ids, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from redis.asyncio import Redis

from sayso_runtime.interfaces.identity import loopback_user
from support.agents import call, calls, says
from support.desks import Desk, approved, denied, serving

MALFORMED: dict[str, tuple[Any, list[str]]] = {
    "no decision": ({"decisions": []}, ["decisions"]),
    "no list": ({"decisions": {"c1": "approved"}}, ["decisions"]),
    "no resume": ("approved", ["resume"]),
    "a null status": ({"decisions": [{"id": "c1", "status": None}]}, ["c1"]),
    "no status": ({"decisions": [{"id": "c1"}]}, ["c1"]),
    "a message is no status": ({"decisions": [{"id": "c1", "message": "approved"}]}, ["c1"]),
    "a payload is no status": ({"decisions": [{"id": "c1", "payload": {"approved": True}}]}, ["c1"]),
    "an unknown word": ({"decisions": [{"id": "c1", "status": "approve"}]}, ["c1"]),
    "a boolean": ({"decisions": [{"id": "c1", "status": True}]}, ["c1"]),
    "another case": ({"decisions": [{"id": "c1", "status": "Approved"}]}, ["c1"]),
    "a list": ({"decisions": [{"id": "c1", "status": ["approved"]}]}, ["c1"]),
    "twice": ({"decisions": [approved("c1"), denied("c1")]}, ["c1"]),
    "twice the same": ({"decisions": [approved("c2"), approved("c1"), approved("c1")]}, ["c1"]),
    "an unknown member": ({"decisions": [{"id": "c1", "status": "approved", "reson": "x"}]}, ["c1"]),
    "no id": ({"decisions": [{"status": "approved"}]}, []),
    "an id that is no text": ({"decisions": [{"id": 1, "status": "approved"}]}, []),
    "a message that is no text": ({"decisions": [{"id": "c1", "status": "denied", "message": 5}]}, ["c1"]),
    "edited arguments": ({"decisions": [approved("c1", payload={"order": "B"})]}, ["c1"]),
    "a run id that is no text": ({"run_id": 7, "decisions": [approved("c1")]}, ["run_id"]),
}


@pytest.mark.parametrize("resume", MALFORMED.values(), ids=MALFORMED)
async def test_a_malformed_decision_is_422_with_the_ids_and_decides_nothing(desk: Desk, resume: Any) -> None:
    body, ids = resume
    await desk.chat("go")
    answer = await desk.chat(resume=body)
    assert (answer.status_code, answer.json()["code"], answer.json()["ids"]) == (422, "malformed_decision", ids)
    assert answer.headers["content-type"] == "application/problem+json"
    assert desk.ran() == ["look"]
    assert (await desk.resume(approved("c1"), approved("c2"))).status_code == 200


async def test_an_unknown_id_refuses_the_known_ones_beside_it(desk: Desk) -> None:
    await desk.chat("go")
    answer = await desk.resume(approved("c1"), approved("nobody"))
    assert (answer.status_code, answer.json()["code"], answer.json()["ids"]) == (422, "unknown_call", ["nobody"])
    assert desk.ran() == ["look"]


@pytest.mark.parametrize(
    "body", ['{"id":"c1","status":"denied","status":"approved"}', '{"id":"c2","id":"c1","status":"approved"}']
)
async def test_a_decision_that_names_a_member_twice_is_refused(desk: Desk, body: str) -> None:
    await desk.chat("go")
    raw = f'{{"session_id":"s1","resume":{{"decisions":[{body}]}}}}'
    answer = await desk.door.http.post(
        desk.door.url + "api/v1/chat", content=raw, headers={"content-type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "malformed_decision")
    assert desk.ran() == ["look"]


async def test_a_prompt_beside_resume_is_refused(desk: Desk) -> None:
    await desk.chat("go")
    answer = await desk.chat("Approved", resume={"decisions": [approved("c1")]})
    assert (answer.status_code, answer.json()["code"]) == (422, "malformed_decision")
    assert (desk.seen.models, desk.ran()) == (1, ["look"])


async def test_a_resume_for_an_unknown_session_is_404_and_makes_no_key(redis: Redis) -> None:
    async with serving(Desk(redis, [says("Hello.")])) as desk:
        before = await redis.keys("*")
        for run_id in (None, "0" * 32, "nonsense", "-"):
            answer = await desk.resume(approved("c1"), run_id=run_id)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert await redis.keys("*") == before


async def test_an_unknown_run_id_is_404_and_so_is_one_of_another_session(desk: Desk) -> None:
    paused = (await desk.chat("go")).json()
    other = (await desk.chat("go", session_id="s2")).json()
    for run_id in ("nonsense", paused["run_id"] + "0", paused["run_id"].partition("-")[0] + "-0", other["run_id"]):
        answer = await desk.resume(approved("c1"), run_id=run_id)
        assert (answer.status_code, answer.json()["code"], answer.json()["ids"]) == (404, "not_found", [run_id])
    assert desk.ran() == ["look", "look"]


async def test_a_prompt_while_paused_is_409_with_what_waits_and_no_model_call(desk: Desk) -> None:
    paused = (await desk.chat("go")).json()
    answer = await desk.chat("Approved. Yes, do it.")
    body = answer.json()
    assert (answer.status_code, body["code"], body["ids"]) == (409, "paused", ["c1", "c2"])
    assert body["interruptions"] == paused["interruptions"]
    assert (body["run_id"], body["session_id"]) == (paused["run_id"], "s1")
    streamed = await desk.chat("Approved.", stream=True)
    assert (streamed.status_code, streamed.json()["code"]) == (409, "paused")
    assert (desk.seen.models, desk.ran()) == (1, ["look"])


async def test_a_late_decision_hears_who_decided_what_and_when(desk: Desk) -> None:
    run_id = (await desk.chat("go")).json()["run_id"]
    await desk.resume(denied("c1", message="no"), run_id=run_id)
    for session_open in (True, False):
        late = await desk.resume(approved("c1"), run_id=run_id)
        body = late.json()
        assert (late.status_code, body["code"], body["ids"]) == (409, "already_decided", ["c1"])
        assert (body["decidedBy"], body["verdict"], body["reason"]) == ("ada", "rejected", "no")
        assert body["decidedAt"].endswith("Z")
        if session_open:
            await desk.resume(approved("c2"), run_id=run_id)
    assert desk.ran() == ["look", "cancel"]


async def test_a_decision_after_the_time_was_over_is_410_expired(redis: Redis) -> None:
    async with serving(Desk(redis, [calls(call("refund", "c1")), says("Over.")], timeout=0.001)) as desk:
        run_id = (await desk.chat("go")).json()["run_id"]
        late = await desk.resume(approved("c1"), run_id=run_id)
        assert (late.status_code, late.json()["code"], late.json()["verdict"]) == (410, "expired", "expired")
        assert desk.ran() == []


async def test_a_decision_about_what_a_newer_message_replaced_is_410_superseded(redis: Redis) -> None:
    script = [calls(call("refund", "c1")), says("First."), says("Second.")]
    async with serving(Desk(redis, script, while_paused="CancelPause")) as desk:
        run_id = (await desk.chat("go")).json()["run_id"]
        assert (await desk.chat("something else")).status_code == 200
        late = await desk.resume(approved("c1"), run_id=run_id)
        assert (late.status_code, late.json()["code"]) == (410, "superseded")
        assert desk.ran() == []


async def test_a_decision_about_what_was_cancelled_is_410_cancelled(redis: Redis) -> None:
    async with serving(Desk(redis, [calls(call("refund", "c1")), says("Never mind.")])) as desk:
        run_id = (await desk.chat("go")).json()["run_id"]
        await desk.resume({"id": "c1", "status": "cancelled"})
        late = await desk.resume(approved("c1"), run_id=run_id)
        assert (late.status_code, late.json()["code"], late.json()["decidedBy"]) == (410, "cancelled", "ada")


@pytest.mark.parametrize("name", ["refund-desk", "shop/refund-desk", None])
async def test_the_agent_is_named_by_either_name_or_not_at_all(redis: Redis, name: str | None) -> None:
    async with serving(Desk(redis, [says("Hello.")])) as desk:
        assert (await desk.chat("hi", agent=name)).status_code == 200


@pytest.mark.parametrize("name", ["other", "other/refund-desk", "refund_desk", "shop/", ""])
async def test_another_agents_name_is_404_and_nothing_is_said(redis: Redis, name: str) -> None:
    async with serving(Desk(redis, [says("Hello.")])) as desk:
        answer = await desk.chat("hi", agent=name)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert desk.seen.models == 0


async def test_another_callers_session_and_run_do_not_exist(redis: Redis) -> None:
    from support.serving import running

    script = [calls(call("refund", "c1")), says("Done.")]
    async with serving(Desk(redis, script)) as desk:
        run_id = (await desk.chat("go")).json()["run_id"]
        async with running(desk.replica.service, identify=loopback_user("mallory")) as door:
            desk.door = door
            for answer in (
                await desk.resume(approved("c1"), run_id=run_id),
                await desk.resume(approved("c1")),
                await desk.chat("hello"),
                await desk.get(f"api/v1/runs/{run_id}"),
            ):
                assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
            assert (await desk.get("api/v1/pauses")).json() == {"pauses": []}
    assert desk.ran() == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        "prompt",
        5,
        {"prompt": ""},
        {"prompt": " \n"},
        {"prompt": 5},
        {"prompt": "x", "session_id": ""},
        {"prompt": "x", "session_id": "s" * 257},
        {"prompt": "x", "session_id": "a\nb"},
        {"prompt": "x", "stream": "yes"},
        {"prompt": "x", "agent": 5},
    ],
)
async def test_a_malformed_message_is_422_with_a_code(redis: Redis, body: Any) -> None:
    async with serving(Desk(redis, [says("Hello.")])) as desk:
        answer = await desk.post("api/v1/chat", body)
        assert (answer.status_code, answer.json()["code"]) == (422, "malformed_request")
        assert desk.seen.models == 0


async def test_what_a_client_sends_beside_a_prompt_is_passed_over(redis: Redis) -> None:
    async with serving(Desk(redis, [says("Hello.")])) as desk:
        answer = await desk.chat("hi", customer={"id": 7}, agent=None, resume=None, stream=None)
        assert answer.status_code == 200
