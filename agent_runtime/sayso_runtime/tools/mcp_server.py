"""The connection to one MCP server: a session that is kept, and replaced in the background when it is lost.

    call ── connected? ── no ──> wait for the attempt under way; it failed: NotSent, with its reason
                │
               yes ──> Link.call ── the session is gone and nothing ran ──> a new session, and once again

Nothing else is ever sent twice: whether to run a tool again is for a person to say, or for the engine when the tool
is declared idempotent.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from sayso_api.runtimeconfig import NamedValue, ToolServer
from sayso_runtime.tools.fence import FenceLost
from sayso_runtime.tools.outcome import ConfigProblem, NotSent, SessionGone

if TYPE_CHECKING:
    from sayso_runtime.tools.mcp_link import Access, Link, OfferedTool

log = logging.getLogger(__name__)

FIRST_DELAY = 0.1  # seconds before the second attempt to connect
LONGEST_DELAY = 15.0
CONNECTED = "connected"


class McpConnection:
    """One server, for the life of the process. `on_change` hears when its status or its tools have changed."""

    def __init__(self, server: ToolServer, env: Mapping[str, str], on_change: Callable[[], None] | None = None) -> None:
        self.server = server
        self.label = f"MCP server {server.key} ({address(server)})"
        self._env = env
        self._on_change = on_change or (lambda: None)
        self._tools: dict[str, OfferedTool] | None = None
        self._link: Link | None = None
        self._links: set[Link] = set()
        self._problem = "not connected yet"
        self._supervisor: asyncio.Task[None] | None = None
        self._attempted = asyncio.Event()
        self._kick = asyncio.Event()
        self._closing = False

    @property
    def status(self) -> str:
        """`connected`, or why not and what to do."""
        return CONNECTED if self._link is not None else self._problem

    @property
    def connected(self) -> bool:
        """Whether a session is open."""
        return self._link is not None

    @property
    def tools(self) -> dict[str, OfferedTool] | None:
        """The server's tools by name, as last heard; None while it has never been reached."""
        return self._tools

    async def start(self) -> None:
        """Begin to connect, and wait for the first attempt to end either way."""
        self._begin()
        await self._attempted.wait()

    async def close(self) -> None:
        """Close the session. Calls that are still under way end with an unknown outcome."""
        self._closing = True
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait({self._supervisor})
        links = list(self._links)
        for link in links:
            link.retire(at_once=True)
        await asyncio.gather(*(link.ended() for link in links))
        self._link = None
        self._problem = f"{self.label}: closed"

    async def list_tools(self) -> dict[str, OfferedTool]:
        """The tools as last heard. Raises NotSent when the server cannot be reached and never could."""
        if self._tools is None:
            await self._ready(self.server.timeout_seconds)
        return self._tools or {}

    async def call(self, tool: str, arguments: dict[str, Any], seconds: float | None = None) -> dict[str, Any]:
        """Run `tool`, waiting at most `seconds` for a connection, and again for the answer.

        `seconds` None: the server's own time-out.
        Returns the answer, errors that the server answered with included (`isError`). Raises NotSent, OutcomeUnknown.
        """
        limit = self.server.timeout_seconds if seconds is None else seconds
        link = await self._ready(limit)
        try:
            return await link.call(tool, arguments, limit)
        except FenceLost:
            raise
        except NotSent as refused:
            if not isinstance(refused, SessionGone) and not link.lost.is_set():
                raise
            self._lose(link)
            link = await self._ready(limit)
        return await link.call(tool, arguments, limit)

    def _begin(self) -> None:
        if self._closing:
            raise NotSent(self.server.key, f"{self.label}: this process is shutting down")
        if self._supervisor is None:
            self._supervisor = asyncio.create_task(self._supervise(), name=f"connect {self.server.key}")

    async def _ready(self, seconds: float) -> Link:
        self._begin()
        if self._link is not None and self._link.lost.is_set():
            self._lose(self._link)
        if self._link is None:
            self._attempted.clear()
            self._kick.set()
            try:
                await asyncio.wait_for(self._attempted.wait(), seconds)
            except TimeoutError:
                raise NotSent(self.server.key, f"{self.label}: not connected within {seconds:g} s") from None
        if self._link is None:
            raise NotSent(self.server.key, self._problem)
        return self._link

    def _lose(self, link: Link) -> None:
        """Stop using `link`. Its other calls may still finish."""
        link.trouble("replaced")
        if self._link is link:
            self._link = None
            self._problem = f"{self.label}: {link.why}"
            self._on_change()
        link.retire()

    async def _supervise(self) -> None:
        delay = FIRST_DELAY
        while True:
            self._kick.clear()
            link = await self._attempt()
            if link is not None:
                delay = FIRST_DELAY
                await link.lost.wait()
                self._lose(link)
                log.warning("%s", self._problem)
            else:
                delay = min(delay * 2, LONGEST_DELAY)
            try:
                await asyncio.wait_for(self._kick.wait(), delay * random.uniform(0.5, 1.0))  # noqa: S311  not a secret
            except TimeoutError:
                continue

    async def _attempt(self) -> Link | None:
        """One try to connect. Never raises but for cancellation: what went wrong is the status."""
        from sayso_runtime.tools.mcp_link import Link  # the MCP library is imported by processes that use it only

        why: str | None
        try:
            link = Link(self.server, self._access(), self._heard)
        except ConfigProblem as problem:
            why = str(problem)
        else:
            self._links.add(link)
            try:
                why = await link.open(max(self.server.timeout_seconds, 10.0))
            except asyncio.CancelledError:
                link.retire(at_once=True)
                raise
            if why is None:
                asyncio.get_running_loop().create_task(self._forget(link))
                self._link = link
                self._attempted.set()
                self._on_change()
                return link
            self._links.discard(link)
            why = f"{self.label}: {why}. Check that the server runs, and its url, headers and TLS settings"
        changed = why != self._problem
        self._problem = why
        self._attempted.set()
        if changed:
            log.warning("%s", why)
            self._on_change()
        return None

    async def _forget(self, link: Link) -> None:
        await link.ended()
        self._links.discard(link)

    def _heard(self, tools: dict[str, OfferedTool]) -> None:
        if tools != self._tools:
            self._tools = tools
            self._on_change()

    def _access(self) -> Access:
        """Settings with their values. Raises ConfigProblem, naming the variable that is missing."""
        from sayso_runtime.tools.mcp_http import tls_context
        from sayso_runtime.tools.mcp_link import Access

        server = self.server
        tls: Any = False
        if server.url is not None:
            ca = self._variable(server.tls.ca_env, "tls.caSecretRef") if server.tls.ca_env else None
            try:
                tls = tls_context(server.url, ca, server.tls.insecure_skip_verify)
            except ssl.SSLError as error:
                raise ConfigProblem(f"{self.label}: {server.tls.ca_env} holds no PEM certificate ({error})") from None
        return Access(
            label=self.label,
            headers={item.name: self._value(item, "header") for item in server.headers},
            env={item.name: self._value(item, "variable") for item in server.env},
            tls=tls,
        )

    def _value(self, item: NamedValue, what: str) -> str:
        if item.from_env is None:
            return item.value or ""
        return self._variable(item.from_env, f"{what} {item.name}")

    def _variable(self, name: str, purpose: str) -> str:
        value = self._env.get(name)
        if value is None:
            raise ConfigProblem(f"{self.label}: {purpose} needs the variable {name}, which is not set")
        return value


def address(server: ToolServer) -> str:
    """Where a server is, for people: without credentials that may be in the URL, or the program's name."""
    if server.url is None:
        return server.command[0] if server.command else "no command"
    parts = urlsplit(server.url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
