"""An agent that is none of ours: it answers each request with what a test says, or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from support.a2a03 import Json

#: What to do with a request: raw bytes to send; None: say nothing and keep the connection; empty: close it.
Answer = Callable[[Json], bytes | None]


@dataclass
class OddAgent:
    """A server of one page. `heard` are the JSON-RPC requests that came."""

    answer: Answer
    url: str = ""
    heard: list[Json] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection with one request."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [
                line.partition(b":")[2] for line in head.split(b"\r\n") if line.lower().startswith(b"content-len")
            ]
            request = json.loads(await reader.readexactly(int(lengths[0])))
            self.heard.append(request)
            said = self.answer(request)
            if said is None:
                await reader.read()  # until the client gives up
            else:
                writer.write(said)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def odd_agent(answer: Answer) -> AsyncIterator[OddAgent]:
    """The agent, listening."""
    agent = OddAgent(answer)
    server = await asyncio.start_server(agent.serve, "127.0.0.1", 0)
    agent.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server:
        yield agent


def page(body: bytes, media: str = "application/json", status: str = "200 OK") -> bytes:
    """A whole HTTP response."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {media}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body


def result(request: Json, value: Any) -> bytes:
    """A JSON-RPC result as a page."""
    return page(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": value}).encode())


def events(request: Json, *values: Any) -> bytes:
    """The same as a stream whose lines end in CR LF, as the SDK's server writes them."""
    lines = [json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": value}) for value in values]
    return page("".join(f"data: {line}\r\n\r\n" for line in lines).encode(), "text/event-stream")


def task(state: str, *parts: Json, **more: Any) -> Json:
    """A task of an agent of the first kagent generation."""
    message = {"kind": "message", "role": "agent", "messageId": "stop-1", "parts": list(parts)}
    status = {"state": state, **({"message": message} if parts else {})}
    return {"kind": "task", "id": "t1", "contextId": "c9", "status": status, **more}


def text(said: str) -> Json:
    """A text part."""
    return {"kind": "text", "text": said}


def question(call_id: str, name: str, **args: Any) -> Json:
    """A confirmation part."""
    call = {"name": name, "args": args, "id": call_id}
    confirmation = {"hint": f"{name}?", "confirmed": False, "payload": None}
    asked = {"originalFunctionCall": call, "toolConfirmation": confirmation}
    data = {"name": "adk_request_confirmation", "id": f"q-{call_id}", "args": asked}
    marks = {"kagent_type": "function_call", "kagent_is_long_running": True}
    return {"kind": "data", "data": data, "metadata": marks}
