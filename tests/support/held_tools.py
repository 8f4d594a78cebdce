"""Tools that can be held before or after their effect, in an agent's process or, run as a program, as an MCP server.

    python -m support.held_tools --port N          serves `charge`, `look` and `again` at /mcp

Everything is said and heard through files in $HELD_DIR:

    effects                one JSON line per effect, {"tool", "order", "pid"}, safe on the disk before the tool goes on
    hold-<tool>-before     while it exists, the tool writes `at-<tool>-before` before its effect, and waits for `go`
    hold-<tool>-after      the same between the effect and the answer
    drop                   the server commits, then resets all of its connections instead of answering
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

#: What drops every connection of this process; only a server has any.
DROP: list[Callable[[], None]] = []


async def act(tool: str, order: str) -> str:
    """The effect, with the points around it."""
    await _point(tool, "before")
    _note(tool, order)
    await _point(tool, "after")
    if (_directory() / "drop").exists():
        for drop in DROP:
            drop()
    return f"{tool} {order}: done"


async def refund(order: str) -> str:
    """Pay money back."""
    return await act("refund", order)


async def look(order: str) -> str:
    """Look an order up."""
    return await act("look", order)


async def again(order: str) -> str:
    """Set an order's state, which may be done twice."""
    return await act("again", order)


async def slow(order: str) -> str:
    """Pay money back, with as much time for it as tools have by default."""
    return await act("slow", order)


# How long the ledger takes for granted that a call may still be under way, in seconds.
refund.timeout_seconds = look.timeout_seconds = again.timeout_seconds = 0.2  # type: ignore[attr-defined]


def _directory() -> Path:
    return Path(os.environ["HELD_DIR"])


async def _point(tool: str, when: str) -> None:
    directory = _directory()
    if not (directory / f"hold-{tool}-{when}").exists():
        return
    (directory / f"at-{tool}-{when}").touch()
    while not (directory / "go").exists():
        await asyncio.sleep(0.01)


def _note(tool: str, order: str) -> None:
    line = json.dumps({"tool": tool, "order": order, "pid": os.getpid()}) + "\n"
    descriptor = os.open(_directory() / "effects", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, line.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def main() -> None:
    """Serves until killed."""
    import uvicorn
    from mcp.server.mcpserver import MCPServer

    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port
    app = MCPServer("held")

    async def charge(order: str) -> str:
        """Take money."""
        return await act("charge", order)

    for tool in (charge, look, again):
        app.add_tool(tool)
    config = uvicorn.Config(app.streamable_http_app(), host="127.0.0.1", port=port, log_level="warning")
    server = uvicorn.Server(config)

    def drop() -> None:
        for connection in list(server.server_state.connections):
            connection.transport.abort()

    DROP.append(drop)
    server.run()


if __name__ == "__main__":
    main()
