"""Streams byte by byte, and what becomes of them when a client is slow, silent or gone."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest

from sayso_runtime.interfaces import asgi
from sayso_runtime.interfaces.a2a import door as door_module
from support.scripted_service import Turn, ask

REFUND = ask("c1", "refund", hint="ein Fußball für 20 €", amount=20)


def request(words: str, method: str = "message/stream") -> bytes:
    message = {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": words}]}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}).encode()
    head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return (head + f"Content-Length: {len(body)}\r\n\r\n").encode() + body


async def read_chunks(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Head and body of one chunked response, the chunks put together."""
    head = await reader.readuntil(b"\r\n\r\n")
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    assert await reader.readexactly(2) == b"\r\n"
    return head, body


async def test_lines_end_in_lf_and_the_stream_ends_by_itself_with_the_connection_left_open(door: Any) -> None:
    door.service.on("refund", Turn(deltas=("one\r\ntwo", "\u2028"), asks=(REFUND,)))
    door.service.on("hello", Turn(text="Hi."))
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(request("refund"))
    head, body = await read_chunks(reader)
    assert b"text/event-stream" in head
    assert b"\r" not in body
    events = body.split(b"\n\n")
    assert events.pop() == b""
    assert len(events) == 4
    assert all(event.startswith(b"data: {") and b"\n" not in event for event in events)
    assert json.loads(events[-1].removeprefix(b"data: "))["result"]["final"] is True
    assert "ein Fußball für 20 €".encode() in body

    writer.write(request("hello"))
    _, again = await read_chunks(reader)
    assert b'"completed"' in again
    writer.close()
    await writer.wait_closed()
    assert len(door.service.answered) == 2


async def test_a_silent_run_is_kept_alive_by_comments(door: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "KEEP_ALIVE_SECONDS", 0.01)
    hold = asyncio.Event()
    door.service.on("slow", Turn(hold=hold, text="late"))
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(request("slow"))
    await reader.readuntil(b": still working\n\n")
    hold.set()
    await reader.readuntil(b'"final":true}}\n\n')
    assert await reader.readuntil(b"0\r\n\r\n")
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("method", ["message/stream", "message/send"])
async def test_a_client_that_leaves_is_noticed_at_once_and_the_run_goes_on(door: Any, method: str) -> None:
    hold = asyncio.Event()
    door.service.on("slow", Turn(hold=hold, text="late"))
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(request("slow", method))
    if method == "message/stream":
        await reader.readuntil(b'"working"')
    else:
        await door.service.started.wait()
    writer.close()
    await writer.wait_closed()
    await door.service.heard.wait()
    assert not door.service.ended.is_set()
    hold.set()
    await door.service.ended.wait()
    (task,) = door.service.tasks.values()
    assert task.state == "completed"
    assert door.service.answered == [task.id]


async def test_a_client_that_does_not_read_holds_up_nothing(door: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "WRITE_SECONDS", 0.05)
    door.service.on("flood", Turn(deltas=("x" * 1_000_000,) * 20, text="done"))
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect(("127.0.0.1", door.port))
        lazy.sendall(request("flood"))
        await door.service.ended.wait()
        await door.service.heard.wait()


async def test_a_streams_beginning_has_no_question_yet_so_that_nobody_asks_twice(door: Any) -> None:
    door.service.on("refund", Turn(asks=(REFUND,), then=Turn(asks=(ask("c2", "cancel"),))))
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(request("refund"))
    _, body = await read_chunks(reader)
    first, last = (json.loads(event.removeprefix(b"data: "))["result"] for event in body.split(b"\n\n")[:-1])
    assert "message" not in first["status"]
    assert last["status"]["message"]["parts"][0]["data"]["id"] == "adk-c1"
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("method", ["message/stream", "message/send"])
async def test_a_run_is_told_in_the_same_step_as_its_answers_last_byte(running_door: Any, method: str) -> None:
    steps: list[str] = []

    def watched(app: Any) -> Any:
        async def between(scope: Any, receive: Any, send: Any) -> None:
            async def noting(message: Any) -> None:
                await send(message)
                if message["type"] == "http.response.body" and not message.get("more_body"):
                    steps.append("last byte")
                    asyncio.get_running_loop().call_soon(steps.append, "anything else")

            await app(scope, receive, noting)

        return between

    class Telling(list[str]):
        def append(self, task_id: str) -> None:
            steps.append("answered")

    async with running_door(watched) as door:
        door.service.answered = Telling()
        door.service.on("hello", Turn(text="Hi."))
        message = {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "hello"}]}
        await door.rpc(method, {"message": message})
        await door.service.heard.wait()
    assert steps[:2] == ["last byte", "answered"]
