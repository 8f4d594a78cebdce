"""One MCP session: its transport, its handshake, its list of tools, and the calls that share it.

A link is opened once and never repaired: when it is lost, `McpConnection` opens another one and retires this one,
which ends after its last call has. A call whose session ends before its answer came has an unknown outcome.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx2
import mcp_types as wire
from pydantic import ValidationError

from sayso_api.runtimeconfig import ToolServer
from sayso_runtime.tools import lazy_mcp
from sayso_runtime.tools.fence import fence
from sayso_runtime.tools.mcp_http import ANSWER_LIMIT, TOO_LARGE, WatchedTransport, http_client
from sayso_runtime.tools.mcp_result import dump, error_result, size_of
from sayso_runtime.tools.outcome import NotSent, OutcomeUnknown, ToolRunError
from sayso_runtime.tools.sending import SENDING, ErrorInstead, Sending

lazy_mcp.prepare()

from mcp.client.session import ClientSession  # noqa: E402  after the packages above it were made cheap
from mcp.shared.exceptions import MCPError  # noqa: E402
from mcp.shared.message import SessionMessage  # noqa: E402

log = logging.getLogger(__name__)
# What the library would log with a traceback ends up in `why` and is logged once, by `McpConnection`.
logging.getLogger("mcp.client").setLevel(logging.CRITICAL)

PAGES = 200  # of a server's list of tools; more is taken for a server that never ends
GRACE_SECONDS = 1.0  # between the moment a caller gives up and the one at which the connection is given up
SSE_SILENCE_SECONDS = 300.0
_NO_ANSWER = frozenset({wire.PARSE_ERROR, wire.REQUEST_TIMEOUT})


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as its server describes it. `annotations` are the server's claims about itself: hints, never trusted."""

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    annotations: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Access:
    """What a server's settings come to, with values in place of variables. Never to be logged."""

    label: str
    headers: dict[str, str]
    env: dict[str, str]
    tls: Any  # ssl.SSLContext, or False for plain HTTP


