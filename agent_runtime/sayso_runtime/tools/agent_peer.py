"""Another agent's A2A endpoint: JSON-RPC over HTTP, one request at a time, each on a connection of its own.

PeerError
├── Unreachable   certainly nothing was sent
├── Lost          sent, or perhaps sent, and the answer did not come; `task_id` where it had begun to come
│   └── Silent    nothing at all came for as long as the agent may be silent
└── Declined      the agent itself answered no: `number` and `message` of the error, `code` where it gives one
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import httpx2

from sayso_runtime.interfaces import strict_json
from sayso_runtime.tools.agent_reply import Assembly, Garbage, Reply
from sayso_runtime.tools.mcp_http import CONNECT_SECONDS, tls_context

#: Bytes that one answer may have, all elements of a stream together.
ANSWER_LIMIT = 16 * 1024 * 1024
#: Seconds within which a question about a task is answered.
LOOK_SECONDS = 30.0
TASK_NOT_FOUND = -32001
#: Errors of agents that do not stream.
_NO_STREAM = frozenset({-32601, -32004})

OnText = Callable[[str], None]
_numbers = itertools.count(1)


class PeerError(Exception):
    """There is no answer to go on with."""


class Unreachable(PeerError):  # noqa: N818  they name what happened
    """No connection came about, on any of the agent's URLs."""


class Lost(PeerError):  # noqa: N818
    """The connection ended before the answer."""

    def __init__(self, why: str, task_id: str = "") -> None:
        super().__init__(why)
        self.task_id = task_id


class Silent(Lost):
    """The agent said nothing for too long."""


class Declined(PeerError):  # noqa: N818
    """An error that the agent answered with."""

    def __init__(self, number: int, message: str, data: Any) -> None:
        super().__init__(message)
        self.number = number
        problem: Mapping[str, Any] = data if isinstance(data, dict) else {}
        code = problem.get("code")
        self.code = code if isinstance(code, str) else ""


class Peer:
    """One agent, at one URL for each of its replicas. `silence`: seconds that it may take without a sign of life."""

    def __init__(self, urls: Sequence[str], silence: float) -> None:
        self._urls = list(urls)
        self._silence = silence
        self._streams = True
        self._client: httpx2.AsyncClient | None = None

    async def close(self) -> None:
        """Ends what is under way."""
        if self._client is not None:
            await self._client.aclose()

    async def send(self, message: Mapping[str, Any], on_text: OnText) -> Reply:
        """Sends a message or decision, and waits for what comes of it. Raises `PeerError` and `Garbage`."""
        if self._streams:
            try:
                return await self._exchange("message/stream", {"message": message}, self._silence, on_text)
            except Declined as error:
                if error.number not in _NO_STREAM or error.code:
                    raise
                self._streams = False
        params = {"message": message, "configuration": {"blocking": True}}
        return await self._exchange("message/send", params, self._silence, on_text)

    async def get(self, task_id: str) -> Reply:
        """The task as it is now. Raises as `send`."""
        return await self._exchange("tasks/get", {"id": task_id}, LOOK_SECONDS, _unheard)

    async def cancel(self, task_id: str) -> Reply:
        """Cancels what waits in the task, and waits until it has ended. Raises as `send`."""
        return await self._exchange("tasks/cancel", {"id": task_id}, self._silence, _unheard)

    async def _exchange(self, method: str, params: Mapping[str, Any], silence: float, on_text: OnText) -> Reply:
        body = strict_json.dumps({"jsonrpc": "2.0", "id": next(_numbers), "method": method, "params": params})
        away: list[str] = []
        for url in tuple(self._urls):
            try:
                return await self._request(url, body, silence, on_text)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                away.append(f"{url}: {error or type(error).__name__}")
                self._urls.remove(url)  # the next request begins with a replica that was not seen to be down
                self._urls.append(url)
        raise Unreachable(f"no connection to {'; '.join(away)}")

    async def _request(self, url: str, body: bytes, silence: float, on_text: OnText) -> Reply:
        assembly = Assembly()
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=silence, write=CONNECT_SECONDS)
        try:
            async with self._http(url).stream("POST", url, content=body, headers=headers, timeout=timeout) as response:
                media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                if media == "text/event-stream":
                    async for data in _events(response):
                        if text := assembly.take(_result(data)):
                            on_text(text)
                else:
                    assembly.take(_result(await _whole(response, media)))
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            raise
        except httpx2.ReadTimeout as error:
            raise Silent(f"no sign of life for {silence:g} s", assembly.task_id) from error
        except httpx2.HTTPError as error:
            why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise Lost(f"the connection was lost ({why})", assembly.task_id) from error
        if not assembly.ended and media == "text/event-stream":
            raise Lost("the stream ended before the answer", assembly.task_id)
        return assembly.reply()

    def _http(self, url: str) -> httpx2.AsyncClient:
        if self._client is None:
            # Servers close idle connections, and a request that meets such a close may have arrived or not.
            self._client = httpx2.AsyncClient(
                verify=tls_context(url, None, False), limits=httpx2.Limits(max_keepalive_connections=0)
            )
        return self._client


def _unheard(text: str) -> None:
    del text


async def _whole(response: httpx2.Response, media: str) -> bytes:
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > ANSWER_LIMIT:
            raise Garbage(f"an answer of more than {ANSWER_LIMIT} bytes")
    if media != "application/json":
        if response.status_code in (502, 503, 504):
            raise Lost(f"HTTP {response.status_code}")
        raise Garbage(f"HTTP {response.status_code} with {media or 'no content type'}, which is no A2A")
    return bytes(content)


async def _events(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The data of each server-sent event, whichever way its lines end."""
    data: list[bytes] = []
    rest, size = b"", 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > ANSWER_LIMIT:
            raise Garbage(f"an answer of more than {ANSWER_LIMIT} bytes")
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                yield b"\n".join(data)
                data.clear()
    if data:
        yield b"\n".join(data)


def _result(text: bytes) -> Any:
    """The result of a JSON-RPC answer. Raises `Declined` and `Garbage`."""
    try:
        answer = strict_json.loads(text).value
    except strict_json.NotJson as fault:
        raise Garbage(f"an answer that is not JSON ({fault})") from fault
    if not isinstance(answer, dict):
        raise Garbage("an answer that is no JSON-RPC")
    error = answer.get("error")
    if isinstance(error, dict):
        number, message = error.get("code"), error.get("message")
        raise Declined(number if isinstance(number, int) else 0, str(message)[:2000], error.get("data"))
    if "result" not in answer:
        raise Garbage("a JSON-RPC answer with neither a result nor an error")
    return answer["result"]
