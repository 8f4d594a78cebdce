"""An MCP server's tool as ADK sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.tools.base_tool import BaseTool
from google.genai import types

from sayso_runtime.tools.mcp_server import McpConnection

if TYPE_CHECKING:
    from google.adk.tools.tool_context import ToolContext

    from sayso_runtime.tools.mcp_link import OfferedTool


class McpTool(BaseTool):
    """One tool of one server. `name` is what the model calls it, `tool` what the server does.

    `server` (the key), `endpoint` and `tool` are what a say-so is bound to. `idempotent` comes from the platform's own
    declaration; the server's `annotations` are its claims and loosen nothing.
    """

    def __init__(
        self, connection: McpConnection, offered: OfferedTool | None, tool: str, alias: str, *, idempotent: bool
    ) -> None:
        description = offered.description if offered is not None else ""
        super().__init__(name=alias, description=description)
        self.server = connection.server.key
        self.endpoint = connection.server.endpoint
        self.tool = tool
        self.idempotent = idempotent
        self.timeout_seconds = connection.server.timeout_seconds
        self.annotations: dict[str, Any] = dict(offered.annotations) if offered is not None else {}
        self._offered = offered
        self._connection = connection

    def _get_declaration(self) -> types.FunctionDeclaration:
        """The server's own schema, unchanged."""
        offered = self._offered
        return types.FunctionDeclaration(
            name=self.name,
            description=self.description,
            parameters_json_schema=offered.input_schema if offered is not None else {"type": "object"},
            response_json_schema=offered.output_schema if offered is not None else None,
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        """The server's answer, its errors included. Raises NotSent or OutcomeUnknown."""
        return await self._connection.call(self.tool, args, self.timeout_seconds)
