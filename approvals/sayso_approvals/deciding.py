"""Deciding and settling, as far as it is words: what may be said about a call, and how it is written down.

Pure functions. They raise the refusals that need no look at Redis, and word those that a script has given.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sayso_approvals import questions
from sayso_approvals.digest import NotCanonical, loads_strict
from sayso_approvals.reading import Entry, Reader
from sayso_approvals.records import AgentId, CallView, Kind, Pause, Verdict, VerdictRecord
from sayso_approvals.refusals import Code, Refusal


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a message finds on arrival, read in one step.

    `answering`: another decision of this session is still being answered, so a verdict without ids cannot mean what is
    open now. `task_id` is the session's newest task. `last` is the newest decided call, for saying what became of it.
    `answer` is what the message got when it came before; `task` the version and document of the task that it names.
    """

    requester: str | None  # None: the session does not exist
    task_id: str | None
    calls: list[CallView]  # not done
    answering: bool
    last: CallView | None
    answer: str | None = None
    task: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One verdict about one call, to be sealed and stored by `Ledger.decide`. `payload` is JSON text."""

    pause_id: str
    call_id: str
    digest: str
    verdict: Verdict
    reason: str = ""
    payload: str = "null"


@dataclass(frozen=True, slots=True)
class Settlement:
    """A person's word about an unknown outcome, ready to be sealed."""

    record: VerdictRecord
    result: str = ""
    is_error: bool = False
    note: str = ""


#: Who decided what comes from here; what a person may say about each kind of question.
_SAYABLE = {
    Kind.TOOL_CALL: {Verdict.APPROVED, Verdict.REJECTED},
    Kind.CONFIRMATION: {Verdict.APPROVED, Verdict.REJECTED},
    Kind.CONTINUE: {Verdict.APPROVED, Verdict.REJECTED},
    Kind.INPUT_REQUIRED: {Verdict.ANSWERED},
    Kind.QUESTION: {Verdict.ANSWERED, Verdict.REJECTED},
    Kind.FORWARD: {Verdict.APPROVED, Verdict.REJECTED},  # approved with an order (`forwarding.py`): pass this on
}
_ALWAYS = {Verdict.CANCELLED, Verdict.SUPERSEDED}
_LATE: dict[Verdict, Code] = {
    Verdict.EXPIRED: "expired",
    Verdict.SUPERSEDED: "superseded",
    Verdict.CANCELLED: "cancelled",
}


def check_pause(pause: Pause, agent: AgentId, session_id: str) -> None:
    """Raises ValueError for a pause that no run of this session can have opened."""
    ids = [call.call_id for call in pause.calls]
    if pause.agent != agent or pause.session_id != session_id:
        raise ValueError(f"pause {pause.pause_id} is not one of {agent}'s session {session_id}")
    if not ids or len(set(ids)) != len(ids):
        raise ValueError(f"pause {pause.pause_id} needs calls, each with an id of its own")
    if pause.expires_at <= 0:
        raise ValueError(f"pause {pause.pause_id} needs a time at which it expires")


def check_words(choices: Sequence[Choice]) -> None:
    """Refuses an empty batch, two verdicts for one call, and payloads that are not JSON."""
    if not choices:
        raise Refusal("malformed_decision", "The decision names no call.")
    ids = [(choice.pause_id, choice.call_id) for choice in choices]
    if twice := tuple(sorted({call_id for pause_id, call_id in ids if ids.count((pause_id, call_id)) > 1})):
        raise Refusal("malformed_decision", "There are two verdicts for one call.", twice)
    for choice in choices:
        _json(choice.payload, choice.call_id)


def check_found(choices: Sequence[Choice], entries: Sequence[Entry | None]) -> str:
    """The one session that all choices are about; refuses the ones that cannot be meant."""
    missing = [c.call_id for c, entry in zip(choices, entries, strict=True) if entry is None]
    if missing:
        raise Refusal("unknown_call", "No call with this id is pending.", tuple(missing))
    found = [(choice, entry) for choice, entry in zip(choices, entries, strict=True) if entry is not None]
    spoiled = [c.call_id for c, entry in found if not entry.view.intact and c.verdict is not Verdict.CANCELLED]
    if spoiled:
        raise Refusal("integrity", "Its record was changed: it can only be cancelled.", tuple(spoiled))
    other = [c.call_id for c, entry in found if entry.view.intact and c.digest != entry.view.call.digest]
    if other:
        raise Refusal("integrity", "The verdict is about other arguments than those that wait.", tuple(other))
    for choice, entry in found:
        kind = entry.view.call.kind
        if choice.verdict not in _SAYABLE[kind] | _ALWAYS:
            raise Refusal("malformed_decision", f"A call of kind {kind} cannot be {choice.verdict}.", (choice.call_id,))
        if kind is Kind.QUESTION and choice.verdict is Verdict.ANSWERED:
            questions.check(entry.view.call.arguments, choice.payload, choice.call_id)
    sessions = {entry.session_id for _, entry in found}
    if len(sessions) > 1:
        raise Refusal(
            "malformed_decision",
            "One decision is about one session: send one for each.",
            tuple(choice.call_id for choice in choices),
        )
    return sessions.pop()


def arguments(reader: Reader, entry: Entry, choice: Choice, *, by: str, via: str, at: float) -> tuple[str | int, ...]:
    """The twelve arguments of `decide.lua` for one choice."""
    view = entry.view
    record = VerdictRecord(
        pause_id=view.pause.pause_id,
        call_id=view.call.call_id,
        digest=view.call.digest,
        verdict=choice.verdict,
        by=by,
        at=at,
        via=via,
        attempt=view.state.attempt,
        reason=choice.reason,
        payload=choice.payload,
    )
    return (
        entry.at,
        int(not view.intact),
        entry.sealed.sha,
        entry.sealed.mac,
        entry.vmac,
        int(view.expires_at * 1000),
        str(choice.verdict),
        *reader.seal_verdict(record),
        *reader.seal_verdict(_nobody(view, Verdict.EXPIRED)),
        view.state.attempt,
    )


