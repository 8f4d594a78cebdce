"""How a tool run can end when there is no result.

    ToolRunError
    ├── OutcomeUnknown     the request may have reached the server, and no answer came: a person settles
    └── NotSent            certainly nothing was sent: the call may be made again
        ├── SessionGone    the server refused the request because it no longer knows the session
        └── FenceLost      the turn's lease is over (in `fence.py`)
    ConfigProblem          the agent was configured in a way that cannot work

An error that the server itself answered with is a result, never one of these. A task that is cancelled while its call
is under way leaves with `asyncio.CancelledError`, as every coroutine must: whoever cancels it has to treat the call as
one whose outcome is unknown.
"""

from __future__ import annotations


class ToolRunError(Exception):
    """A tool run that ended without a result. `server` is the tool server's key, `why` says what happened."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(why)
        self.server = server
        self.why = why


class OutcomeUnknown(ToolRunError):  # noqa: N818  it names what is known
    """The request was, or may have been, sent and no answer came. It must not be sent again by a program."""

    def __init__(self, tool: str, server: str, why: str) -> None:
        super().__init__(server, why)
        self.tool = tool

    def __str__(self) -> str:
        return f"The outcome of {self.tool} on {self.server} is unknown: {self.why}"


class NotSent(ToolRunError):  # noqa: N818  it names what is known
    """Certainly nothing was sent, or the server refused to look at it."""

    def __str__(self) -> str:
        return f"Nothing was sent to {self.server}: {self.why}"


class SessionGone(NotSent):
    """The server does not know the session any more (it was restarted) and did not run the call."""


class ConfigProblem(Exception):  # noqa: N818  it names what is known
    """A configuration that cannot work. The text names the object, what is wrong and what to do."""
