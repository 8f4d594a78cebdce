"""What a decision means for what is pending: pure, and refusing the whole message over any doubt."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sayso_approvals.forwarding import inner_of, named
from sayso_approvals.ledger import Choice, Resolution
from sayso_approvals.records import CallView, Kind, Verdict
from sayso_approvals.refusals import Code, Refusal
from sayso_runtime import nested
from sayso_runtime.answers import to_questions
from sayso_runtime.messages import Answer, Decision, NamedDecision, UniformDecision


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a person says about an unknown outcome: `retry`, `result` or `abandon`."""

    view: CallView
    action: str
    result: str | None
    reason: str


@dataclass(slots=True)
class Plan:
    """What to write. Never empty."""

    choices: list[Choice] = field(default_factory=list)
    settlements: list[Settlement] = field(default_factory=list)


def plan(decision: Decision, found: Resolution, task_id: str | None, shown: Mapping[str, str] | None = None) -> Plan:
    """Binds a decision to calls. Raises `Refusal` and changes nothing where any part of it does not fit.

    `shown` are the ids that the decider saw, each with its pause: a model may use an id again in a later pause, which
    an answer to the earlier one does not mean.
    """
    calls = [view for view in found.calls if task_id is None or view.pause.task_id == task_id]
    match decision:
        case UniformDecision(answer):
            return _uniform(answer, calls, found)
        case NamedDecision(answers):
            result = Plan()
            targets: dict[tuple[str, str], str] = {}
            inner, direct = nested.split(answers, calls, shown)
            for key, about in inner.items():
                result.choices.append(nested.choice(about))
                targets[key] = next(iter(about.answers))
            for name, answer in direct.items():
                view = _named(name, answer, calls, found, shown)
                key = (view.pause.pause_id, view.call.call_id)
                if view.call.kind is Kind.CONTINUE and name not in (view.call.call_id, view.call.confirmation_id):
                    answer = Answer(Verdict.APPROVED)  # it was carried out: sent again it only means "go on"
                    if key in targets:
                        continue
                if key in targets:
                    raise Refusal(
                        "malformed_decision",
                        f"{targets[key]!r} and {name!r} are the same call: give it one verdict",
                        ids=(targets[key], name),
                    )
                targets[key] = name
                _bind(result, view, answer, name)
            if decision.whole and not result.settlements:
                _check_whole(calls, targets, inner)
            if decision.requests:
                _check_requests(calls, targets, inner)
            if result.settlements and len(answers) > 1:
                raise Refusal(
                    "malformed_decision",
                    "settle an unknown outcome in a message of its own, so that a message holds whole or not at all",
                    ids=tuple(answers),
                )
            return result


def _uniform(answer: Answer, calls: Sequence[CallView], found: Resolution) -> Plan:
    if found.answering:
        refusal = became(found.last, "another decision is being answered: look at what is open then, and decide again")
        refusal.extra["interruptions"] = [brief(view) for view in calls if view.open or view.doubtful]
        raise refusal
    if answer.has_payload:
        return _answers(answer, calls, found)
    result = Plan()
    values = [view for view in calls if view.open and view.call.kind in _VALUES]
    if values and answer.verdict is Verdict.APPROVED and len(values) == _open(calls):
        raise Refusal(
            "malformed_decision",
            f"{', '.join(_wanted(view) for view in values)}: a verdict alone does not give it",
            ids=tuple(view.call.call_id for view in values),
        )
    for view in calls:
        if not view.open or (view.call.kind in _VALUES and answer.verdict is Verdict.APPROVED):
            continue
        if view.call.kind is not Kind.FORWARD:
            _bind(result, view, answer, view.call.call_id)
        elif (passed_on := nested.uniform(view, answer)) is not None:
            result.choices.append(passed_on)
    if result.choices:
        return result
    for view in calls:
        if view.open and view.call.kind is Kind.FORWARD:
            nested.whole(view, answer)  # says why it cannot be meant
    doubtful = [view for view in calls if view.doubtful]
    if not doubtful:
        raise became(found.last)
    if answer.verdict is Verdict.APPROVED:
        ids = tuple(view.outcome_id for view in doubtful)
        raise Refusal(
            "malformed_decision",
            f"an unknown outcome is run again only by a verdict that names it: {', '.join(ids)}",
            ids=ids,
        )
    if len(doubtful) > 1:
        ids = tuple(view.outcome_id for view in doubtful)
        raise Refusal("malformed_decision", f"several outcomes are unknown: name one of {', '.join(ids)}", ids=ids)
    _bind(result, doubtful[0], answer, doubtful[0].outcome_id)
    return result


