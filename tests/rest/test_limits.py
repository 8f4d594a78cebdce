"""Too large, too deep, too many, too slow or strange: clear errors, nothing lost, and the process goes on."""

from __future__ import annotations

import asyncio
import json

import pytest
from redis.asyncio import Redis

from sayso_runtime.interfaces import asgi
from sayso_runtime.messages import CallPart
from support.agents import call, calls, says
from support.desks import Desk, approved, denied, events, serving
from support.scripted_service import ScriptedService, Turn, ask
from support.serving import running

JSON = {"content-type": "application/json"}
STRANGE = "\u0000\u001b[31m\r\n\n: data\u2028 </script> \U0001f600 \u202e"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "malformed_request"),
        (b"{", 400, "malformed_request"),
        (b'{"prompt": NaN}', 400, "malformed_request"),
        (b'{"prompt": "x", "n": 1e999}', 400, "malformed_request"),
        (b'{"prompt": "\xff"}', 400, "malformed_request"),
        (b'{"prompt": "\\ud800"}', 400, "malformed_request"),
        (b'{"prompt": "x", "deep": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "malformed_request"),
        (b'{"prompt": "no", "prompt": "x"}', 422, "malformed_request"),
        (b" " * (asgi.MAX_BODY + 1), 413, "too_large"),
    ],
    ids=["empty", "cut", "nan", "infinite", "not utf-8", "half a character", "deep", "twice", "large"],
)
async def test_what_cannot_be_read_is_refused_and_the_next_request_works(
    redis: Redis, body: bytes, status: int, code: str
) -> None:
    async with serving(Desk(redis, [says("Hello.")])) as desk:
        url = desk.door.url + "api/v1/chat"
        answer = await desk.door.http.post(url, content=body, headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert answer.headers["content-type"] == "application/problem+json"
        assert (await desk.chat("hi")).status_code == 200
        assert desk.seen.models == 1


async def test_another_content_type_and_a_foreign_page_are_refused(redis: Redis) -> None:
    async with serving(Desk(redis, [says("Hello.")])) as desk:
        url = desk.door.url + "api/v1/chat"
        form = await desk.door.http.post(url, content=b'{"prompt":"x"}', headers={"content-type": "text/plain"})
        assert (form.status_code, form.json()["code"]) == (415, "unsupported_media_type")
        for path in ("api/v1/chat", "api/v1/pauses", "api/v1/runs/x"):
            method = "POST" if path.endswith("chat") else "GET"
            page = await desk.door.http.request(
                method, desk.door.url + path, json={"prompt": "x"}, headers={"origin": "https://evil.example"}
            )
            assert (page.status_code, page.json()["code"]) == (403, "not_identified")
        assert desk.seen.models == 0


async def test_a_body_that_does_not_arrive_is_408(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "BODY_SECONDS", 0.05)
    async with serving(Desk(redis, [says("Hello.")])) as desk:
        reader, writer = await asyncio.open_connection("127.0.0.1", desk.door.port)
        head = "POST /api/v1/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b'"too_slow"' in answer
        writer.close()
        assert (await desk.chat("hi")).status_code == 200


async def test_sixty_four_calls_wait_and_are_decided_each_for_itself(redis: Redis) -> None:
    many = calls(*(call("refund", f"c{n}", order=str(n)) for n in range(64)))
    async with serving(Desk(redis, [many, says("Done.")])) as desk:
        paused = (await desk.chat("go")).json()
        assert [i["id"] for i in paused["interruptions"]] == [f"c{n}" for n in range(64)]
        verdicts = [approved(f"c{n}") if n % 2 else denied(f"c{n}") for n in range(64)]
        done = await desk.resume(*verdicts, run_id=paused["run_id"])
        assert done.status_code == 200
        assert sorted(int(given["order"]) for _, given in desk.seen.runs) == list(range(1, 64, 2))


async def test_a_mebibyte_of_strange_arguments_is_shown_and_run_as_it_is(redis: Redis) -> None:
    order = STRANGE + "ü" * (1024 * 1024)
    async with serving(Desk(redis, [calls(call("refund", "c1", order=order)), says(STRANGE)])) as desk:
        paused = events((await desk.chat("go", stream=True)).text)[-1]
        assert json.loads(paused["interruptions"][0]["arguments"]) == {"order": order}
        done = await desk.resume(approved("c1"), run_id=paused["run_id"])
        assert done.json()["result"] == STRANGE
        assert desk.seen.runs == [("refund", {"order": order})]


async def test_reasons_and_sessions_hold_whatever_characters_people_write(redis: Redis) -> None:
    async with serving(Desk(redis, [calls(call("refund", "c1"))])) as desk:
        session = "sitzung {s00}:* \U0001f600"
        await desk.chat("go", session_id=session)
        done = await desk.resume(denied("c1", message=STRANGE), session_id=session)
        told = json.loads(done.json()["result"].removeprefix("refund: "))
        assert told["message"] == f"Rejected by ada: {STRANGE}"


async def test_a_client_that_leaves_while_a_call_runs_loses_nothing() -> None:
    service = ScriptedService()
    hold = asyncio.Event()
    look = CallPart("c0", "look", {})
    service.on("go", Turn(calls=(look,), asks=(ask("c1", "refund"),), hold=hold))
    async with running(service) as door:
        for stream in (True, False):
            service.heard.clear()
            service.ended.clear()
            service.started.clear()
            hold.clear()
            _, writer = await asyncio.open_connection("127.0.0.1", door.port)
            body = json.dumps({"prompt": "go", "session_id": f"s{stream}", "stream": stream})
            head = "POST /api/v1/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            await service.started.wait()
            writer.close()
            await service.heard.wait()
            hold.set()
            await service.ended.wait()
        assert [task.state.value for task in service.tasks.values()] == ["input-required"] * 2
    await service.close()


async def test_a_client_that_left_finds_its_pause_and_decides_it(redis: Redis) -> None:
    async with serving(Desk(redis, [calls(call("refund", "c1")), says("Done.")])) as desk:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await desk.chat("go")
        while not (found := (await desk.get("api/v1/pauses")).json()["pauses"]):
            await desk.post("api/v1/chat", {"prompt": "go", "session_id": "s1"})
        assert (await desk.resume(approved("c1"), run_id=found[0]["run_id"])).json()["result"] == "Done."
        assert desk.ran() == ["refund"]
