"""The conversation that every system has, and the words that this folder uses for it.

A *cycle* is what a person sees as one gated action: a message that ends in a pause, and the approval that ends in the
answer. A *turn* of a session is one cycle and one plain question with its answer after it, as in a chat: three model
replies, one tool call, one pause. "At turn 60" is the cycle of a session that already holds 59 such turns.

The scripted model chooses its reply from the number of model replies that the session already holds, so each
system's model does the same work, and none of it is a network call.
"""

from __future__ import annotations

from sayso_api.runtimeconfig import (
    AgentIdentity,
    AgentNode,
    Binding,
    FunctionBinding,
    McpBinding,
    ModelSettings,
    RuntimeConfig,
    ScriptedCall,
    ScriptedTurn,
    ToolServer,
)

AGENT = "bench_desk"
DESCRIPTION = "Answers refund questions and issues refunds."
INSTRUCTION = "You help customers of a shop. Look an order up before you refund it."
REQUEST = "Please refund order A-1 in full, the parcel never came."
ANSWER = "Done: the money is on its way back."
QUESTION = "Thank you. How long does that take?"

#: One turn's model replies, in order: the gated call, the answer after it, the answer to the plain question.
REPLIES: tuple[ScriptedTurn, ...] = (
    ScriptedTurn(calls=(ScriptedCall(name="refund", args={"order_id": "A-1", "amount": 20}),)),
    ScriptedTurn(text=ANSWER),
    ScriptedTurn(text="About three working days."),
)


def reply(index: int) -> ScriptedTurn:
    """The model's reply in a session that already holds `index` of them."""
    return REPLIES[index % len(REPLIES)]


def runtime_config(*, turns: int, mcp_url: str | None = None) -> RuntimeConfig:
    """Sayso's configuration of the same agent, scripted for sessions of up to `turns` turns.

    The tool is `benchmarks.tools:refund` in process, or the same tool of the MCP server at `mcp_url`.
    """
    name = "bench-desk"
    servers: tuple[ToolServer, ...] = ()
    tool: Binding = FunctionBinding(ref="benchmarks.tools:refund", require_approval=True)
    if mcp_url is not None:
        name = "bench-desk-mcp"  # an agent of its own: replicas of one agent take up each other's work
        servers = (ToolServer(key="bench/orders", url=mcp_url),)
        tool = McpBinding(server="bench/orders", require_approval=("refund",))
    return RuntimeConfig(
        agent=AgentIdentity(namespace="bench", name=name),
        root=AgentNode(name=AGENT, description=DESCRIPTION, instruction=INSTRUCTION, tools=(tool,)),
        model=ModelSettings(provider="Scripted", turns=REPLIES * turns),
        servers=servers,
        ask_user=False,
    )
