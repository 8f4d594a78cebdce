"""Real MCP servers as processes, and a raw one that can misbehave on the wire."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sayso_api.runtimeconfig import NamedValue, ToolServer
from sayso_runtime.tools.mcp_server import McpConnection

PROGRAM = Path(__file__).parents[1] / "support" / "counting_server.py"
START_SECONDS = 30.0
TOOLS = [{"name": "refund", "inputSchema": {"type": "object"}}]


def free_port() -> int:
    """A port that nobody listens on now."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class CountingServer:
    """`counting_server.py` over HTTP or SSE; over stdio the connection itself starts it."""

    transport: str
    file: Path
    port: int = field(default_factory=free_port)
    arguments: tuple[str, ...] = ()
    token: str | None = None
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it listens."""
        command = [sys.executable, str(PROGRAM), "--transport", self.transport, "--port", str(self.port)]
        env = os.environ | {"COUNTING_FILE": str(self.file)} | ({"COUNTING_TOKEN": self.token} if self.token else {})
        self.process = subprocess.Popen([*command, *self.arguments], env=env)
        end = time.monotonic() + START_SECONDS
        while True:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the MCP server did not start; its exit status is {self.process.poll()}")
            time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL, and wait for its end."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def executions(self) -> list[dict[str, Any]]:
        """What ran, in order."""
        return [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []

    def settings(self, **changes: Any) -> ToolServer:
        """The server as an agent's configuration names it."""
        if self.transport == "stdio":
            return ToolServer(
                key="shop/orders",
                command=(sys.executable, str(PROGRAM), "--transport", "stdio"),
                env=(NamedValue(name="COUNTING_FILE", value=str(self.file)),),
                **changes,
            )
        path, kind = ("mcp", "StreamableHTTP") if self.transport == "http" else ("sse", "SSE")
        url = changes.pop("url", f"http://127.0.0.1:{self.port}/{path}")
        return ToolServer.model_validate({"key": "shop/orders", "url": url, "transport": kind} | changes)


@pytest.fixture
def counting(tmp_path: Path) -> Iterator[Callable[..., CountingServer]]:
    """Makes counting servers; all are killed at the end."""
    made: list[CountingServer] = []

    def make(transport: str, **options: Any) -> CountingServer:
        server = CountingServer(transport, tmp_path / f"count-{len(made)}", **options)
        made.append(server)
        if transport != "stdio":
            server.start()
        return server

    yield make
    for server in made:
        server.kill()


@pytest.fixture
async def connect() -> AsyncIterator[Callable[..., Awaitable[McpConnection]]]:
    """Opens connections; all are closed at the end."""
    opened: list[McpConnection] = []

    async def open_one(server: ToolServer, env: dict[str, str] | None = None) -> McpConnection:
        connection = McpConnection(server, env or {})
        opened.append(connection)
        await connection.start()
        return connection

    yield open_one
    for connection in opened:
        await connection.close()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds that another task or process brings about; the test's time limit ends it."""
    while not condition():
        await asyncio.sleep(0.01)


Handler = Callable[[dict[str, Any], asyncio.StreamWriter], Awaitable[None]]


class RawServer:
    """An MCP server written down to the bytes. `on_call` answers `tools/call`, and `calls` counts what reached it."""

    def __init__(self) -> None:
        self.on_call: Handler = self.answer_text
        self.calls: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.pages: list[list[dict[str, Any]]] = [TOOLS]
        self.endless_pages = False
        self.url = ""

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/mcp"

    async def stop(self) -> None:
        """Stop listening."""
        self._server.close()
        await self._server.wait_closed()

    @staticmethod
    async def reply(writer: asyncio.StreamWriter, status: str, body: bytes = b"", *headers: str) -> None:
        """Send one HTTP response and close."""
        head = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers]
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        await writer.drain()

    @classmethod
    async def answer(cls, writer: asyncio.StreamWriter, message: dict[str, Any], **fields: Any) -> None:
        """Send a JSON-RPC answer to `message`."""
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **fields}).encode()
        await cls.reply(writer, "200 OK", body, "content-type: application/json", "mcp-session-id: raw")

    async def answer_text(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        """A good answer."""
        await self.answer(writer, message, result={"content": [{"type": "text", "text": "done"}]})

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            if not head[0].startswith("POST"):
                await self.reply(writer, "405 Method Not Allowed")
                return
            message = json.loads(body)
            match message.get("method"):
                case "initialize":
                    capabilities = {"tools": {"listChanged": True}}
                    info = {"name": "raw", "version": "1"}
                    result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
                    await self.answer(writer, message, result=result)
                case "tools/list":
                    await self.answer(writer, message, result=self._page(message))
                case "tools/call":
                    self.calls.append(message["params"])
                    self.headers.append(headers)
                    await self.on_call(message, writer)
                case _:
                    await self.reply(writer, "202 Accepted")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _page(self, message: dict[str, Any]) -> dict[str, Any]:
        number = int((message.get("params") or {}).get("cursor", 0))
        page: dict[str, Any] = {"tools": self.pages[min(number, len(self.pages) - 1)]}
        if self.endless_pages or number + 1 < len(self.pages):
            page["nextCursor"] = "1" if self.endless_pages else str(number + 1)
        return page


@pytest.fixture
async def raw() -> AsyncIterator[RawServer]:
    """A raw server that answers well until told otherwise."""
    server = RawServer()
    await server.start()
    yield server
    await server.stop()


def raw_settings(server: RawServer, **changes: Any) -> ToolServer:
    """The raw server as an agent's configuration names it."""
    return ToolServer.model_validate({"key": "shop/raw", "url": server.url, "timeout_seconds": 10} | changes)


@pytest.fixture
def settings_of() -> Callable[..., ToolServer]:
    """`raw_settings`, for test modules, which cannot import this file."""
    return raw_settings


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """`until`, for test modules."""
    return until
