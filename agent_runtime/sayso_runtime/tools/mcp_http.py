"""The HTTP client under an MCP session, which knows of every tool call whether its request left this process.

The client library reports a refused connection, a reset in the middle of an answer and an HTTP 500 all as one kind of
error, and some of them end the session for every other call. So this transport stands below it: it judges what really
happened to a `tools/call`, tells the caller through `Sending`, and hands the library a harmless answer. Which failures
mean what:

    no connection, TLS refused, fence lost     nothing was sent
    404 with a session id                      the server forgot the session and did not run the call
    301, 307, 308 that are not followed        nobody ran it there
    other 4xx                                  the server's own refusal: a result
    302, 303, 408, 5xx, 202, no or cut answer  sent, and nobody can say: the outcome is unknown
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2

from sayso_runtime.tools.outcome import NotSent, OutcomeUnknown, SessionGone
from sayso_runtime.tools.sending import SENDING, ErrorInstead, Sending

ANSWER_LIMIT = 10 * 1024 * 1024  # bytes of one answer
TOO_LARGE = (
    f"The tool ran, but its answer was larger than {ANSWER_LIMIT} bytes and was dropped. Do not take this as a failure "
    "of the tool; ask for less."
)
CONNECT_SECONDS = 10.0  # for TCP and TLS
COURTESY_SECONDS = 5.0  # for notifications and goodbyes, which nobody waits for
# Servers commonly close idle connections after 5 s. A request that meets such a close has an unknown outcome, so
# connections are given up well before that.
IDLE_SECONDS = 2.0
SESSION_HEADER = "mcp-session-id"
FORGOTTEN = "the server does not know this session any more (HTTP 404)"
#: Called with the reason when the session is of no more use: forgotten by the server, or out of reach.
Trouble = Callable[[str], None]


def tls_context(url: str, ca_pem: str | None, insecure: bool) -> ssl.SSLContext | bool:
    """How certificates are checked: by `ca_pem` (PEM text) alone when given, else by the system's authorities.

    False for plain HTTP, where there is nothing to check. Raises ssl.SSLError for PEM text that holds no certificate.
    """
    if not url.lower().startswith("https:"):
        return False
    if insecure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    return ssl.create_default_context(cadata=ca_pem) if ca_pem is not None else ssl.create_default_context()


def http_client(transport: WatchedTransport, headers: dict[str, str], read_seconds: float | None) -> httpx2.AsyncClient:
    """A client for one session. `read_seconds` bounds the silence on a stream; None: calls bound themselves."""
    return httpx2.AsyncClient(
        transport=transport,
        headers={"accept-encoding": "identity"} | headers,
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=read_seconds, write=None),
    )


def message_in(request: httpx2.Request) -> dict[str, Any]:
    """The JSON-RPC message that a request carries; empty when it carries none."""
    if request.method != "POST":
        return {}
    try:
        message = json.loads(request.content)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


class WatchedTransport(httpx2.AsyncBaseTransport):
    """See the module's text. `answers_in_body`: streamable HTTP, where a request's answer is its response's body."""

    def __init__(
        self, url: str, tls: ssl.SSLContext | bool, *, answers_in_body: bool, on_trouble: Trouble, label: str
    ) -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=IDLE_SECONDS)
        self._inner = httpx2.AsyncHTTPTransport(verify=tls, limits=limits)
        self._scheme = httpx2.URL(url).scheme
        self._answers_in_body = answers_in_body
        self._on_trouble = on_trouble
        self._label = label

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request. Raises httpx2.TransportError for the listening stream only, which the library retries."""
        message = message_in(request)
        sending = SENDING.get() if message.get("method") == "tools/call" else None
        if request.url.scheme != self._scheme:
            # Certificate checks were set up for one scheme; a redirect must not move the session to the other.
            why = f"{self._label}: redirected to {_bare(request.url)}. Use that address if it is the intended server"
            if sending is not None:
                sending.fail(NotSent(sending.server, why))
            return _error_answer(message, why)
        if sending is not None:
            return await self._call(request, sending)
        if request.method == "GET":
            return await self._listen(request)
        return await self._housekeeping(request, message)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()

    async def _call(self, request: httpx2.Request, sending: Sending) -> httpx2.Response:
        async def on_event(name: str, _: dict[str, Any]) -> None:
            if name.endswith("send_request_headers.started"):
                sending.go()

        request.extensions = {**request.extensions, "trace": on_event}
        try:
            async with asyncio.timeout_at(sending.deadline):
                response = await self._inner.handle_async_request(request)
        except NotSent as refused:
            sending.fail(refused)
            return _accepted()
        except (httpx2.TransportError, TimeoutError, OSError) as error:
            why = _reason(error)
            if not sending.sent:
                self._on_trouble(why)
            sending.fail(sending.lost(why))
            return _accepted()
        if self._judge(request, response, sending):
            await response.aclose()
            return _accepted()
        is_json = "json" in response.headers.get("content-type", "")
        body = _CallBody(response.stream, sending, is_json)
        return httpx2.Response(response.status_code, headers=response.headers, stream=body)

    def _judge(self, request: httpx2.Request, response: httpx2.Response, sending: Sending) -> bool:
        """Whether the head of the answer already decides the call."""
        status = response.status_code
        sending.status = status
        if status in (301, 307, 308):
            sending.sent = False
            sending.redirected = _target(request, response)
            if self._answers_in_body and sending.redirected:
                return False  # the library follows it within the server's origin, or says that it did not
            why = f"{self._label}: redirected to {sending.redirected or 'an invalid address'}"
            sending.fail(NotSent(sending.server, f"{why}. Use that address if it is the intended server"))
            return True
        if status == 404 and (SESSION_HEADER in request.headers or not self._answers_in_body):
            self._on_trouble(FORGOTTEN)
            sending.fail(SessionGone(sending.server, f"{self._label}: {FORGOTTEN}"))
            return True
        if status >= 400 and status not in (408, 404) and status < 500 and not self._answers_in_body:
            sending.fail(ErrorInstead(f"HTTP {status} {response.reason_phrase}".rstrip()))
            return True
        if status == 400 and SESSION_HEADER in request.headers:
            # Some servers say so instead of 404. That is their refusal, but the next call deserves a new session.
            self._on_trouble("HTTP 400 to a request with a session id")
        if status >= 500 or status in (302, 303, 408) or (status == 202 and self._answers_in_body):
            sending.fail(sending.lost(f"the server answered with HTTP {status} {response.reason_phrase}".rstrip()))
            return True
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        expected = ("application/json", "text/event-stream")
        if self._answers_in_body and status < 300 and kind not in expected:
            sending.fail(sending.lost(f"the server answered with {kind or 'no content type'}, which is not MCP,"))
            return True
        if response.headers.get("content-encoding", "identity") != "identity":
            sending.fail(sending.lost("the server compressed its answer, though it was asked not to,"))
            return True
        return False

    async def _listen(self, request: httpx2.Request) -> httpx2.Response:
        resuming = SENDING.get()  # the rest of an answer whose stream broke, rather than the server's own messages
        if resuming is not None and resuming.closed:
            raise httpx2.ReadError("nobody waits for the answer any more")
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError as error:
            self._on_trouble(_reason(error))
            raise
        if response.status_code == 404 and SESSION_HEADER in request.headers:
            self._on_trouble(FORGOTTEN)
        if resuming is None:
            return response
        body = _CallBody(response.stream, resuming, is_json=False)
        return httpx2.Response(response.status_code, headers=response.headers, stream=body)

    async def _housekeeping(self, request: httpx2.Request, message: dict[str, Any]) -> httpx2.Response:
        """Handshake, lists, notifications, goodbyes: a failure is said in the answer, so the session survives it."""
        waited_for = "id" in message and "method" in message
        try:
            async with asyncio.timeout(None if waited_for else COURTESY_SECONDS):
                response = await self._inner.handle_async_request(request)
                if response.status_code < 400:
                    body = _Body(response.stream)
                    return httpx2.Response(response.status_code, headers=response.headers, stream=body)
                await response.aclose()
        except (httpx2.TransportError, TimeoutError, OSError) as error:
            if request.method != "DELETE":
                self._on_trouble(_reason(error))
            return _error_answer(message, _reason(error))
        why = f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
        if response.status_code == 404 and SESSION_HEADER in request.headers and request.method != "DELETE":
            self._on_trouble(FORGOTTEN)
        return _error_answer(message, why)


class _Body(httpx2.AsyncByteStream):
    """An answer's body: at most `ANSWER_LIMIT` bytes; a broken one ends early instead of ending the session."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._stream:
                size += len(chunk)
                if size > ANSWER_LIMIT:
                    self.too_large()
                    return
                yield chunk
        except (httpx2.TransportError, TimeoutError, OSError) as error:
            self.broken(error)

    def too_large(self) -> None:
        """The limit was passed."""

    def broken(self, error: Exception) -> None:
        """The connection was lost within the body."""

    async def aclose(self) -> None:
        await self._stream.aclose()


