"""The gated tool as a real MCP server over streamable HTTP: `python -m benchmarks.mcp_server PORT`."""

from __future__ import annotations

import sys

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from benchmarks.tools import refund

server = MCPServer("orders", log_level="ERROR")
server.tool()(refund)


async def healthz(_: Request) -> Response:
    """Answers as soon as the server does."""
    return PlainTextResponse("ok")


server.custom_route("/healthz", methods=["GET"])(healthz)


if __name__ == "__main__":
    uvicorn.run(
        server.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False
    )