def expiry(reader: Reader, at: str, due_ms: int, entry: Entry | None) -> tuple[str | int, ...]:
    """The eight arguments of `expire.lua` for one call. One that is not there any more leaves the index."""
    if entry is None:
        return (at, 0, "", "", due_ms, "", "", 1)
    view = entry.view
    if view.intact:
        sealed = reader.seal_verdict(_nobody(view, Verdict.EXPIRED))
        return (at, 0, entry.sealed.sha, entry.sealed.mac, int(view.expires_at * 1000), *sealed, view.state.attempt)
    return (at, 1, "", "", due_ms, *reader.seal_verdict(_nobody(view, Verdict.CANCELLED)), view.state.attempt)


def _nobody(view: CallView, verdict: Verdict) -> VerdictRecord:
    """The same text from every replica: nobody decided before the time was over."""
    return VerdictRecord(
        pause_id=view.pause.pause_id,
        call_id=view.call.call_id,
        digest=view.call.digest,
        verdict=verdict,
        by="",
        at=view.expires_at,
        via="expiry",
        attempt=view.state.attempt,
        reason="" if verdict is Verdict.EXPIRED else "its record was changed, and its time was over",
    )


def refusal(offenders: Sequence[tuple[str, Entry | None]]) -> Refusal:
    """What the loser hears: who decided the first call, when and what; and the ids of all that were not open.

    Each offender is a call's id and the call as it is now (None: it is not there any more).
    """
    ids = tuple(call_id for call_id, _ in offenders)
    call_id, entry = offenders[0]
    if entry is None:
        return Refusal("unknown_call", f"Call {call_id} is not pending any more.", ids)
    if not entry.view.intact:
        return Refusal("integrity", f"The record of call {call_id} was changed: it can only be cancelled.", ids)
    record = entry.view.state.verdict
    if record is None:
        return Refusal("already_decided", f"Call {call_id} changed at this very moment: look again.", ids)
    code = _LATE.get(record.verdict, "already_decided")
    when = datetime.fromtimestamp(record.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    detail = (
        f"Nobody decided call {call_id} before {when}."
        if record.verdict is Verdict.EXPIRED
        else f"Call {call_id} was {record.verdict} by {record.by or 'nobody'} at {when}."
    )
    return Refusal(
        code,
        detail,
        ids,
        decided_by=record.by or None,
        decided_at=record.at,
        verdict=str(record.verdict),
        reason=record.reason or None,
    )


def settlement(
    entry: Entry | None,
    call_id: str,
    action: str,
    result: str | None,
    *,
    by: str,
    reason: str,
    attempt: int,
    at: float,
) -> tuple[Entry, Settlement]:
    """What `settle.lua` writes for one of `retry`, `result` and `abandon`."""
    if entry is None:
        raise Refusal("unknown_call", "There is no such call.", (call_id,))
    view = entry.view
    if not view.intact:
        raise Refusal("integrity", "Its record was changed: it can only be cancelled.", (call_id,))
    if (action == "result") != (result is not None) or action not in {"retry", "result", "abandon"}:
        raise Refusal(
            "malformed_decision", "Settle with retry, with result and its value, or with abandon.", (call_id,)
        )

    def record(verdict: Verdict, number: int, payload: str = "null") -> VerdictRecord:
        return VerdictRecord(
            pause_id=view.pause.pause_id,
            call_id=call_id,
            digest=view.call.digest,
            verdict=verdict,
            by=by,
            at=at,
            via="settle",
            attempt=number,
            reason=reason,
            payload=payload,
        )

    if action == "retry":
        return entry, Settlement(record(Verdict.APPROVED, attempt + 1), note=f"{by} ordered it to run again.")
    if result is not None:
        _json(result, call_id)
        return entry, Settlement(record(Verdict.ANSWERED, attempt, result), result, note=f"{by} gave the result.")
    why = f": {reason}" if reason else ""
    error = f"Nobody knows whether this call ran. {by} abandoned it{why}"
    text = json.dumps({"error": error})
    return entry, Settlement(record(Verdict.CANCELLED, attempt, text), text, is_error=True, note=error)


def not_settled(call_id: str, reply: Sequence[object], now: Entry | None) -> Refusal:
    """What the person hears whose settlement was refused; `now` is the call as it is."""
    if reply[0] == "early":
        left = max(1, -(-(int(str(reply[2])) - int(str(reply[1]))) // 1000))
        return Refusal(
            "paused",
            f"Call {call_id} may still be under way. Settle it in {left} s.",
            (call_id,),
            extra={"retryAfterSeconds": left},
        )
    if now is None or not now.view.intact:
        return refusal([(call_id, now)])
    state = now.view.state
    detail = (
        f"The outcome of call {call_id} is not in doubt (attempt {state.attempt}, {state.journal or 'not started'})."
    )
    found = refusal([(call_id, now)])
    return Refusal(
        "already_decided",
        f"{detail} {state.note}".rstrip(),
        (call_id,),
        decided_by=found.decided_by,
        decided_at=found.decided_at,
        verdict=found.verdict,
        reason=found.reason,
    )


def _json(text: str, call_id: str) -> None:
    try:
        loads_strict(text)
    except NotCanonical as error:
        raise Refusal(
            "malformed_decision", f"The value given for call {call_id} is not JSON ({error}).", (call_id,)
        ) from None