class _CallBody(_Body):
    """The body of a tool's answer."""

    def __init__(self, stream: Any, sending: Sending, is_json: bool) -> None:
        super().__init__(stream)
        self._sending = sending
        self._is_json = is_json

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = super().__aiter__()
        try:
            while True:
                # Past the deadline nobody waits for the answer: a silent server must not hold the connection.
                async with asyncio.timeout_at(self._sending.deadline):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    break
                yield chunk
        except TimeoutError as error:
            self.broken(error)
        self._sending.cut = self._sending.cut or not self._is_json

    def too_large(self) -> None:
        self._sending.fail(ErrorInstead(TOO_LARGE))

    def broken(self, error: Exception) -> None:
        self._sending.cut = True
        if self._is_json:  # an event stream may be resumed by its last event's id
            why = f"{_reason(error)} within the answer"
            sending = self._sending
            sending.fail(OutcomeUnknown(sending.tool, sending.server, f"{self._sending.label}: {why}"))


def _accepted() -> httpx2.Response:
    return httpx2.Response(202)


def _error_answer(message: dict[str, Any], why: str) -> httpx2.Response:
    if "id" not in message or "method" not in message:
        return httpx2.Response(202 if message else 204)
    error = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": why}}
    return httpx2.Response(200, json=error)


def _target(request: httpx2.Request, response: httpx2.Response) -> str:
    try:
        return _bare(request.url.join(response.headers["location"]))
    except (KeyError, httpx2.InvalidURL):
        return ""


def _bare(url: httpx2.URL) -> str:
    """An address fit for an error text: credentials can be in its other parts."""
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))


def _reason(error: Exception) -> str:
    match error:
        case httpx2.ConnectTimeout():
            return "the connection could not be made in time"
        case httpx2.ConnectError():
            return f"cannot connect ({error})" if str(error) else "cannot connect"
        case httpx2.ReadTimeout() | TimeoutError():
            return "no answer in time"
        case _:
            return f"connection lost ({error})" if str(error) else "connection lost"
