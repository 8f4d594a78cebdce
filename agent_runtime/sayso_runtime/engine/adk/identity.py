"""Which tool a call would run, and which calls only steer ADK itself."""

from __future__ import annotations

from dataclasses import dataclass

from google.adk.agents.llm.task._finish_task_tool import FinishTaskTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.tools.set_model_response_tool import SetModelResponseTool
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool, transfer_to_agent

#: ADK's own flow control: it touches nothing outside of the process, and what it leads to is gated where it happens.
#: Told by what the tool is, never by its name: a user's function may have any name.
_FLOW_CLASSES = (FinishTaskTool, SetModelResponseTool, TransferToAgentTool)
_FLOW_FUNCTIONS = (exit_loop, transfer_to_agent)


def is_flow_control(tool: BaseTool) -> bool:
    """Whether the tool only steers ADK."""
    return type(tool) in _FLOW_CLASSES or any(getattr(tool, "func", None) is function for function in _FLOW_FUNCTIONS)


@dataclass(frozen=True, slots=True)
class ToolIdentity:
    """Which tool a call would run, as gates, digests and people name it."""

    server: str
    endpoint: str
    tool: str
    idempotent: bool = False
    timeout_seconds: float = 30.0

    @property
    def rule(self) -> str:
        """What gates call it: a function goes by its reference, anything else by the server's own name."""
        return self.endpoint.removeprefix("function:") if self.server == "function" else self.tool


def identify(tool: BaseTool) -> ToolIdentity:
    """The identity that our own tools carry as attributes; any other ADK tool counts as a function of its module."""
    server = getattr(tool, "server", None)
    if isinstance(server, str):
        return ToolIdentity(
            server=server,
            endpoint=str(getattr(tool, "endpoint", "")),
            tool=str(getattr(tool, "tool", tool.name)),
            idempotent=bool(getattr(tool, "idempotent", False)),
            timeout_seconds=float(getattr(tool, "timeout_seconds", 30.0)),
        )
    function = getattr(tool, "func", None)
    where = getattr(function, "__module__", None) or type(tool).__module__
    return ToolIdentity(server="function", endpoint=f"function:{where}:{tool.name}", tool=tool.name)
