"""A tool server over the order book: real MCP over streamable HTTP.

    python examples/refund-desk/orders_server.py --port 8765 --database orders.sqlite

It knows nothing of say-sos: which of its tools need one is written in the Agent.
"""

from __future__ import annotations

import argparse
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from order_book import OrderBook, OrderError
from pydantic import Field

OrderId = Annotated[str, Field(pattern=r"^[A-Z]-[0-9]{1,9}$", description="The order's number, such as A-1001.")]
Amount = Annotated[float, Field(gt=0, le=1_000_000, description="How much to pay back, with at most two decimals.")]
Reason = Annotated[str, Field(max_length=500, description="Why, in a few words.")]


def server(book: OrderBook) -> MCPServer:
    """The tools. What an order does not allow comes back as a tool's error, which the model can read."""
    tools = MCPServer("orders", instructions="The order book of a shop.")

    @tools.tool()
    def get_order(order_id: OrderId) -> dict[str, Any]:
        """Look up an order: who bought what, what was paid, and what was paid back."""
        try:
            return book.order(order_id)
        except OrderError as error:
            raise ToolError(str(error)) from error

    @tools.tool()
    def refund(order_id: OrderId, amount: Amount, reason: Reason = "") -> dict[str, Any]:
        """Pay money back to the customer of an order."""
        try:
            return book.refund(order_id, Decimal(str(amount)), reason)
        except OrderError as error:
            raise ToolError(str(error)) from error

    @tools.tool()
    def cancel_order(order_id: OrderId, reason: Reason = "") -> dict[str, Any]:
        """Cancel an order that was not delivered yet, and pay everything back."""
        try:
            return book.cancel(order_id, reason)
        except OrderError as error:
            raise ToolError(str(error)) from error

    return tools


def main() -> None:
    """Serves until it is ended."""
    options = argparse.ArgumentParser(description="The order book's tool server.")
    options.add_argument("--port", type=int, default=8765)
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--database", type=Path, default=Path("orders.sqlite"))
    chosen = options.parse_args()
    server(OrderBook(chosen.database)).run("streamable-http", host=chosen.host, port=chosen.port)


if __name__ == "__main__":
    main()
