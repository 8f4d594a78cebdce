"""The process around the doors: how it starts, what it loads, how it stops."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sayso_runtime.interfaces.serve import _listen, serve

PROGRAM = """
import asyncio, sys, uvloop
from sayso_runtime.interfaces.serve import serve

async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"begun", "more_body": True})
    print("asked", flush=True)
    try:
        await asyncio.to_thread(sys.stdin.readline)
    finally:
        print("over", flush=True)
    await send({"type": "http.response.body", "body": b"done"})

async def ready():
    print("ready", flush=True)

async def main():
    await serve(app, "127.0.0.1", int(sys.argv[1]), on_ready=ready, drain_seconds=float(sys.argv[2]))
    print("closed", flush=True)

uvloop.run(main())
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def program(port: int, drain: float) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        str(port),
        str(drain),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout
    return (await process.stdout.readline()).decode().strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_what_runs_end_takes_nothing_new_and_returns_to_the_caller(number: signal.Signals) -> None:
    port = free_port()
    async with program(port, 60) as process:
        assert await line(process) == "ready"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"begun")
        assert await line(process) == "asked"
        process.send_signal(number)
        while await accepts(port):
            pass
        assert process.stdin
        process.stdin.write(b"go on\n")
        assert b"done" in await reader.read()
        writer.close()
        await writer.wait_closed()
        assert [await line(process), await line(process)] == ["over", "closed"]
        assert await process.wait() == 0


async def test_what_does_not_end_in_time_is_cancelled() -> None:
    port = free_port()
    stuck = PROGRAM.replace("asyncio.to_thread(sys.stdin.readline)", "asyncio.Event().wait()")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", stuck, str(port), "0.1", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert await line(process) == "ready"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readuntil(b"begun")
    process.terminate()
    out, _ = await process.communicate()
    assert out.decode().split() == ["asked", "over", "closed"]
    assert process.returncode == 0
    writer.close()
    await writer.wait_closed()


async def accepts(port: int) -> bool:
    """Whether a new connection is taken."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def test_a_taken_port_is_named() -> None:
    async def app(scope: object, receive: object, send: object) -> None:
        raise AssertionError("never asked")

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"127.0.0.1:{port}: Address already in use"):
            await serve(app, "127.0.0.1", port)


def test_the_listener_says_that_it_is_tcp_so_that_small_answers_do_not_wait() -> None:
    with _listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_the_doors_load_no_framework() -> None:
    code = "import sayso_runtime.interfaces.http, sayso_runtime.interfaces.serve, sys; print(*sys.modules)"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert "sayso_runtime" in loaded
    heavy = {
        "a2a",
        "fastapi",
        "starlette",
        "google",
        "kubernetes",
        "kopf",
        "mcp",
        "httpx",
        "redis",
        "uvicorn",
        "openai",
    }
    assert not loaded & heavy
