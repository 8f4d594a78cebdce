"""The last look at the turn's lease before a tool's request leaves this process.

Whoever drives the turn sets `FENCE`; a tool calls `check_fence()` as the last thing before it sends. The check reads
the monotonic clock only: a process that was stopped and continued finds its lease over before it can do harm.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from sayso_runtime.tools.outcome import NotSent

Fence = Callable[[], None]

#: Raises `FenceLost` when the turn's lease is over. None: nobody holds a turn here (a tool run outside of a session).
FENCE: ContextVar[Fence | None] = ContextVar("sayso_fence", default=None)


class FenceLost(NotSent):
    """The turn's lease ended before the request was sent: another replica may be carrying on."""


def check_fence() -> None:
    """Raise `FenceLost` if the current turn's lease is over."""
    fence = FENCE.get()
    if fence is not None:
        fence()
