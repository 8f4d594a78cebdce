"""Server-sent events: a run's events as they happen, until the run or the client ends.

Lines end in LF only: chat windows split at an empty line and show nothing of a stream that ends its lines in CR LF.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Any, TypeVar

from sayso_runtime.interfaces import strict_json
from sayso_runtime.interfaces.asgi import ClientGone, Request

#: Seconds of silence after which a comment is sent. Below 5: the read time-out that clients on httpx have by default.
KEEP_ALIVE_SECONDS = 4.0

_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_T = TypeVar("_T")


class EventStream:
    """Writes one response as server-sent events. The status line goes out with the first of them."""

    def __init__(self, request: Request, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self._request = request
        self._headers = [*_HEADERS, *headers]
        self.started = False

    async def send(self, documents: Iterable[Any], *, last: bool = False) -> None:
        """Each document as one event, all in one write. `last`: the response ends with them, in the same write.
        Raises `ClientGone`."""
        chunk = b"".join(b"data: " + strict_json.dumps(document) + b"\n\n" for document in documents)
        await self.write(chunk, last=last)

    async def comment(self) -> None:
        """Something that clients skip and proxies count as life. Raises `ClientGone`."""
        await self.write(b": still working\n\n")

    async def write(self, chunk: bytes, *, last: bool = False) -> None:
        """Events that are laid out already. Raises `ClientGone`."""
        if not self.started:
            self.started = True
            await self._request.write({"type": "http.response.start", "status": 200, "headers": self._headers})
        await self._request.write({"type": "http.response.body", "body": chunk, "more_body": not last})


async def until_gone(request: Request, source: AsyncIterator[_T], silence: float) -> AsyncGenerator[_T | None, None]:
    """Yields what `source` yields, and None after each `silence` seconds without anything.

    Raises what `source` raises, and `ClientGone` as soon as the client has left, though nothing is being written.
    """
    gone = asyncio.ensure_future(request.gone())
    upcoming: asyncio.Future[_T] | None = None
    try:
        while True:
            if upcoming is None:
                upcoming = asyncio.ensure_future(anext(source))
            await _first(upcoming, gone, silence)
            if upcoming.done():
                finished, upcoming = upcoming, None
                try:
                    item = finished.result()
                except StopAsyncIteration:
                    return
                yield item
            elif gone.done():
                raise ClientGone
            else:
                yield None
    finally:
        gone.cancel()
        if upcoming is not None:
            upcoming.cancel()
            await asyncio.wait({upcoming})
        if isinstance(source, AsyncGenerator):
            await source.aclose()


async def result_or_gone(request: Request, work: asyncio.Future[_T]) -> _T:
    """Awaits `work`. Raises what it raises, and `ClientGone` as soon as the client has left."""
    gone = asyncio.ensure_future(request.gone())
    try:
        await _first(work, gone)
        if work.done():
            return work.result()
        raise ClientGone
    finally:
        gone.cancel()
        work.cancel()


async def _first(one: asyncio.Future[Any], other: asyncio.Future[Any], timeout: float | None = None) -> None:
    """Returns when either is done, or after `timeout` seconds."""
    await asyncio.wait({one, other}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
