"""One tool call on its way to a server: what is known about it, shared by the caller and the transport.

The transport finds the call in `SENDING`, because the client library carries the caller's context to the place where
bytes are written. It asks `go()` for leave as the last thing before it writes, and says with `fail()` how the call
ended when no answer will come.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass, field

from sayso_runtime.tools.fence import Fence, check
from sayso_runtime.tools.outcome import NotSent, OutcomeUnknown, ToolRunError


class ErrorInstead(Exception):  # noqa: N818  it names what is known
    """The server did answer, but not with a tool result. The text is what the model is told."""


@dataclass(eq=False)
class Sending:
    """The state of one call. `sent` is True from the moment at which its first byte may have left.

    `deadline` is on the event loop's clock. `redirected` names where a redirect pointed that was not followed (yet).
    `status` is the HTTP status of the answer; 0 where there is none. `cut`: the answer's body ended early.
    """

    tool: str
    server: str
    label: str
    fence: Fence | None
    deadline: float
    sent: bool = False
    closed: bool = False
    cut: bool = False
    redirected: str = ""
    status: int = 0
    failed: asyncio.Future[ToolRunError | ErrorInstead] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def go(self) -> None:
        """Leave to send. Raises `NotSent` when nobody waits for the answer any more or the lease is over."""
        if self.closed:
            raise NotSent(self.server, f"{self.label}: the caller had stopped waiting before the request could leave")
        check(self.fence, self.server)
        self.sent = True
        self.redirected = ""

    def fail(self, error: ToolRunError | ErrorInstead) -> None:
        """The call is over without an answer. Only the first reason counts."""
        if not self.failed.done():
            self.failed.set_result(error)

    def lost(self, why: str) -> ToolRunError:
        """The right error for a failure of the way to the server: it depends on whether anything had left."""
        if self.sent:
            return OutcomeUnknown(self.tool, self.server, f"{self.label}: {why} after the request was sent")
        return NotSent(self.server, f"{self.label}: {why}. Check that the server runs and that its address is right")


SENDING: ContextVar[Sending | None] = ContextVar("sayso_sending", default=None)
