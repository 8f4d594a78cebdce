"""The gate: one ADK plugin that stands in front of every tool call of every agent in the process.

ADK asks plugins before it runs a tool, wherever the call sits in a tree of agents. The gate answers:

    no say-so needed          the call runs
    a say-so is needed        the call is noted in the turn's scope and a placeholder goes back; ADK pauses
    the agent asks a person   the call is noted like one that needs a say-so; the answers are its result
    a verdict was claimed     approved: the journal is told, then the call runs, at most once
                              otherwise: the model reads who said no, or that nobody decided

Anything unexpected here never runs a tool: a fault while judging asks, a fault while resuming ends the turn.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from sayso_approvals import questions
from sayso_approvals.digest import NotCanonical, canonical, digest
from sayso_approvals.forwarding import is_forwarding
from sayso_approvals.ledger import TurnLost
from sayso_approvals.records import Begin, CallView, Kind, PausedCall, Verdict, VerdictRecord
from sayso_approvals.refusals import Refusal
from sayso_runtime import logs
from sayso_runtime.engine.adk.identity import ToolIdentity, identify, is_flow_control
from sayso_runtime.engine.adk.sessions import LedgerSessions
from sayso_runtime.engine.adk.wording import as_json, is_failure, refused
from sayso_runtime.engine.api import Scope, current
from sayso_runtime.tools.ask_user import AskUserTool
from sayso_runtime.tools.fence import FenceLost, fence
from sayso_runtime.tools.outcome import NotSent, OutcomeUnknown

log = logging.getLogger(__name__)

_RESERVED = ("adk_", "sayso_")
#: Seconds for which a result is offered to a Redis that is away, and the first pause between two offers.
KEEP_SECONDS = 30.0
FIRST_DELAY = 0.05
#: How often an idempotent tool is called again when no answer came.
AGAIN = 2
_WAITING = {"status": "waiting for a say-so"}
#: Whose tools may ask something themselves, and where the journal keeps what they asked beside what they returned.
_MAY_ASK = ("function", "agent")
_ASKED = "sayso_asked"


class Judge(Protocol):
    """What says whether a call needs a say-so (`sayso_approvals.gate.Gate`)."""

    def judge(self, node: str, server: str, tool: str, arguments: Mapping[str, Any]) -> Any: ...


@runtime_checkable
class Withdraws(Protocol):
    """A tool that stands for another agent, whose pauses it passes on (`tools/remote_agent.py`)."""

    path: str

    async def withdraw(self, scope: Scope, view: CallView) -> str: ...


class GatePlugin(BasePlugin):
    """See the module. `nodes` maps ADK agent names to node names of the configuration."""

    def __init__(
        self,
        judge: Judge,
        sessions: LedgerSessions,
        *,
        hint: str = "",
        nodes: Mapping[str, str] | None = None,
        on_execution: Callable[[str, str, str], None] = lambda server, tool, outcome: None,
    ) -> None:
        super().__init__(name="sayso_gate")
        self._judge = judge
        self._sessions = sessions
        self._hint = hint
        self._nodes = nodes or {}
        self._on_execution = on_execution

    # --- before a call

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """None lets the tool run; a dict is what the model is told instead."""
        if type(tool) is BaseTool:
            return None  # the model named a tool that does not exist: ADK tells it so, nothing runs
        if is_flow_control(tool):
            return None
        scope = current(tool_context.session.id)
        logs.bind(call=tool_context.function_call_id or "")
        try:
            if isinstance(tool, AskUserTool):
                return await self._question(scope, tool, tool_args, tool_context)
            if tool_context.tool_confirmation is not None:
                return await self._carry_out(scope, tool, tool_args, tool_context)
            return await self._ask_or_run(scope, tool, tool_args, tool_context)
        except Exception as error:
            scope.failure = scope.failure or error
            raise

    async def _ask_or_run(
        self, scope: Scope, tool: BaseTool, arguments: dict[str, Any], context: ToolContext
    ) -> dict[str, Any] | None:
        identity = identify(tool)
        node = self._nodes.get(context.agent_name, context.agent_name)
        gated_by: tuple[str, ...]
        try:
            judgement = self._judge.judge(node, identity.server, identity.rule, arguments)
            action, gated_by = str(judgement.action), tuple(judgement.gated_by)
            why = str(judgement.why)
        except Exception:
            log.exception("judging %s on %s failed, so it asks", identity.tool, identity.server)
            action, gated_by, why = "ask", ("an error while judging",), ""
        if action == "allow":
            await scope.flush()  # the call is on record before it can have an effect
            scope.ran = True
            scope.running[context.function_call_id or ""] = identity
            return None
        if action == "deny":
            return {"status": "denied", "message": f"Denied by policy {', '.join(gated_by)}: {why}"}
        try:
            call = self._paused_call(Kind.TOOL_CALL, identity, tool, arguments, context, gated_by)
        except NotCanonical as error:
            return {"error": f"{error}. Nothing was run. Send such a value as a string."}
        self._pause(scope, context, call)
        return dict(_WAITING)

    async def _question(
        self, scope: Scope, tool: AskUserTool, arguments: dict[str, Any], context: ToolContext
    ) -> dict[str, Any]:
        """Puts the model's questions to a person, or tells the model what was answered. Nothing ever runs."""
        if context.tool_confirmation is not None:
            return await self._answered(scope, tool, arguments, context)
        try:
            asked = questions.read(arguments)
            more = f" (and {len(asked) - 1} more)" if len(asked) > 1 else ""
            call = self._paused_call(
                Kind.QUESTION,
                identify(tool),
                tool,
                arguments,
                context,
                (f"agent {self._nodes.get(context.agent_name, context.agent_name)}",),
                hint=f"{context.agent_name} asks: {asked[0].text}{more}",
            )
        except (questions.BadQuestions, NotCanonical) as error:
            return {"error": f"{error}. Nobody was asked. Ask again, rightly."}
        self._pause(scope, context, call)
        return dict(_WAITING)

    async def _answered(
        self, scope: Scope, tool: AskUserTool, arguments: dict[str, Any], context: ToolContext
    ) -> dict[str, Any]:
        view, verdict = _decided(scope, context)
        if verdict.verdict is not Verdict.ANSWERED:
            return await self._refused(scope, tool, view)
        _check_same(view, verdict, identify(tool), arguments)
        return {"result": questions.result(questions.read(arguments), json.loads(verdict.payload))}

    def _paused_call(
        self,
        kind: Kind,
        identity: ToolIdentity,
        tool: BaseTool,
        arguments: dict[str, Any],
        context: ToolContext,
        gated_by: tuple[str, ...],
        phase: int = 1,
        hint: str = "",
        payload: Any = None,
    ) -> PausedCall:
        call_id = context.function_call_id or ""
        if not call_id:
            raise ValueError(f"the call of {identity.tool} has no id")
        return PausedCall(
            call_id=call_id,
            kind=kind,
            server=identity.server,
            endpoint=identity.endpoint,
            tool=identity.tool,
            alias=tool.name,
            arguments=canonical(arguments),
            digest=digest(identity.server, identity.endpoint, identity.tool, arguments),
            phase=phase,
            hint=hint or self._hint or f"{context.agent_name} wants to call {tool.name}. Do you approve?",
            payload=json.dumps(payload, ensure_ascii=False),
            gated_by=gated_by,
            idempotent=identity.idempotent,
            timeout_seconds=identity.timeout_seconds,
            node=context.agent_name,
        )

    def _pause(self, scope: Scope, context: ToolContext, call: PausedCall) -> None:
        context.request_confirmation(hint=call.hint, payload=None)
        context.actions.skip_summarization = True
        scope.asks[call.call_id] = call

    # --- a verdict has come

    async def _carry_out(
        self, scope: Scope, tool: BaseTool, arguments: dict[str, Any], context: ToolContext
    ) -> dict[str, Any] | None:
        call_id = context.function_call_id or ""
        view, verdict = _decided(scope, context)
        if verdict.verdict is not Verdict.APPROVED:
            return await self._refused(scope, tool, view)
        identity = identify(tool)
        _check_same(view, verdict, identity, arguments)
        begin, result, is_error = await scope.ledger.begin(scope.turn, view)
        match begin:
            case Begin.RUN:
                log.info("running %s on %s: approved by %s", identity.tool, identity.server, verdict.by)
                scope.ran = True
                scope.begun.add(call_id)
                scope.running[call_id] = identity
                fence.set(partial(scope.check_call, view.call))  # in the task that runs this tool, and only there
                return None
            case Begin.FINISHED:
                scope.ran = True
                scope.finished.add(call_id)
                stored: dict[str, Any] = json.loads(result or "{}")
                del is_error
                return self._told_before(scope, identity, tool, arguments, context, stored)
            case Begin.UNKNOWN:
                return self._doubt(scope, context, "the agent stopped while it was running")
            case _:
                raise TurnLost(scope.turn.session_id)

    async def _refused(self, scope: Scope, tool: BaseTool, view: CallView) -> dict[str, Any]:
        """What the model reads. A call that waits for another agent is cancelled there first."""
        told = refused(view)
        if is_forwarding(view) and isinstance(tool, Withdraws) and (why := await tool.withdraw(scope, view)):
            told["message"] = f"{told['message']}. {why}"
        return told

    def _told_before(
        self,
        scope: Scope,
        identity: ToolIdentity,
        tool: BaseTool,
        arguments: dict[str, Any],
        context: ToolContext,
        stored: dict[str, Any],
    ) -> dict[str, Any]:
        """What the tool returned before a crash, and what it asked then."""
        question = stored.pop(_ASKED, None) if identity.server in _MAY_ASK else None
        if question is not None:
            context.request_confirmation(hint=question["hint"], payload=question["payload"])
            self._note_question(scope, identity, tool, arguments, context)
        return stored

    def _doubt(self, scope: Scope, context: ToolContext, why: str) -> dict[str, Any]:
        """Leaves the call without an answer: it is asked about again until a person settles it."""
        context.request_confirmation(hint=f"outcome unknown: {why}", payload=None)
        context.actions.skip_summarization = True
        scope.doubts[context.function_call_id or ""] = why
        return dict(_WAITING)

    # --- after a call

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        """Keeps the result in the journal, and notes when the tool itself asks something."""
        scope = current(tool_context.session.id)
        call_id = tool_context.function_call_id or ""
        if call_id in scope.doubts or call_id in scope.unsent:
            return None
        identity: ToolIdentity | None = scope.running.pop(call_id, None)
        if identity is None:
            return None
        try:
            await self._finished(scope, identity, call_id, result, tool_context)
            self._note_question(scope, identity, tool, tool_args, tool_context)
        except Exception as error:
            scope.failure = scope.failure or error
            raise
        return None

    async def _finished(
        self, scope: Scope, identity: ToolIdentity, call_id: str, result: Any, context: ToolContext
    ) -> None:
        is_error = is_failure(result)
        self._on_execution(identity.server, identity.tool, "error" if is_error else "success")
        view = scope.claimed.get(call_id)
        if view is not None and view.call.kind is not Kind.INPUT_REQUIRED:
            question = context.actions.requested_tool_confirmations.get(call_id)
            if question is not None and identity.server in _MAY_ASK:
                asked = {"hint": question.hint, "payload": question.payload}
                result = {**(result if isinstance(result, dict) else {"result": result}), _ASKED: asked}
            await _keep_result(scope, view, as_json(result), is_error=is_error)
            scope.finished.add(call_id)

    def _note_question(
        self,
        scope: Scope,
        identity: ToolIdentity,
        tool: BaseTool,
        arguments: dict[str, Any],
        context: ToolContext,
    ) -> None:
        call_id = context.function_call_id or ""
        question = context.actions.requested_tool_confirmations.get(call_id)
        if question is None and not tool.is_long_running:
            return
        before = scope.claimed.get(call_id)
        phase = before.call.phase + 1 if before else 1
        asker = f"agent {tool.path}" if isinstance(tool, Withdraws) else f"tool {identity.tool}"
        if question is not None:
            context.actions.skip_summarization = True
            kind = Kind.FORWARD if isinstance(tool, Withdraws) else Kind.CONFIRMATION
            call = self._paused_call(
                kind, identity, tool, arguments, context, (asker,), phase, question.hint, question.payload
            )
        else:
            call = self._paused_call(
                Kind.INPUT_REQUIRED, identity, tool, arguments, context, (asker,), phase, f"{tool.name} wants a value."
            )
            call = replace(call, confirmation_id=call_id)
        scope.asks[call_id] = call

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: BaseException
    ) -> dict[str, Any] | None:
        """Tells what is known not to have run, what failed, and what nobody can know apart."""
        scope = current(tool_context.session.id)
        call_id = tool_context.function_call_id or ""
        identity: ToolIdentity | None = scope.running.get(call_id)
        if not isinstance(error, Exception) or isinstance(error, FenceLost | TurnLost | Refusal):
            scope.running.pop(call_id, None)
            scope.failure = scope.failure or (error if isinstance(error, Exception) else None)
            return None  # the turn ends; the journal says how far it came
        view = scope.claimed.get(call_id)
        try:
            if isinstance(error, OutcomeUnknown) and view is not None and view.call.idempotent:
                return await self._again(scope, view, tool, tool_args, tool_context, error)
            if isinstance(error, OutcomeUnknown | NotSent) and (identity is None or view is None):
                if identity is not None and isinstance(error, OutcomeUnknown):
                    self._on_execution(identity.server, identity.tool, "unknown")
                    scope.running.pop(call_id, None)
                return {"error": str(error)}
            match error:
                case OutcomeUnknown() if view is not None:
                    self._on_execution(view.call.server, view.call.tool, "unknown")
                    await scope.ledger.doubt(scope.turn, view, str(error))
                    scope.running.pop(call_id, None)
                    return self._doubt(scope, tool_context, str(error))
                case NotSent() if view is not None:
                    await scope.ledger.unsent(scope.turn, view, str(error))
                    scope.running.pop(call_id, None)
                    scope.unsent[call_id] = str(error)
                    self._doubt(scope, tool_context, str(error))
                    del scope.doubts[call_id]
                    return dict(_WAITING)
                case _:
                    return {"error": f"{type(error).__name__}: {error}"} if identity is not None else None
        except Exception as fault:
            scope.failure = scope.failure or fault
            raise

    async def _again(
        self,
        scope: Scope,
        view: CallView,
        tool: BaseTool,
        arguments: dict[str, Any],
        context: ToolContext,
        error: OutcomeUnknown,
    ) -> dict[str, Any]:
        """Calls a tool again that says it is safe to: a bounded number of times, and each start is on record."""
        for _ in range(AGAIN):
            log.warning("%s; it is idempotent, so it is called again", error)
            begin, _, _ = await scope.ledger.begin(scope.turn, view)
            if begin is not Begin.RUN:
                raise TurnLost(scope.turn.session_id)
            try:
                result = await tool.run_async(args=arguments, tool_context=context)
            except OutcomeUnknown as unknown:
                error = unknown
            else:
                return result if isinstance(result, dict) else {"result": result}
        return {"error": str(error)}

    # --- after the model

    async def after_model_callback(self, *, callback_context: Any, llm_response: LlmResponse) -> None:
        """Makes the ids of calls unique in the session, and takes reserved names away from the model.

        Verdicts name calls by id, so two calls must not share one. A model that says it calls one of the framework's
        own questions must not be able to forge one.
        """
        if llm_response.partial or not llm_response.content:
            return
        current(callback_context.session.id)
        known = self._sessions.known(callback_context.session.id)
        for part in llm_response.content.parts or []:
            call = part.function_call
            if call is None:
                continue
            if call.name and call.name.startswith(_RESERVED):
                call.name = f"not_a_tool_{call.name}"
            if call.id:
                base, n = call.id[:200].replace(":outcome:", "-outcome-"), 1
                call.id = base
                while call.id in known.call_ids:
                    n += 1
                    call.id = f"{base}-{n}"
                known.call_ids.add(call.id)


