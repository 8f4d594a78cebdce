"""Functions that tests offer to agents, by `module:attribute`."""

from __future__ import annotations

from typing import Any

from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext

CALLS: list[tuple[str, Any]] = []
NUMBER = 7


def send_voucher(customer: str, amount: int = 5) -> dict[str, Any]:
    """Send a voucher to a customer."""
    CALLS.append(("send_voucher", (customer, amount)))
    return {"sent": amount, "to": customer}


async def look_up(customer: str, tool_context: ToolContext) -> dict[str, Any]:
    """Look a customer up."""
    CALLS.append(("look_up", customer))
    return {"customer": customer, "call": tool_context.function_call_id}


def wipe(customer: str) -> str:
    """Forget a customer."""
    CALLS.append(("wipe", customer))
    return "wiped"


confirmed_wipe = FunctionTool(wipe, require_confirmation=True)
slow_wipe = LongRunningFunctionTool(wipe)
