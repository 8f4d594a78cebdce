"""Another agent as a tool: `<namespace>__NS__<name>(request)`.

Each call has a session of its own with the other agent. When that agent pauses, the call pauses too and shows what
waits there; what is decided here is passed on there, and the agent may pause again, each time as a further phase of the
same call. Ids of sessions and messages are made from what this agent's ledger keeps, so whoever takes a call up again
after a crash says the same thing once more instead of something new.

What goes along in a message's metadata (`sayso_requester`, `sayso_path`) is for people to read. It proves nothing and
opens nothing: who asks is for the door of the other agent to find out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from google.adk.tools.base_tool import BaseTool
from google.genai import types

from sayso_api.runtimeconfig import AgentBinding, AgentIdentity
from sayso_approvals import forwarding
from sayso_approvals.forwarding import Inner, Said
from sayso_approvals.records import CallView, Verdict
from sayso_runtime.engine.api import Scope, current
from sayso_runtime.tools.agent_peer import TASK_NOT_FOUND, Declined, Peer, PeerError
from sayso_runtime.tools.agent_reply import CONFIRMATION, INPUT_REQUIRED, Garbage, Reply
from sayso_runtime.tools.agent_talk import AGENT, NoAnswer, Talk
from sayso_runtime.tools.fence import check_fence

if TYPE_CHECKING:
    from google.adk.tools.tool_context import ToolContext

WAITING = {"status": "waiting for a say-so"}
#: What a verdict is called in a batch.
_WORDS = {Verdict.APPROVED: "approve", Verdict.REJECTED: "reject"}
_ENDS = {
    "failed": "failed",
    "rejected": "declined",
    "canceled": "was cancelled",
    "auth-required": "wants to know who asks, which cannot be told it",
}


class RemoteAgentTool(BaseTool):
    """One agent elsewhere. `tool` is what gates and people call it, `name` what the model does.

    `idempotent`: a Sayso agent answers a repeated message without doing anything twice, so a phase of its call may be
    taken up again after a crash; nobody can say that of another agent.
    """

    forwards = True

    def __init__(self, me: AgentIdentity, binding: AgentBinding, alias: str) -> None:
        self.path = binding.name if binding.namespace is None else f"{binding.namespace}/{binding.name}"
        super().__init__(name=alias, description=_description(self.path, binding.description))
        self.server = AGENT
        # An Agent of these manifests is that Agent wherever it listens today; another one is what its URL says.
        self.endpoint = binding.url if binding.namespace is None else f"agent:{self.path}"
        self.tool = binding.name
        self.idempotent = binding.namespace is not None
        self.timeout_seconds = binding.timeout_seconds
        self.peer = Peer((binding.url, *binding.more_urls), binding.timeout_seconds)
        self._me = me.path

    def _get_declaration(self) -> types.FunctionDeclaration:
        """One text goes in."""
        request = {"type": "string", "description": "What the agent is to do, with everything that it has to know."}
        schema = {"type": "object", "properties": {"request": request}, "required": ["request"]}
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        """Asks, or passes on what was decided. Raises NotSent and OutcomeUnknown; whatever else goes wrong with the
        agent is a result that names it."""
        scope = current(tool_context.session.id)
        call_id = tool_context.function_call_id or ""
        view = scope.claimed.get(call_id)
        talk = self._talk(scope)
        try:
            if view is not None and forwarding.is_forwarding(view):
                reply = await self._pass_on(talk, scope, view)
            else:
                request = args.get("request")
                if not isinstance(request, str) or not request.strip():
                    return {"error": f"{self.name} takes one argument, request: a text that says what to do"}
                reply = await talk.ask(self._request(scope, call_id, request))
        except NoAnswer as error:
            return {"error": f"The agent {self.path} gave no answer: {error}"}
        return self._outcome(reply, tool_context)

    async def withdraw(self, scope: Scope, view: CallView) -> str:
        """Cancels what waits at the agent. Returns why that is not certain, empty where it is."""
        payload = json.loads(view.call.payload)
        why = await self._talk(scope).withdraw(str(payload["task_id"]))
        return f"The agent {self.path} could not be told: {why}" if why else ""

    async def has_moved(self, view: CallView) -> bool:
        """Whether the agent's task is not any more where the call saw it stop. False where nobody can say now."""
        payload = json.loads(view.call.payload)
        try:
            reply = await self.peer.get(str(payload["task_id"]))
        except Declined as error:
            return error.number == TASK_NOT_FOUND
        except (PeerError, Garbage):
            return False
        return reply.moved(str(payload["stop"]))

    def _talk(self, scope: Scope) -> Talk:
        return Talk(
            peer=self.peer,
            name=self.path,
            own=self.idempotent,
            patience=self.timeout_seconds,
            fence=lambda: check_fence(AGENT),
            still_ours=scope.check,
            on_text=lambda text: scope.show(self.path, text),
        )

    # --- asking

    def _request(self, scope: Scope, call_id: str, request: str) -> dict[str, Any]:
        context = _mark(self._me, scope.turn.session_id, call_id)
        view = scope.claimed.get(call_id)
        # A say-so that is given again after a start that certainly failed is a new message.
        which = (view.pause.pause_id, str(view.state.attempt)) if view else ()
        return {
            "kind": "message",
            "role": "user",
            "messageId": _mark(context, "request", *which),
            "contextId": context,
            "parts": [{"kind": "text", "text": request}],
            "metadata": self._about(scope),
        }

    def _about(self, scope: Scope) -> dict[str, Any]:
        return {"sayso_requester": scope.turn.requester, "sayso_path": [*scope.path, self._me]}

    # --- passing on

    async def _pass_on(self, talk: Talk, scope: Scope, view: CallView) -> Reply:
        payload = json.loads(view.call.payload)
        task_id, stop = str(payload["task_id"]), str(payload["stop"])
        record = view.state.verdict
        said = forwarding.ordered(json.loads(record.payload)) if record else {}
        if record is None or not said:
            return await talk.look(task_id)
        inner = {one.child_id: one for one in forwarding.inner_calls(payload)}
        which = (view.pause.pause_id, view.call.call_id, repr(record.at), record.payload)
        reply: Reply | None = None
        for number, part in enumerate(_decisions(said, inner, by_id=self.idempotent)):
            message = {
                "kind": "message",
                "role": "user",
                "messageId": _mark(*which, str(number)),
                "taskId": task_id,
                "contextId": str(payload["context_id"]),
                "parts": [part, {"kind": "text", "text": "Decided by " + record.by}],
                "metadata": self._about(scope),
            }
            reply = await talk.decide(message, stop)
            stop = reply.stop
            if reply.state != INPUT_REQUIRED:
                break
        return reply if reply is not None else await talk.look(task_id)

    # --- what came of it

    def _outcome(self, reply: Reply, context: ToolContext) -> dict[str, Any]:
        if reply.state == INPUT_REQUIRED and reply.calls:
            context.request_confirmation(hint=self._hint(reply), payload=self._payload(reply))
            return dict(WAITING)
        if reply.state == "completed":
            return {"result": reply.text, "subagent_session_id": reply.context_id}
        if reply.state == INPUT_REQUIRED:
            return {"result": reply.text, "status": "the agent wants to know more: call it again with all it needs"}
        how = _ENDS.get(reply.state, f"stopped in the state {reply.state[:40]!r}")
        return {"error": f"The agent {self.path} {how}" + (f": {reply.text}" if reply.text else "")}

    def _payload(self, reply: Reply) -> dict[str, Any]:
        return {
            "task_id": reply.task_id,
            "context_id": reply.context_id,
            "subagent_name": self.tool,
            "subagent_session_id": reply.context_id,
            "hitl_parts": list(reply.calls),
            "stop": reply.stop,
        }

    def _hint(self, reply: Reply) -> str:
        names = ", ".join(call["originalFunctionCall"]["name"] for call in reply.calls)
        hints = " ".join(dict.fromkeys(str(call["hint"]) for call in reply.calls if "hint" in call))
        return f"The agent {self.path} waits with {names}." + (f" {hints}" if hints else "")


