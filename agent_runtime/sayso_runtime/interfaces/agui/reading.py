"""Reads the input of a run. Pure: nothing here knows what is pending.

The thread is the session and the run is the message's id. Without `resume` (or with an empty one) the last message is
what the person says; with it, the messages are not read. Tools, context, state and forwarded properties of the front
end are passed over: the agent's own are the ones that an operator can gate.

    {interruptId, status: "resolved", payload: {approved, reason?, editedArgs? or result?}}    a verdict
    {interruptId, status: "resolved", payload: <anything else>}                                a value that was wanted
    {interruptId, status: "cancelled"}                                                         nobody decides
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from ag_ui.core import ResumeEntry, RunAgentInput, TextPart, UserMessage
from pydantic import ValidationError

from sayso_approvals.records import Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime import messages
from sayso_runtime.interfaces.answering import REQUEST, fingerprint
from sayso_runtime.interfaces.problems import Fault, identifier
from sayso_runtime.interfaces.strict_json import Parsed
from sayso_runtime.messages import Answer, DataPart, Inbound, NamedDecision

_VERDICT = frozenset({"approved", "reason", "editedArgs", "result"})


@dataclass(frozen=True, slots=True)
class Incoming:
    """A run's input, and what the service takes of it. `refused`: why it takes nothing, to be told as the run's end."""

    input: RunAgentInput
    inbound: Inbound | None
    refused: Refusal | None = None


def read(parsed: Parsed, requester: str) -> Incoming:
    """Raises `Fault` for what is no run's input; a decision that is malformed is `refused`."""
    try:
        given = RunAgentInput.model_validate(parsed.value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the body"
        raise Fault(422, f"{place}: {first['msg']}", (place,)) from None
    session_id, run_id = identifier(given.thread_id, "threadId"), identifier(given.run_id, "runId")
    try:
        decision, part = _said(given, parsed.duplicates)
    except Refusal as refusal:
        return Incoming(given, None, refusal)
    request = [session_id, part.text if isinstance(part, messages.TextPart) else part.data]
    inbound = Inbound(
        requester=requester,
        message_id=run_id,
        parts=(part,),
        context_id=session_id,
        decision=decision,
        metadata={REQUEST: fingerprint(request)},
    )
    return Incoming(given, inbound)


def _said(given: RunAgentInput, duplicates: Sequence[str]) -> tuple[NamedDecision | None, messages.TextPart | DataPart]:
    if duplicates:
        detail = f"an object says each thing once, but {', '.join(map(repr, duplicates))} is there twice"
        if given.resume:
            raise _malformed(detail, duplicates)
        raise Fault(422, detail, duplicates)
    if not given.resume:
        return None, messages.TextPart(_text(given))
    answers: dict[str, Answer] = {}
    for entry in given.resume:
        if entry.interrupt_id in answers:
            raise _malformed("an interrupt is answered once", (entry.interrupt_id,))
        answers[entry.interrupt_id] = _answer(entry)
    shown = [{"id": e.interrupt_id, "status": e.status, "payload": e.payload} for e in given.resume]
    return NamedDecision(answers, whole=True), DataPart({"resume": shown})


def _text(given: RunAgentInput) -> str:
    last = given.messages[-1] if given.messages else None
    if not isinstance(last, UserMessage):
        raise Fault(422, "the last message has to be the user's, or there has to be a resume", ("messages",))
    if isinstance(last.content, str):
        text = last.content
    else:
        if not all(isinstance(part, TextPart) for part in last.content):
            raise Fault(422, "only text is taken: leave out images, audio, video and documents", ("messages",))
        text = "\n".join(part.text for part in last.content if isinstance(part, TextPart))
    if not text.strip():
        raise Fault(422, "the last message says nothing", ("messages",))
    return text


def _answer(entry: ResumeEntry) -> Answer:
    """Whatever is not exactly a verdict can only be a value: the service refuses it where a verdict is wanted."""
    name, payload = entry.interrupt_id, entry.payload
    if not name or entry.model_extra:
        raise _malformed(f"an answer is {{interruptId, status, payload}}, without {_names(entry)}", (name,))
    if entry.status == "cancelled":
        if payload is not None:
            raise _malformed("what is cancelled has no payload: a refusal is resolved with approved false", (name,))
        return Answer(Verdict.CANCELLED)
    if not _is_verdict(payload):
        return Answer(Verdict.ANSWERED, value=payload, has_value=payload is not None)
    more = payload.get("editedArgs", payload.get("result"))
    return Answer(
        Verdict.APPROVED if payload["approved"] else Verdict.REJECTED,
        reason=payload.get("reason") or "",
        payload=more,
        has_payload=more is not None,
        value=payload,
        has_value=True,
    )


def _is_verdict(payload: Any) -> TypeGuard[dict[str, Any]]:
    return (
        isinstance(payload, dict)
        and payload.keys() <= _VERDICT
        and not payload.keys() >= {"editedArgs", "result"}
        and isinstance(payload.get("approved"), bool)
        and isinstance(payload.get("reason", ""), str | None)
    )


def _names(entry: ResumeEntry) -> str:
    return ", ".join(sorted(entry.model_extra or ())) or "an empty id"


def _malformed(detail: str, ids: Sequence[str]) -> Refusal:
    return Refusal("malformed_decision", f"{detail}. Nothing was decided.", tuple(ids))