def _answers(answer: Answer, calls: Sequence[CallView], found: Resolution) -> Plan:
    """Answers without an id mean the one set of questions that waits, and never a call that waits beside it."""
    result = Plan()
    own = [view for view in calls if view.open and view.call.kind is Kind.QUESTION]
    below = [(view, one) for view in calls if view.open for one in inner_of(view) if one.wants_value]
    ids = (*(view.call.call_id for view in own), *(one.id for _, one in below))
    if len(ids) > 1:
        raise Refusal(
            "malformed_decision",
            f"several questions wait, so answers have to name theirs: {', '.join(ids)}. Send a batch with "
            "ask_user_answers by id, or answer each by the id of its question",
            ids=ids,
        )
    for view in own:
        _bind(result, view, answer, view.call.call_id)
    for view, one in below:
        result.choices.append(nested.choice(nested.Targets(view, {one.id: (one, answer)})))
    if not ids:  # the model failed after these answers were carried out: sent again they mean "go on"
        for view in calls:
            before = json.loads(view.call.payload) if view.open and view.call.kind is Kind.CONTINUE else None
            if Verdict.ANSWERED in (before or {}).values():
                _bind(result, view, Answer(Verdict.APPROVED), view.call.call_id)
    if result.choices:
        return result
    waiting = [id_ for view in calls if view.open or view.doubtful for id_ in _waits_as(view)]
    if waiting:
        raise Refusal(
            "malformed_decision",
            f"no question waits that this answers; waiting are: {', '.join(waiting)}",
            ids=tuple(waiting),
        )
    raise became(found.last)


def _wanted(view: CallView) -> str:
    what = "answers" if view.call.kind is Kind.QUESTION else "a value"
    return f"{view.call.alias} ({view.call.call_id}) wants {what}"


#: Kinds that a yes alone does not answer.
_VALUES = frozenset({Kind.INPUT_REQUIRED, Kind.QUESTION})


def _open(calls: Sequence[CallView]) -> int:
    return sum(1 for view in calls if view.open)


def _check_whole(
    calls: Sequence[CallView], targets: Mapping[tuple[str, str], str], inner: Mapping[nested.Key, nested.Targets]
) -> None:
    """An unknown outcome may be left out: it is settled in a message of its own."""
    unsaid = [name for about in inner.values() for name in nested.left_open(about.view, about)]
    if unsaid:
        raise Refusal(
            "malformed_decision",
            f"everything that waits is answered at once, and {', '.join(unsaid)} is not: nothing was decided",
            ids=tuple(unsaid),
            extra={"interruptions": [brief(about.view) for about in inner.values()]},
        )
    left = [view for view in calls if view.open and (view.pause.pause_id, view.call.call_id) not in targets]
    if left:
        raise _unsaid(left)


def _check_requests(
    calls: Sequence[CallView], targets: Mapping[tuple[str, str], str], inner: Mapping[nested.Key, nested.Targets]
) -> None:
    """The calls of one agent that wait for a verdict are decided together, whatever else waits."""
    own = [view for view in calls if view.open and view.call.kind not in (*_VALUES, Kind.FORWARD)]
    left = [view for view in own if nested.key_of(view) not in targets]
    if left and len(left) < len(own):
        raise _unsaid(left)
    for about in inner.values():
        plain = {one.id for one in inner_of(about.view) if not one.wants_value and not one.doubtful}
        named_here = {one.id for one, _ in about.answers.values()}
        if plain & named_here and (unsaid := tuple(sorted(plain - named_here))):
            raise Refusal(
                "malformed_decision",
                f"what is asked together is answered together, and {', '.join(unsaid)} is not: nothing was decided",
                ids=unsaid,
                extra={"interruptions": [brief(about.view)]},
            )


def _unsaid(left: Sequence[CallView]) -> Refusal:
    ids = tuple(view.call.call_id for view in left)
    return Refusal(
        "malformed_decision",
        f"everything that waits is answered at once, and {', '.join(ids)} is not: nothing was decided",
        ids=ids,
        extra={"interruptions": [brief(view) for view in left]},
    )


def _named(
    name: str, answer: Answer, calls: Sequence[CallView], found: Resolution, shown: Mapping[str, str] | None
) -> CallView:
    if shown is not None and name not in shown:
        raise Refusal(
            "unknown_call", f"this run did not ask for {name!r}: it asked for {', '.join(shown)}", ids=(name,)
        )
    for view in calls:
        if shown is not None and view.pause.pause_id != shown[name]:
            continue
        if view.doubtful and name == view.outcome_id:
            return view
        if view.open and name in (view.call.call_id, view.call.confirmation_id):
            return view
    for view in calls:
        # the model failed after this verdict was carried out: the same verdict again means "go on"
        if view.open and view.call.kind is Kind.CONTINUE:
            carried_out: dict[str, Any] = json.loads(view.call.payload) or {}
            before = carried_out.get(name)
            if before == answer.verdict.value or (before == Verdict.ANSWERED and answer.verdict is Verdict.APPROVED):
                return view
    if shown is not None:
        calls = [view for view in calls if view.pause.pause_id == shown[name]]
    for view in calls:
        if (refusal := nested.late(view, name)) is not None:
            raise refusal
        if knows(view, name) or name.startswith(f"{view.call.call_id}:outcome:"):
            raise became(view, ids=(name,))
    last = found.last
    if last and knows(last, name):
        raise nested.late(last, name) or became(last, ids=(name,))
    pending = [id_ for view in calls if view.open or view.doubtful for id_ in _waits_as(view)]
    if not pending and last is not None:
        raise became(last, ids=(name,))
    waiting = f"waiting are: {', '.join(pending)}" if pending else "nothing is waiting in this session"
    raise Refusal("unknown_call", f"no call {name!r} is pending; {waiting}", ids=(name,), extra={"pending": pending})


