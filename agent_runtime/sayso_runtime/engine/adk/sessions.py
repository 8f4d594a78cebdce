"""ADK sessions on the ledger: events are appended, never rewritten, and read once per process.

ADK appends each event as it happens. Writing each one at once would cost a round trip (and an fsync) per event, so
they gather in the turn's `Scope` and are stored where it matters: before a tool runs, and together with the pause or
the answer at the end of the turn. A turn that dies in between leaves what was stored before it; `repair` then tells the
model what happened to calls that have no response.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
from google.adk.sessions.session import Session
from google.genai import types

from sayso_approvals.ledger import TurnLost
from sayso_runtime.engine.api import Scope, current

#: Sessions kept parsed in memory, and how many events they may hold together.
MAX_SESSIONS = 256
MAX_EVENTS = 20_000

CONFIRMATION = "adk_request_confirmation"
_FRAMEWORK_CALLS = frozenset({CONFIRMATION, "adk_request_credential", "adk_request_input"})


@dataclass(slots=True)
class Known:
    """A session as this process has it. `length` counts the events that are stored for certain."""

    session: Session
    length: int = 0
    call_ids: set[str] = field(default_factory=set)
    unanswered: dict[str, Event] = field(default_factory=dict)
    confirmations: dict[str, tuple[str, str]] = field(default_factory=dict)  # call id -> confirmation id, event id

    def note(self, event: Event) -> None:
        """Keeps the indices up to date with one more event."""
        for call in event.get_function_calls():
            if not call.id:
                continue
            if call.name == CONFIRMATION:
                original = (call.args or {}).get("originalFunctionCall")
                genuine = call.id in (event.long_running_tool_ids or ())
                if genuine and isinstance(original, dict) and isinstance(original.get("id"), str):
                    self.confirmations[original["id"]] = (call.id, event.id)
            elif call.name not in _FRAMEWORK_CALLS:
                self.call_ids.add(call.id)
                self.unanswered[call.id] = event
        for response in event.get_function_responses():
            if response.id:
                self.unanswered.pop(response.id, None)


class LedgerSessions(BaseSessionService):
    """ADK's session service for turns that are open in this process."""

    def __init__(self, app_name: str) -> None:
        self._app_name = app_name
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._kept = 0  # events of all sessions kept
        self._open: dict[str, tuple[Scope, Known]] = {}

    async def open(self, scope: Scope) -> Known:
        """Brings the session up to what is stored, and binds it to the turn."""
        session_id = scope.turn.session_id
        known = self._take_out(session_id)
        if known is None or known.length > scope.turn.length:
            known = Known(Session(id=session_id, app_name=self._app_name, user_id=scope.turn.requester))
        if known.length < scope.turn.length:
            for text in await scope.ledger.events(session_id, known.length):
                event = Event.model_validate_json(text)
                self._commit_event_to_session(known.session, event)
                known.note(event)
            known.length = scope.turn.length
        self._open[session_id] = (scope, known)
        return known

    def close(self, scope: Scope, *, keep: bool) -> None:
        """Ends the binding. `keep` False: what is in memory is not what is stored. A later turn's binding stays."""
        session_id = scope.turn.session_id
        bound = self._open.get(session_id)
        if bound is not None and bound[0] is not scope:
            return
        self._open.pop(session_id, None)
        if bound is None or not keep:
            self._take_out(session_id)
            return
        _, known = bound
        known.length = scope.turn.length
        self._known[session_id] = known
        self._kept += known.length
        while len(self._known) > 1 and (len(self._known) > MAX_SESSIONS or self._kept > MAX_EVENTS):
            _, evicted = self._known.popitem(last=False)
            self._kept -= evicted.length

    def _take_out(self, session_id: str) -> Known | None:
        known = self._known.pop(session_id, None)
        if known is not None:
            self._kept -= known.length
        return known

    def known(self, session_id: str) -> Known:
        """The session of the turn that is open."""
        return self._open[session_id][1]

    def mine(self, scope: Scope) -> Known:
        """The session, for the turn that has it open. Raises `TurnLost` for any other."""
        bound = self._open.get(scope.turn.session_id)
        if bound is None or bound[0] is not scope:
            raise TurnLost(f"turn {scope.turn.token} of session {scope.turn.session_id} was lost")
        return bound[1]

    def repair(self, scope: Scope, delegations: Collection[str] = ()) -> None:
        """Answers calls that were left without a response by a turn that died.

        A gated call always has a response (a placeholder, or what became of it) once it is stored, so what is left is
        what ran freely. `delegations` are names of agents: a call of one is unanswered for as long as that agent waits.
        """
        known = self.mine(scope)
        by_event: dict[str, tuple[Event, list[types.Part]]] = {}
        for call_id, event in known.unanswered.items():
            call = next(c for c in event.get_function_calls() if c.id == call_id)
            if call.name not in delegations:
                response = types.FunctionResponse(id=call_id, name=call.name, response={"error": _left_open(call)})
                by_event.setdefault(event.id, (event, []))[1].append(types.Part(function_response=response))
        for event, parts in by_event.values():
            answer = Event(
                invocation_id=event.invocation_id,
                author=event.author,
                branch=event.branch,
                content=types.Content(role="user", parts=parts),
            )
            self._append(scope, known, answer)

    def ask_again(self, scope: Scope, call_id: str) -> None:
        """Puts a further question about a call that was resumed: ADK puts only the first one.

        The question has the form of ADK's own, so that ADK takes the answer.
        """
        known = self.mine(scope)
        made = next(e for e in known.session.events if any(c.id == call_id for c in e.get_function_calls()))
        call = next(c for c in made.get_function_calls() if c.id == call_id)
        placeholder = next(
            e
            for e in reversed(known.session.events)
            if call_id in e.actions.requested_tool_confirmations
            and any(r.id == call_id for r in e.get_function_responses())
        )
        question = types.FunctionCall(
            name=CONFIRMATION,
            id=f"adk-{uuid.uuid4()}",
            args={
                "originalFunctionCall": call.model_dump(exclude_none=True, by_alias=True),
                "toolConfirmation": placeholder.actions.requested_tool_confirmations[call_id].model_dump(
                    exclude_none=True, by_alias=True
                ),
            },
        )
        event = Event(
            invocation_id=placeholder.invocation_id,
            author=placeholder.author,
            branch=placeholder.branch,
            content=types.Content(role="model", parts=[types.Part(function_call=question)]),
            long_running_tool_ids={question.id or ""},
        )
        self._append(scope, known, event)

    def _append(self, scope: Scope, known: Known, event: Event) -> None:
        self._commit_event_to_session(known.session, event)
        known.note(event)
        scope.events.append(event.model_dump_json(exclude_none=True, by_alias=True))
        for response in event.get_function_responses():
            waits = response.id in scope.doubts or response.id in scope.unsent  # it is a placeholder, and no answer
            if event.author != "user" and response.id in scope.claimed and not waits:
                scope.told.add(response.id)

    # --- what ADK calls

    async def append_event(self, session: Session, event: Event) -> Event:
        """Adds the event to the session in memory and to what the turn's next commit stores."""
        if event.partial:
            return event
        scope = current(session.id)
        known = self.mine(scope)
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        self._append(scope, known, event)
        return event

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """The session of the open turn; None where no turn is open."""
        del app_name, user_id, config
        bound = self._open.get(session_id)
        return bound[1].session if bound else None

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """Refused: a session begins with its first turn."""
        raise NotImplementedError("sessions begin with their first turn, in the ledger")

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Refused: sessions are listed from the ledger."""
        raise NotImplementedError("sessions are listed from the ledger")

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Refused: an agent does not delete sessions."""
        raise NotImplementedError("an agent does not delete sessions")


def _left_open(call: types.FunctionCall) -> str:
    return f"Outcome unknown: the agent stopped while {call.name} was running. It may or may not have taken effect."
