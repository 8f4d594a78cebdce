"""`AdkEngine`: turns of an ADK agent, resumed exactly where they stopped.

What ADK 2.13 does on resume, and what follows for us (each tried against its code):

* it replays the call of a confirmation before it calls the model, but only for the last user event: so answers of one
  question event go together, and each further branch gets a run of its own;
* after a partial answer it ends without saying that something is still open: so what is open is read from the ledger;
* in some topologies it drops an answer: so every answer is checked for having been consumed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.telemetry.context import ContentCapturingMode, TelemetryConfig
from google.genai import types

from sayso_approvals.ledger import TurnLost
from sayso_approvals.records import CallView, Kind, Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.engine.adk.gate import GatePlugin, Judge
from sayso_runtime.engine.adk.sessions import CONFIRMATION, LedgerSessions
from sayso_runtime.engine.adk.wording import refused
from sayso_runtime.engine.api import SCOPE, Called, Capabilities, EngineEvent, ModelFailed, Returned, Scope, Spoken
from sayso_runtime.messages import CallPart, DataPart, Part, ResultPart, TextPart
from sayso_runtime.tools.fence import FenceLost, fence

log = logging.getLogger(__name__)

# ADK announces that resumability is experimental; its version is pinned, and operators cannot act on it.
warnings.filterwarnings("ignore", message=r"\[EXPERIMENTAL\]", category=UserWarning)


class AdkEngine:
    """Runs one tree of ADK agents behind the gate."""

    capabilities = Capabilities(name="adk", partial_answers=True, structured_payload=True, cancelled_is_distinct=True)

    def __init__(
        self,
        root: BaseAgent,
        judge: Judge,
        *,
        hint: str = "",
        nodes: Mapping[str, str] | None = None,
        on_execution: Any = None,
    ) -> None:
        app_name = f"sayso_{root.name}"[:100]
        self._sessions = LedgerSessions(app_name)
        more = {"on_execution": on_execution} if on_execution else {}
        self._gate = GatePlugin(judge, self._sessions, hint=hint, nodes=nodes, **more)
        self._runner = Runner(
            app=App(
                name=app_name,
                root_agent=root,
                plugins=[self._gate],
                resumability_config=ResumabilityConfig(is_resumable=True),
            ),
            session_service=self._sessions,
        )
        # One decision for all runs: left out, ADK reads the environment anew at every step. What models and tools say
        # does not belong in traces.
        telemetry = TelemetryConfig(
            genai_semconv_stability_opt_in="stable", capture_message_content=ContentCapturingMode.NO_CONTENT
        )
        self._config = RunConfig(telemetry=telemetry)
        self._agents = frozenset(_names(root))

    async def start(self, scope: Scope, parts: Sequence[Part]) -> AsyncIterator[EngineEvent]:
        """A new message: what a dead turn left open is answered first."""
        await self._sessions.open(scope)
        self._sessions.repair(scope)
        content = types.Content(role="user", parts=[_to_adk(part) for part in parts])
        async for event in self._run(scope, content):
            yield event

    async def resume(self, scope: Scope) -> AsyncIterator[EngineEvent]:
        """Answers every claimed call, one run of ADK per question event."""
        known = await self._sessions.open(scope)
        if scope.turn.dirty:
            self._sessions.repair(scope, delegations=self._agents)
        groups: dict[str, list[types.Part]] = {}
        for call_id, view in scope.claimed.items():
            if view.call.kind is Kind.CONTINUE:
                continue  # the others take the run on
            if view.call.kind is Kind.INPUT_REQUIRED:
                asked_in, answer_id, name = f"value:{call_id}", call_id, view.call.alias
                # ADK takes it as a message, not as something that a tool returned: nobody else would hear of it
                yield Returned((ResultPart(call_id, name, _answer(view)),))
            elif call_id in known.confirmations:
                answer_id, asked_in = known.confirmations[call_id]
                name = CONFIRMATION
            else:
                log.error("session %s has no question for call %s", scope.turn.session_id, call_id)
                continue
            part = types.Part(function_response=types.FunctionResponse(id=answer_id, name=name, response=_answer(view)))
            groups.setdefault(asked_in, []).append(part)
        answered = {
            call_id: known.confirmations[call_id][0] for call_id in scope.claimed if call_id in known.confirmations
        }
        for parts in groups.values():
            async for event in self._run(scope, types.Content(role="user", parts=parts)):
                yield event
        for call_id in (*scope.asks, *scope.doubts, *scope.unsent):
            asked = known.confirmations.get(call_id)
            if asked and asked[0] == answered.get(call_id) and not _wants_value(scope, call_id):
                self._sessions.ask_again(scope, call_id)
        self._name_questions(scope)

    async def proceed(self, scope: Scope) -> AsyncIterator[EngineEvent]:
        """Calls the model again on what the session holds."""
        known = await self._sessions.open(scope)
        if not known.session.events:
            raise Refusal("not_found", f"session {scope.turn.session_id} has nothing to go on from")
        self._sessions.repair(scope, delegations=self._agents)
        invocation = known.session.events[-1].invocation_id
        async for event in self._run(scope, None, invocation):
            yield event

    def committed(self, scope: Scope) -> None:
        """Keeps the session for the next turn."""
        self._sessions.close(scope, keep=True)

    def forget(self, scope: Scope) -> None:
        """Drops the session: the next turn reads it from the ledger."""
        self._sessions.close(scope, keep=False)

    async def close(self) -> None:
        """Closes the tools of the agents."""
        await self._runner.close()

    async def _run(
        self, scope: Scope, content: types.Content | None, invocation: str | None = None
    ) -> AsyncIterator[EngineEvent]:
        tokens = (fence.set(scope.check), SCOPE.set(scope))
        pending: dict[str, CallPart] = {}
        reported = ""
        try:
            events = self._runner.run_async(
                user_id=scope.turn.requester,
                session_id=scope.turn.session_id,
                invocation_id=invocation,
                new_message=content,
                run_config=self._config,
            )
            async with aclosing(events):
                async for event in events:
                    if event.error_code and not event.partial:
                        # ADK tells of an exception so too, and raises it afterwards: that one says more
                        reported = f"{event.error_code}: {event.error_message or 'the model gave no reason'}"
                    for out in self._translate(scope, event, pending):
                        yield out
        except Exception as error:
            with contextlib.suppress(TurnLost):
                self._name_questions(scope)
            cause = scope.failure or error
            if isinstance(cause, FenceLost):
                raise TurnLost(scope.turn.session_id) from error
            if cause is error:
                raise
            raise cause from error
        finally:
            _reset(tokens)
        if reported:
            raise ModelFailed(reported)
        self._name_questions(scope)

    def _name_questions(self, scope: Scope) -> None:
        """Gives each new question the id under which ADK asks it."""
        known = self._sessions.mine(scope)
        for call_id, call in scope.asks.items():
            if call.kind is not Kind.INPUT_REQUIRED and call_id in known.confirmations:
                scope.asks[call_id] = replace(call, confirmation_id=known.confirmations[call_id][0])

    def _translate(self, scope: Scope, event: Event, pending: dict[str, CallPart]) -> list[EngineEvent]:
        out: list[EngineEvent] = []
        text = "".join(
            p.text for p in (event.content.parts if event.content else None) or [] if p.text and not p.thought
        )
        if text:
            final = bool(event.is_final_response()) and not event.get_function_calls()
            out.append(Spoken(text, partial=bool(event.partial), final=final and not event.partial))
        if event.partial:
            return out
        for call in event.get_function_calls():
            if call.id and call.name and not call.name.startswith("adk_"):
                pending[call.id] = CallPart(call.id, call.name, dict(call.args or {}))
        results: list[ResultPart] = []
        for response in event.get_function_responses():
            call_id = response.id or ""
            if call_id in scope.asks or call_id in scope.doubts or call_id in scope.unsent:
                continue
            body = response.response or {}
            failed = set(body) == {"error"} or bool(body.get("isError"))
            results.append(ResultPart(call_id, response.name or "", body, failed))
        if results:
            calls = tuple(pending.pop(r.id) for r in results if r.id in pending)
            if calls:
                out.append(Called(calls))
            out.append(Returned(tuple(results)))
        return out


def _wants_value(scope: Scope, call_id: str) -> bool:
    return call_id in scope.asks and scope.asks[call_id].kind is Kind.INPUT_REQUIRED


def _names(root: Any) -> Iterator[str]:
    for child in getattr(root, "sub_agents", ()) or ():
        yield child.name
        yield from _names(child)


def _reset(tokens: tuple[Any, Any]) -> None:
    # A generator that is closed by another task ends in another context, where there is nothing to reset.
    try:
        fence.reset(tokens[0])
        SCOPE.reset(tokens[1])
    except ValueError:
        log.debug("the turn's context was another one")


def _to_adk(part: Part) -> types.Part:
    match part:
        case TextPart():
            return types.Part(text=part.text)
        case DataPart():
            return types.Part(text=json.dumps(part.data, ensure_ascii=False))
        case _:
            raise TypeError(f"a {type(part).__name__} cannot come from a client")


def _answer(view: CallView) -> dict[str, Any]:
    """The function response that tells ADK of a verdict. ADK does not carry the question's payload over: we do."""
    verdict = view.state.verdict
    if verdict is None:
        raise ValueError(f"{view.call.call_id} was claimed without a verdict")
    payload = json.loads(verdict.payload)
    if view.call.kind is Kind.INPUT_REQUIRED:
        if verdict.verdict is not Verdict.ANSWERED:
            return refused(view)
        return payload if isinstance(payload, dict) else {"result": payload}
    asked = json.loads(view.call.payload)
    if isinstance(asked, dict) and isinstance(payload, dict):
        payload = asked | payload
    elif payload is None:
        payload = asked
    return {"confirmed": verdict.verdict in (Verdict.APPROVED, Verdict.ANSWERED), "payload": payload}
