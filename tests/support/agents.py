"""Agents in the test's own process: the real service, engine and ledger around agents that a test builds by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool
from redis.asyncio import Redis

from sayso_api.runtimeconfig import ModelSettings, ScriptedCall, ScriptedTurn
from sayso_approvals.gate import Judgement
from sayso_approvals.ledger import Ledger
from sayso_approvals.records import AgentId, Verdict
from sayso_runtime.engine.adk.engine import AdkEngine
from sayso_runtime.messages import Answer, Inbound, NamedDecision, Task, TextPart, UniformDecision
from sayso_runtime.models.build import build_model
from sayso_runtime.service import RunService
from sayso_runtime.turns import Turns, TurnSettings

KEY = b"k" * 32
AGENT = AgentId("shop", "refund-desk")
_ids = itertools.count(1)


def call(name: str, call_id: str | None = None, **args: Any) -> ScriptedCall:
    """One call of a scripted reply."""
    return ScriptedCall(name=name, args=args, id=call_id)


def says(text: str) -> ScriptedTurn:
    """A reply of text."""
    return ScriptedTurn(text=text)


def calls(*made: ScriptedCall, text: str | None = None) -> ScriptedTurn:
    """A reply of calls."""
    return ScriptedTurn(calls=made, text=text)


def fails(why: str = "503 overloaded", times: int = 1, text: str | None = None) -> ScriptedTurn:
    """A reply that fails so often before it comes."""
    return ScriptedTurn(fail=why, fail_times=times, text=text)


@dataclass
class Counter:
    """What really happened: model calls, and tool runs with their arguments, in order."""

    models: int = 0
    runs: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    def model_called(self) -> None:
        """A hook for models."""
        self.models += 1
        self.order.append("model")

    def ran(self, tool: str, **arguments: Any) -> None:
        """Called by tools when they run."""
        self.runs.append((tool, arguments))
        self.order.append(tool)

    def model(self, *turns: ScriptedTurn, retries: int = 0) -> Any:
        """A scripted model that is counted."""
        settings = ModelSettings(provider="Scripted", turns=turns, retries=retries)
        return build_model(settings, {}, self.model_called)

    def tool(self, name: str, result: Any = None, *, gated: bool = True, **options: Any) -> FunctionTool:
        """A tool of one argument that says that it ran."""

        def run(order: str = "") -> Any:
            self.ran(name, order=order)
            if isinstance(result, Exception):
                raise result
            return result if result is not None else {"done": f"{name} {order}".strip()}

        run.__name__ = name
        run.__doc__ = f"{name} an order"
        made = FunctionTool(run, **options)
        made.gated = gated
        return made


class ByTool:
    """Gates the tools named: the rule of these tests, in place of an Agent's lists."""

    def __init__(self, *gated: str) -> None:
        self._gated = gated

    def judge(self, node: str, server: str, tool: str, arguments: Mapping[str, Any]) -> Judgement:
        """See `sayso_approvals.gate.Gate.judge`."""
        del node, server, arguments
        name = tool.rpartition(":")[2]
        if name in self._gated:
            return Judgement("ask", ("Agent shop/refund-desk",), "")
        return Judgement("allow", (), "")


class Replica:
    """One replica of an agent: what a process would hold."""

    def __init__(
        self,
        redis: Redis,
        root: Any,
        gated: Sequence[str],
        *,
        lease: float = 5.0,
        timeout: float = 3600.0,
        on_timeout: str = "Cancel",
        while_paused: str = "Refuse",
        key: bytes = KEY,
    ) -> None:
        self.ledger = Ledger(redis, AGENT, key, lease_seconds=lease)
        self.engine = AdkEngine(root, ByTool(*gated))
        settings = TurnSettings(agent=AGENT, timeout_seconds=timeout, on_timeout=on_timeout)
        self.turns = Turns(self.ledger, self.engine, settings, lease_seconds=lease)
        self.service = RunService(self.ledger, self.turns, while_paused=while_paused)

    async def say(self, text: str, session: str = "s1", who: str = "alice", **more: Any) -> Task:
        """Sends a message and waits for the end."""
        return await self._send(Inbound(who, _id(), (TextPart(text),), context_id=session, **more))

    async def decide(
        self, answers: Mapping[str, Answer | str] | str, session: str = "s1", who: str = "alice", **more: Any
    ) -> Task:
        """Sends verdicts by id, or one without ids, and waits for the end."""
        decision = (
            UniformDecision(verdict(answers))
            if isinstance(answers, str)
            else NamedDecision({k: verdict(v) if isinstance(v, str) else v for k, v in answers.items()})
        )
        message = more.pop("message_id", None) or _id()
        return await self._send(
            Inbound(who, message, (TextPart("a decision"),), context_id=session, decision=decision, **more)
        )

    async def uniform(self, answer: Answer, session: str = "s1", who: str = "alice") -> Task:
        """Sends one answer without ids, and waits for the end."""
        said = UniformDecision(answer)
        return await self._send(Inbound(who, _id(), (TextPart("a decision"),), context_id=session, decision=said))

    async def _send(self, inbound: Inbound) -> Task:
        run = await self.service.send(inbound)
        try:
            return await run.result()
        finally:
            await run.answered()


def verdict(word: str, reason: str = "") -> Answer:
    """approve, reject or cancel."""
    words = {"approve": Verdict.APPROVED, "reject": Verdict.REJECTED, "cancel": Verdict.CANCELLED}
    return Answer(words[word], reason)


def _id() -> str:
    return f"m{next(_ids)}"


def agent(name: str, model: Any, tools: Sequence[Any] = (), **more: Any) -> LlmAgent:
    """An ADK agent."""
    return LlmAgent(name=name, model=model, instruction="Help.", tools=list(tools), **more)


def reply(task: Task) -> str:
    """The text of the task's last artifact."""
    return "".join(p.text for p in task.artifacts[-1].parts if isinstance(p, TextPart)) if task.artifacts else ""


Make = Callable[[], Replica]