class Link:
    """See the module's text. `on_tools` hears each new list of tools."""

    def __init__(self, server: ToolServer, access: Access, on_tools: Callable[[dict[str, OfferedTool]], None]) -> None:
        self.server = server
        self.lost = asyncio.Event()
        self.why = ""
        self._access = access
        self._on_tools = on_tools
        self._session: ClientSession | None = None
        self._over = False
        self._retired = False
        self._stale = False
        self._wake = asyncio.Event()
        self._calls = 0
        self._abandoned: set[asyncio.Task[Any]] = set()
        self._task: asyncio.Task[None] | None = None

    async def open(self, seconds: float) -> str | None:
        """Connect, shake hands and list the tools. None when done, else why not; nothing is left behind then."""
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(opened), name=f"mcp {self.server.key}")
        waited: set[asyncio.Future[None]] = {opened, self._task}
        await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if opened.done():
            return None
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
            return f"no answer within {seconds:g} s"
        return self.why or "the connection was closed"

    def retire(self, *, at_once: bool = False) -> None:
        """End after the last call has, or at once: its calls then end with an unknown outcome."""
        self._retired = True
        if at_once:
            self._calls = 0
        self._wake.set()

    async def ended(self) -> None:
        """Wait until nothing of this link is left."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def trouble(self, why: str) -> None:
        """This session is of no more use. Calls under way may still get their answers."""
        self.why = self.why or why
        self.lost.set()

    async def call(self, tool: str, arguments: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Run a tool and wait at most `seconds` for its answer.

        Returns the server's answer, its errors included. Raises NotSent or OutcomeUnknown.
        """
        assert self._session is not None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds + GRACE_SECONDS
        sending = Sending(tool, self.server.key, self._access.label, fence.get(), deadline)
        request = wire.CallToolRequest(params=wire.CallToolRequestParams(name=tool, arguments=arguments))
        context = SENDING.set(sending)
        try:
            answer = asyncio.create_task(self._session.send_request(request, wire.CallToolResult))
        finally:
            SENDING.reset(context)
        self._calls += 1
        try:
            ends: set[asyncio.Future[Any]] = {answer, sending.failed}
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.closed = True
            self._abandon(answer)
            self._calls -= 1
            self._wake.set()
        if sending.failed.done():
            return _instead(sending.failed.result())
        if not answer.done() or answer.cancelled():
            raise sending.lost(f"no answer within {seconds:g} s")
        return self._result(sending, answer)

    def _result(self, sending: Sending, answer: asyncio.Task[wire.CallToolResult]) -> dict[str, Any]:
        error = answer.exception()
        match error:
            case None:
                result = dump(answer.result())
                return result if size_of(result) <= ANSWER_LIMIT else error_result(TOO_LARGE)
            case MCPError():
                if sending.redirected:
                    raise sending.lost(f"redirected to {sending.redirected}")
                if error.code in _NO_ANSWER or (error.code == wire.CONNECTION_CLOSED and (self._over or sending.cut)):
                    raise sending.lost(f"no usable answer ({error.message})")
                status = f"HTTP {sending.status}: " if sending.status >= 400 else ""
                return error_result(f"{status}{error.message}")
            case ToolRunError():
                raise error
            case ValidationError():
                raise sending.lost("the server answered with something that is not a tool's result,") from error
            case _:
                raise sending.lost(f"{type(error).__name__}: {error}") from error

    def _abandon(self, answer: asyncio.Task[Any]) -> None:
        """Nobody waits any more: let the session tell the server so, in its own time."""
        if answer.done():
            return
        self._abandoned.add(answer)
        answer.add_done_callback(self._abandoned.discard)
        answer.add_done_callback(lambda task: task.cancelled() or task.exception())
        answer.cancel()

    async def _run(self, opened: asyncio.Future[None]) -> None:
        try:
            async with AsyncExitStack() as stack:
                read, write = await self._streams(stack)
                session = ClientSession(_Watched(read, self._ended), write, message_handler=self._on_message)
                await stack.enter_async_context(session)
                try:
                    await session.initialize()
                    await self._refresh(session)
                except Exception as error:
                    self.trouble(_leaf(error))  # before the session's own end gives a lesser reason
                    raise
                self._session = session
                opened.set_result(None)
                try:
                    await self._serve(session)
                finally:
                    self._ended()
        except Exception as error:  # whatever ends a session: it is said, and another one is opened
            self.trouble(_leaf(error))
            log.debug("MCP session of %s ended", self.server.key, exc_info=True)
        finally:
            self._ended()
            for answer in list(self._abandoned):
                answer.cancel()

    async def _serve(self, session: ClientSession) -> None:
        while not (self._retired and self._calls <= 0):
            await self._wake.wait()
            self._wake.clear()
            if self._stale and not self._retired:
                self._stale = False
                try:
                    await self._refresh(session)
                except (MCPError, ValidationError, ValueError) as error:
                    self.trouble(f"cannot list the tools: {error}")

    async def _refresh(self, session: ClientSession) -> None:
        self._on_tools({tool.name: tool async for tool in _tools(session)})

    async def _on_message(self, message: object) -> None:
        if isinstance(message, wire.ToolListChangedNotification):
            self._stale = True
            self._wake.set()

    def _ended(self) -> None:
        """The session hears nothing more. Called before its waiting calls are told."""
        self._over = True
        self.trouble("the connection was closed")

    async def _streams(self, stack: AsyncExitStack) -> tuple[Any, Any]:
        server, access = self.server, self._access
        if server.url is None:
            from mcp.client.stdio import StdioServerParameters, stdio_client

            program, *args = server.command
            parameters = StdioServerParameters(command=program, args=args, env=access.env)
            read, write = await stack.enter_async_context(stdio_client(parameters))
            return read, _FencedPipe(write)

        transport = WatchedTransport(
            server.url,
            access.tls,
            answers_in_body=server.transport == "StreamableHTTP",
            on_trouble=self.trouble,
            label=access.label,
        )
        if server.transport == "SSE":
            from mcp.client.sse import sse_client

            silence = max(SSE_SILENCE_SECONDS, server.timeout_seconds + 60)

            def client_factory(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
                return http_client(transport, access.headers, silence)

            return await stack.enter_async_context(sse_client(server.url, httpx_client_factory=client_factory))
        from mcp.client.streamable_http import streamable_http_client

        client = await stack.enter_async_context(http_client(transport, access.headers, None))
        return await stack.enter_async_context(
            streamable_http_client(server.url, http_client=client, max_sse_event_size=ANSWER_LIMIT)
        )


async def _tools(session: ClientSession) -> AsyncIterator[OfferedTool]:
    """All pages of the server's list. Raises MCPError, or ValueError for a list without end."""
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(PAGES):
        params = wire.PaginatedRequestParams(cursor=cursor) if cursor is not None else None
        try:
            page = await session.list_tools(params=params)
        except MCPError as error:
            if error.code == wire.METHOD_NOT_FOUND and cursor is None:
                return  # a server without tools
            raise
        for tool in page.tools:
            hints = tool.annotations
            yield OfferedTool(
                name=tool.name,
                description=tool.description or "",
                input_schema=tool.input_schema,
                output_schema=tool.output_schema,
                annotations=hints.model_dump(by_alias=True, exclude_none=True) if hints is not None else {},
            )
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor in seen:
            break
        seen.add(cursor)
    raise ValueError("its list of tools has no end")


class _Watched:
    """A read stream that tells of its end before the calls that wait on it hear of it."""

    def __init__(self, inner: Any, on_end: Callable[[], None]) -> None:
        self._inner = inner
        self._on_end = on_end

    @property
    def last_context(self) -> Any:
        """The context of whoever wrote the last message; None where the transport does not keep it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        message: SessionMessage | Exception = await self._inner.receive()
        return message

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            message: SessionMessage | Exception = await self._inner.__anext__()
        except BaseException:
            self._on_end()
            raise
        return message

    async def __aenter__(self) -> _Watched:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _FencedPipe:
    """A write stream to a process, which asks for leave to send a tool call when the pipe is ready to take it."""

    POLL_SECONDS = 0.005

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def send(self, message: SessionMessage) -> None:
        """Hand a message over. Raises NotSent when a tool call must not leave any more."""
        sending = SENDING.get()
        if sending is None or getattr(message.message, "method", None) != "tools/call":
            await self._inner.send(message)
            return
        # The pipe's writer may be busy with a process that does not read: leave is asked for when it is free.
        while not self._inner.statistics().tasks_waiting_receive:
            if not self._inner.statistics().open_receive_streams:
                raise NotSent(sending.server, f"{sending.label}: the process is gone")
            await asyncio.sleep(self.POLL_SECONDS)
        sending.go()
        self._inner.send_nowait(message)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> _FencedPipe:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _instead(error: ToolRunError | ErrorInstead) -> dict[str, Any]:
    if isinstance(error, ErrorInstead):
        return error_result(str(error))
    raise error


def _leaf(error: BaseException) -> str:
    """The first real reason within a group of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError):
        return f"there is no program {error.filename!r}"
    if isinstance(error, MCPError):
        return error.message
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


__all__ = ["Access", "Link", "NotSent", "OfferedTool", "OutcomeUnknown"]
