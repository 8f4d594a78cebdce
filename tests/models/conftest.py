"""A provider on this machine that speaks the wire formats of OpenAI, Anthropic and Gemini."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

KEY = "sk-very-secret-0123456789"
CALL = ("get_order", {"order_id": "A-1"})


def openai_reply(text: str | None, call: tuple[str, dict[str, Any]] | None) -> dict[str, Any]:
    """A chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if call is not None:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    reason = "tool_calls" if call else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def anthropic_reply(text: str | None, call: tuple[str, dict[str, Any]] | None) -> dict[str, Any]:
    """A message."""
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    if call is not None:
        content.append({"type": "tool_use", "id": "toolu_1", "name": call[0], "input": call[1]})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "tool_use" if call else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def gemini_reply(text: str | None, call: tuple[str, dict[str, Any]] | None) -> dict[str, Any]:
    """A generateContent response."""
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    if call is not None:
        parts.append({"functionCall": {"name": call[0], "args": call[1]}})
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}]}


class Provider:
    """Answers each request with the next of `answers`: (status, body), or None to drop the connection."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, Any]] | None] = []
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.url = ""

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Stop listening."""
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
            body = json.loads(await reader.readexactly(int(headers["content-length"])))
            self.requests.append((head[0].split()[1], headers, body))
            answer = self.answers.pop(0)
            if answer is None:
                return
            status, reply = answer
            payload = json.dumps(reply).encode()
            lines = [
                f"HTTP/1.1 {status} X",
                "content-type: application/json",
                f"content-length: {len(payload)}",
                "connection: close",
            ]
            writer.write("\r\n".join([*lines, "", ""]).encode() + payload)
            await writer.drain()
        finally:
            writer.close()


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    """A running provider."""
    server = Provider()
    await server.start()
    yield server
    await server.stop()


REPLIES: dict[str, Callable[..., dict[str, Any]]] = {
    "OpenAI": openai_reply,
    "Anthropic": anthropic_reply,
    "Gemini": gemini_reply,
}
# The `anthropic` package has used both of its two.
KEY_HEADERS = {"OpenAI": {"authorization"}, "Anthropic": {"x-api-key", "authorization"}, "Gemini": {"x-goog-api-key"}}


@pytest.fixture(params=sorted(REPLIES))
def wire(request: pytest.FixtureRequest) -> str:
    """The name of a provider."""
    name: str = request.param
    return name


@pytest.fixture
def reply(wire: str) -> Callable[..., dict[str, Any]]:
    """Writes a reply in the provider's format."""
    return REPLIES[wire]


@pytest.fixture
def key() -> str:
    """A key that must not be seen anywhere but in its header."""
    return KEY


@pytest.fixture
def key_headers(wire: str) -> set[str]:
    """The headers in which the provider looks for the key."""
    return KEY_HEADERS[wire]
