"""The last look at the turn's lease before a tool's request leaves this process.

Whoever drives the turn sets `fence`; a tool calls `check_fence()` as the last thing before it sends. The check reads
the monotonic clock only: a process that was stopped and continued finds its lease over before it can do harm.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from sayso_runtime.tools.outcome import NotSent

Fence = Callable[[], None]

#: Raises when the turn's lease is over. None: nobody holds a turn here (a tool that runs outside of a session).
fence: ContextVar[Fence | None] = ContextVar("sayso_fence", default=None)


class FenceLost(NotSent):
    """The turn's lease ended before the request was sent: another replica may be carrying on."""


def check_fence(server: str) -> None:
    """Raise `FenceLost`, naming `server`, if the current turn's lease is over."""
    check(fence.get(), server)


def check(the_fence: Fence | None, server: str) -> None:
    """As `check_fence`, for a fence that was taken along. Whatever the fence raises means that nothing may be sent."""
    if the_fence is None:
        return
    try:
        the_fence()
    except FenceLost:
        raise
    except Exception as error:
        raise FenceLost(server, f"the turn's lease is over ({error})") from error
