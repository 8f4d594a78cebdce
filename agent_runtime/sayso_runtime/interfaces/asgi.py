"""The few HTTP pieces that the doors need, straight on ASGI.

    Unreadable     the request's body cannot be taken: too large, too slow, or the client left

A framework would cost more per request than everything else a door does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any

from sayso_runtime.interfaces import strict_json

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Largest request body in bytes.
MAX_BODY = 10 * 1024 * 1024
#: A body beyond this many times the limit is not even read to be dropped.
DISCARD = 4
#: Seconds that a client has for sending its body.
BODY_SECONDS = 30.0
#: Seconds that a client may take to read what was written to it. The run itself never waits for a client.
WRITE_SECONDS = 30.0

JSON = b"application/json"
PROBLEM = b"application/problem+json"
TEXT = b"text/plain; charset=utf-8"


class Unreadable(Exception):  # noqa: N818  it describes the request
    """The body cannot be taken. `status` is the HTTP status to answer with, 0 when nobody is there to hear it."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class ClientGone(Exception):  # noqa: N818  an event, not a fault
    """The client closed the connection, or has not read for `WRITE_SECONDS`."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request."""

    scope: Scope
    receive: Receive
    send: Send

    @property
    def method(self) -> str:
        return str(self.scope["method"])

    def headers(self, name: bytes) -> list[str]:
        """Every value of a header; `name` in lower case."""
        return [value.decode("latin-1") for key, value in self.scope["headers"] if key == name]

    def header(self, name: bytes) -> str | None:
        """A header's first value."""
        for key, value in self.scope["headers"]:
            if key == name:
                return str(value.decode("latin-1"))
        return None

    async def body(self, limit: int = MAX_BODY) -> bytes:
        """The whole body. Raises `Unreadable`.

        Of a body that is too large the rest is read and dropped, within reason: a connection that is closed while the
        client still sends takes the answer with it.
        """
        announced = self.header(b"content-length") or ""
        size = int(announced) if announced.isdecimal() and len(announced) < 20 else 0
        too_large = Unreadable(413, f"the body is too large, at most {limit} bytes are taken")
        if size > DISCARD * limit or (size > limit and self.header(b"expect")):
            raise too_large
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await self.receive()
                    if message["type"] == "http.disconnect":
                        raise Unreadable(0, "the client left before its request was complete")
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size <= limit:
                        chunks.append(chunk)
                    else:
                        chunks.clear()
                    if size > DISCARD * limit or (size > limit and not message.get("more_body")):
                        raise too_large
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError as error:
            raise Unreadable(408, f"the body did not arrive within {BODY_SECONDS:g} s") from error

    async def gone(self) -> None:
        """Returns when the client has left. To be called once the body is read."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def respond(
        self,
        status: int,
        body: bytes,
        content_type: bytes = JSON,
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """A whole answer. Raises `ClientGone`."""
        head = [(b"content-type", content_type), (b"content-length", str(len(body)).encode()), *headers]
        await self.write({"type": "http.response.start", "status": status, "headers": head})
        await self.write({"type": "http.response.body", "body": b"" if self.method == "HEAD" else body})

    async def respond_json(self, status: int, document: Any, content_type: bytes = JSON) -> None:
        """A whole answer from a JSON value. Raises `ClientGone`."""
        await self.respond(status, strict_json.dumps(document), content_type)

    async def write(self, message: MutableMapping[str, Any]) -> None:
        """One ASGI message. Raises `ClientGone` where the client does not take it in time."""
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self.send(message)
        except (TimeoutError, OSError) as error:
            raise ClientGone from error


def problem(status: int, title: str, detail: str) -> bytes:
    """A problem details document (RFC 9457) for faults below any door's own protocol."""
    return strict_json.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail})