def _decisions(said: Mapping[str, Said], inner: Mapping[str, Inner], *, by_id: bool) -> list[dict[str, Any]]:
    """The data parts of the decisions to send, verdicts first.

    Sayso agents are told by the ids of the questions that were shown: a call that meanwhile asks something else has
    another one. Others know verdicts by the ids of calls, and answers in one form that stands for whatever is asked.
    """

    def name(id_: str) -> str:
        return inner[id_].confirmation_id if by_id and id_ in inner else id_

    plain = {id_: one for id_, one in said.items() if not one.has_payload and one.verdict in _WORDS}
    words = {name(id_): _WORDS[one.verdict] for id_, one in plain.items()}
    reasons = {name(id_): one.reason for id_, one in plain.items() if one.verdict is Verdict.REJECTED and one.reason}
    parts: list[dict[str, Any]] = []
    if words:
        batch: dict[str, Any] = {"decision_type": "batch", "decisions": words}
        parts.append(_data(batch | ({"rejection_reasons": reasons} if reasons else {})))
    for id_, one in said.items():
        if not one.has_payload:
            continue
        answers = one.payload.get("ask_user_answers") if isinstance(one.payload, dict) else None
        if not by_id and answers is not None:
            parts.append(_data({"decision_type": "approve", "ask_user_answers": answers}))
            continue
        response = {"confirmed": one.verdict is not Verdict.REJECTED, "payload": one.payload}
        marks = {"adk_type": "function_response", "kagent_type": "function_response"}
        parts.append(_data({"name": CONFIRMATION, "id": name(id_), "response": response}, marks))
    return parts


def _data(data: dict[str, Any], metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"kind": "data", "data": data, "metadata": dict(metadata or {})}


def _mark(*what: str) -> str:
    """The same id for the same things, on every replica and after every restart."""
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:32]


def _description(path: str, description: str) -> str:
    return f"Asks the agent {path}, which answers in text." + (f" {description}" if description else "")
