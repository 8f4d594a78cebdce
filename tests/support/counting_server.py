"""An MCP server whose executions can be counted from outside: each appends one JSON line to $COUNTING_FILE.

    python counting_server.py --transport http|sse|stdio [--port N] [--delay SECONDS] [--tls-cert F --tls-key F]

Tools: add_order(order_id, amount), refund(order_id, amount), cancel_order(order_id), get_order(order_id),
broken(order_id), which fails, slow(seconds), large(size), and reveal(name), which makes the server offer one more tool.
A line is {"tool", "args", "pid"}; it is written before the answer. Over HTTP the endpoint is /mcp, over SSE /sse.
`COUNTING_TOKEN` set: requests need `Authorization: Bearer <its value>`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations

app = MCPServer("counting")
DELAY = 0.0


def note(tool: str, **args: Any) -> None:
    """Append one line, in one write."""
    line = json.dumps({"tool": tool, "args": args, "pid": os.getpid()}) + "\n"
    with Path(os.environ["COUNTING_FILE"]).open("ab", buffering=0) as file:
        file.write(line.encode())


@app.tool()
async def add_order(order_id: str, amount: float) -> str:
    """Add an order."""
    note("add_order", order_id=order_id, amount=amount)
    await asyncio.sleep(DELAY)
    return f"added {order_id}"


@app.tool(annotations=ToolAnnotations(destructive_hint=True))
async def refund(order_id: str, amount: float) -> str:
    """Pay money back."""
    note("refund", order_id=order_id, amount=amount)
    await asyncio.sleep(DELAY)
    return f"refunded {amount:g} for {order_id}"


@app.tool()
async def cancel_order(order_id: str) -> str:
    """Cancel an order."""
    note("cancel_order", order_id=order_id)
    await asyncio.sleep(DELAY)
    return f"cancelled {order_id}"


@app.tool(annotations=ToolAnnotations(read_only_hint=True))
async def get_order(order_id: str) -> dict[str, Any]:
    """Look an order up."""
    note("get_order", order_id=order_id)
    await asyncio.sleep(DELAY)
    return {"order_id": order_id, "state": "paid"}


@app.tool()
async def broken(order_id: str) -> str:
    """Always fails."""
    note("broken", order_id=order_id)
    raise ValueError(f"no such order: {order_id}")


@app.tool()
async def slow(seconds: float) -> str:
    """Answers late."""
    note("slow", seconds=seconds)
    await asyncio.sleep(seconds)
    return "late"


@app.tool()
async def large(size: int) -> str:
    """Answers with `size` characters."""
    note("large", size=size)
    return "x" * size


@app.tool()
async def reveal(name: str, ctx: Context) -> str:
    """Offer one more tool from now on."""
    note("reveal", name=name)

    async def revealed(order_id: str) -> str:
        note(name, order_id=order_id)
        return name

    app.add_tool(revealed, name=name, description="Came later.")
    await ctx.session.send_tool_list_changed()
    return "revealed"


class TokenCheck:
    """Refuse requests without the bearer token."""

    def __init__(self, inner: Any, token: str) -> None:
        self.inner = inner
        self.expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and dict(scope["headers"]).get(b"authorization") != self.expected:
            await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
            return
        await self.inner(scope, receive, send)


def main() -> None:
    """Run until killed."""
    global DELAY
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", choices=["http", "sse", "stdio"], required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--tls-cert")
    parser.add_argument("--tls-key")
    options = parser.parse_args()
    DELAY = options.delay
    if options.transport == "stdio":
        app.run("stdio")
        return
    inner = app.streamable_http_app() if options.transport == "http" else app.sse_app()
    token = os.environ.get("COUNTING_TOKEN")
    uvicorn.run(
        TokenCheck(inner, token) if token else inner,
        host="127.0.0.1",
        port=options.port,
        log_level="warning",
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
        timeout_graceful_shutdown=1,
    )


if __name__ == "__main__":
    main()