def _decided(scope: Scope, context: ToolContext) -> tuple[CallView, VerdictRecord]:
    """The claimed call that is resumed, and the verdict on it. Raises `integrity` where there is none."""
    call_id = context.function_call_id or ""
    view = scope.claimed.get(call_id)
    verdict = view.state.verdict if view else None
    if view is None or verdict is None:
        raise Refusal("integrity", f"no verdict is on record for {call_id}: nothing was run", ids=(call_id,))
    return view, verdict


def _check_same(view: CallView, verdict: VerdictRecord, identity: ToolIdentity, arguments: dict[str, Any]) -> None:
    """Raises `integrity` unless what would happen now is what the person saw."""
    call = view.call
    if not view.intact:
        raise Refusal("integrity", f"the record of {call.call_id} was changed: nothing was run", ids=(call.call_id,))
    found = digest(identity.server, identity.endpoint, identity.tool, arguments)
    if found != call.digest or verdict.digest != call.digest:
        raise Refusal(
            "integrity",
            f"what would run for {call.call_id} is not what was approved ({call.alias}): nothing was run; cancel it",
            ids=(call.call_id,),
        )


async def _keep_result(scope: Scope, view: CallView, result: str, *, is_error: bool) -> None:
    """Stores what a tool returned, and does not give up at once when Redis is away: without the result in the journal
    nobody can know later whether the call ran. Storing it twice does no harm."""
    delay = FIRST_DELAY
    give_up = time.monotonic() + KEEP_SECONDS
    while True:
        try:
            await scope.ledger.finish(scope.turn, view, result, is_error=is_error)
            return
        except Refusal as refusal:
            if refusal.code != "store_unreachable" or time.monotonic() + delay > give_up:
                raise
            log.warning("the result of %s is not stored yet: %s", view.call.call_id, refusal.detail)
        await asyncio.sleep(delay)
        delay = min(delay * 2, 1.0)