def knows(view: CallView, name: str) -> bool:
    """Whether an id is the call's, its question's, or that of a call of another agent behind it."""
    return name in (view.call.call_id, view.call.confirmation_id) or named(inner_of(view), name) is not None


def _waits_as(view: CallView) -> list[str]:
    """The ids by which what waits is decided."""
    if view.doubtful:
        return [view.outcome_id]
    return [one.id for one in inner_of(view)] or [view.call.call_id]


def _bind(result: Plan, view: CallView, answer: Answer, name: str) -> None:
    if view.doubtful and (view.intact or answer.verdict is not Verdict.CANCELLED):
        result.settlements.append(_settle(view, answer))
        return
    if view.call.kind is Kind.FORWARD:
        result.choices.append(nested.whole(view, answer))
        return
    if not view.intact and answer.verdict is not Verdict.CANCELLED:
        raise Refusal(
            "integrity",
            f"the record of {name} was changed after it was written: it can only be cancelled",
            ids=(name,),
        )
    if view.call.kind is Kind.QUESTION:
        answer = to_questions(json.loads(view.call.arguments), answer, name)
    verdict = answer.verdict
    payload = json.dumps(answer.payload, ensure_ascii=False) if answer.has_payload else "null"
    if view.call.kind is Kind.INPUT_REQUIRED:
        if answer.has_value:
            answer = replace(answer, payload=answer.value, has_payload=True)
            verdict, payload = Verdict.ANSWERED, json.dumps(answer.value, ensure_ascii=False)
        if verdict is Verdict.APPROVED and not answer.has_payload and not answer.reason:
            raise Refusal("malformed_decision", f"{name} wants a value: send it as the payload", ids=(name,))
        if verdict in (Verdict.APPROVED, Verdict.ANSWERED):
            payload = payload if answer.has_payload else json.dumps(answer.reason, ensure_ascii=False)
            verdict = Verdict.ANSWERED
    elif verdict is Verdict.ANSWERED and view.call.kind is not Kind.QUESTION:
        raise Refusal(
            "malformed_decision", f"{name} waits for a verdict, not for a value: approve or reject it", ids=(name,)
        )
    elif view.call.kind is Kind.TOOL_CALL and answer.has_payload and answer.payload is not None:
        raise Refusal(
            "malformed_decision",
            f"the arguments of {name} cannot be edited: approve or reject it as it is",
            ids=(name,),
        )
    result.choices.append(
        Choice(
            pause_id=view.pause.pause_id,
            call_id=view.call.call_id,
            digest=view.call.digest,
            verdict=verdict,
            reason=answer.reason,
            payload=payload,
        )
    )


def _settle(view: CallView, answer: Answer) -> Settlement:
    said_yes = answer.verdict in (Verdict.APPROVED, Verdict.ANSWERED)
    if said_yes and answer.has_payload and answer.payload is not None:
        return Settlement(view, "result", json.dumps(answer.payload, ensure_ascii=False), answer.reason)
    if answer.verdict is Verdict.APPROVED:
        return Settlement(view, "retry", None, answer.reason)
    return Settlement(view, "abandon", None, answer.reason)


def brief(view: CallView) -> dict[str, Any]:
    """What is pending, in the form that refusals carry."""
    name = view.outcome_id if view.doubtful else view.call.call_id
    return {"id": name, "kind": view.call.kind.value, "tool_name": view.call.alias, "arguments": view.call.arguments}


_CODES: dict[Verdict, Code] = {
    Verdict.EXPIRED: "expired",
    Verdict.SUPERSEDED: "superseded",
    Verdict.CANCELLED: "cancelled",
}


def became(view: CallView | None, advice: str = "", ids: tuple[str, ...] = ()) -> Refusal:
    """The refusal that says what became of a call that is no longer open."""
    if view is None or view.state.verdict is None:
        detail = advice or "nothing is pending here"
        return Refusal("already_decided" if advice else "not_found", detail, ids=ids)
    record = view.state.verdict
    code: Code = _CODES.get(record.verdict, "already_decided")
    who = f" by {record.by}" if record.by else ""
    detail = f"{view.call.alias} ({view.call.call_id}) was already {record.verdict.value}{who}"
    if record.reason:
        detail += f": {record.reason}"
    if advice:
        detail += f"; {advice}"
    return Refusal(
        code,
        detail,
        ids=ids or (view.call.call_id,),
        decided_by=record.by,
        decided_at=record.at,
        verdict=record.verdict.value,
        reason=record.reason or None,
    )
