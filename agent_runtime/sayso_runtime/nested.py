"""What a decision means for calls of other agents that wait behind a call of this one. Pure.

People name the inner calls; the ledger knows the outer one. A decision about inner calls becomes one verdict on the
outer call, *pass this on*, with what was said about each of them. What nobody named stays open where it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sayso_approvals import forwarding
from sayso_approvals.deciding import Choice
from sayso_approvals.forwarding import Inner, Said
from sayso_approvals.records import CallView, Kind, Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.answers import to_questions
from sayso_runtime.messages import OUTCOME_UNKNOWN, Answer, Interruption

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Targets:
    """What a named decision says about one outer call: by the name that was used."""

    view: CallView
    answers: dict[str, tuple[Inner, Answer]]


def key_of(view: CallView) -> Key:
    """Which call of which pause."""
    return view.pause.pause_id, view.call.call_id


def split(
    answers: Mapping[str, Answer], calls: Sequence[CallView], shown: Mapping[str, str] | None
) -> tuple[dict[Key, Targets], dict[str, Answer]]:
    """What is about inner calls that are open here, by outer call, and the rest. Raises `malformed_decision` where one
    inner call is named twice, and `integrity` where its record cannot be believed."""
    found: dict[Key, Targets] = {}
    rest: dict[str, Answer] = {}
    waiting = [(view, forwarding.inner_of(view)) for view in calls if view.open and forwarding.is_forwarding(view)]
    for name, answer in answers.items():
        meant = ((view, forwarding.named(inner, name)) for view, inner in waiting if _at(view, name, shown))
        view, one = next(((view, one) for view, one in meant if one is not None), (None, None))
        if view is None or one is None:
            rest[name] = answer
            continue
        own = [v for v in calls if _is(v, name) and v.open and _at(v, name, shown) and v is not view]
        if own and not all(forwarding.is_forwarding(v) for v in own):
            raise Refusal(
                "malformed_decision",
                f"{name!r} is a call of this agent and one of agent {view.call.tool}: give a verdict without ids, "
                "or name the ids of the questions",
                ids=(name,),
            )
        targets = found.setdefault(key_of(view), Targets(view, {}))
        twice = [other for other, (inner, _) in targets.answers.items() if inner.child_id == one.child_id]
        if twice:
            raise Refusal(
                "malformed_decision",
                f"{twice[0]!r} and {name!r} are the same call: give it one verdict",
                ids=(twice[0], name),
            )
        targets.answers[name] = (one, answer)
    return found, rest


def _is(view: CallView, name: str) -> bool:
    return name in (view.call.call_id, view.call.confirmation_id)


def _at(view: CallView, name: str, shown: Mapping[str, str] | None) -> bool:
    return shown is None or shown.get(name) == view.pause.pause_id


def choice(targets: Targets) -> Choice:
    """The verdict on the outer call. Raises `malformed_decision` and `integrity`."""
    view, answers = targets.view, targets.answers
    cancelled = [name for name, (_, answer) in answers.items() if answer.verdict is Verdict.CANCELLED]
    everything = {inner.child_id for inner in forwarding.inner_of(view)}
    if cancelled:
        if len(cancelled) < len(everything):
            raise Refusal(
                "malformed_decision",
                f"what {view.call.tool} waits for is cancelled as a whole: cancel all of it, or decide each call",
                ids=tuple(cancelled),
            )
        return whole(view, next(iter(answers.values()))[1])
    return _choice(view, {inner.child_id: _said(name, inner, answer) for name, (inner, answer) in answers.items()})


def whole(view: CallView, answer: Answer) -> Choice:
    """The verdict on the outer call where all that it stands for is meant. Raises as `choice`."""
    if answer.verdict is Verdict.CANCELLED:
        return Choice(*key_of(view), view.call.digest, Verdict.CANCELLED, answer.reason)
    given = answer
    if answer.verdict is Verdict.ANSWERED and answer.has_payload:
        given = replace(answer, verdict=Verdict.APPROVED)
    inner = forwarding.inner_of(view)
    said = forwarding.everything(inner, Said(given.verdict, given.reason, given.payload, given.has_payload))
    if not said:
        raise _nothing_meant(inner, given)
    return _choice(view, said)


def uniform(view: CallView, answer: Answer) -> Choice | None:
    """As `whole`, for a verdict without any ids: None where it means nothing that is shown here."""
    try:
        return whole(view, answer)
    except Refusal as refusal:
        if refusal.code != "malformed_decision":
            raise
        return None


def left_open(view: CallView, targets: Targets | None) -> list[str]:
    """Ids of what a decision that has to be whole leaves out. An outcome is settled in a message of its own."""
    named = {inner.id for inner, _ in targets.answers.values()} if targets else set()
    return [one.id for one in forwarding.inner_of(view) if one.id not in named and not one.doubtful]


def late(view: CallView, name: str) -> Refusal | None:
    """Why an inner call cannot be decided whose outer call is not open; None where the name is not of it."""
    if not forwarding.is_forwarding(view) or view.open:
        return None
    one = forwarding.named(forwarding.inner_of(view), name)
    record = view.state.verdict
    if one is None or record is None:
        return None
    said = forwarding.said_about(view, name)
    if said is None:
        if record.verdict in (Verdict.CANCELLED, Verdict.SUPERSEDED):
            return None  # the whole of it was: what became of the outer call says so
        if not view.state.done and forwarding.ordered(json.loads(record.payload)):
            return Refusal("busy", f"agent {view.call.tool} is being told of another decision: look again", ids=(name,))
        return Refusal(
            "already_decided",
            f"{one.name} ({name}) was decided at agent {view.call.tool}: look at what is open now",
            ids=(name,),
            decided_by=record.by,
            decided_at=record.at,
        )
    why = f": {said.reason}" if said.reason else ""
    return Refusal(
        "already_decided",
        f"{one.name} ({name}) was already {said.verdict.value} by {record.by}{why}",
        ids=(name,),
        decided_by=record.by,
        decided_at=record.at,
        verdict=said.verdict.value,
        reason=said.reason or None,
    )


def spread(interruptions: Iterable[Interruption]) -> tuple[Interruption, ...]:
    """What waits with every inner call in place of its outer one: for doors whose clients know no nesting."""
    found: list[Interruption] = []
    for one in interruptions:
        inner = forwarding.inner_calls(one.payload)
        found += [_as_interruption(one, call) for call in inner] or [one]
    return tuple(found)


def _as_interruption(outer: Interruption, inner: Inner) -> Interruption:
    kind = Kind.INPUT_REQUIRED if inner.wants_value else Kind.TOOL_CALL
    return replace(
        outer,
        id=inner.id,
        kind=Kind.CONFIRMATION if inner.name == OUTCOME_UNKNOWN else kind,
        confirmation_id=inner.confirmation_id,
        name=inner.name,
        arguments=inner.arguments,
        hint=inner.hint or outer.hint,
        payload=inner.payload,
    )


def _choice(view: CallView, said: Mapping[str, Said]) -> Choice:
    if not view.intact:
        raise Refusal(
            "integrity",
            f"the record of {view.call.call_id} was changed after it was written: it can only be cancelled",
            ids=(view.call.call_id,),
        )
    reasons = {one.reason for one in said.values() if one.reason}
    return Choice(
        *key_of(view),
        view.call.digest,
        Verdict.APPROVED,
        reason="; ".join(sorted(reasons)),
        payload=forwarding.order(said),
    )


def _said(name: str, inner: Inner, answer: Answer) -> Said:
    """What is passed on about one call. Only what asks for a value takes one."""
    if inner.asks:
        meant = to_questions(inner.arguments, answer, name)
        return Said(meant.verdict, meant.reason, meant.payload, meant.has_payload)
    if inner.wants_value and answer.has_value:
        return Said(Verdict.ANSWERED, answer.reason, answer.value, True)
    given = answer.has_payload and answer.payload is not None
    if inner.wants_value and answer.verdict in (Verdict.APPROVED, Verdict.ANSWERED):
        if not given and not answer.reason:
            raise Refusal("malformed_decision", f"{name} wants a value: send it as the payload", ids=(name,))
        return Said(Verdict.ANSWERED, answer.reason, answer.payload if given else answer.reason, True)
    if inner.doubtful:
        verdict = Verdict.APPROVED if answer.verdict is Verdict.ANSWERED else answer.verdict
        return Said(verdict, answer.reason, answer.payload, given)
    if answer.verdict is Verdict.ANSWERED:
        raise Refusal(
            "malformed_decision", f"{name} waits for a verdict, not for a value: approve or reject it", ids=(name,)
        )
    return Said(answer.verdict, answer.reason)


def _nothing_meant(inner: Iterable[Inner], answer: Answer) -> Refusal:
    wants = tuple(one.id for one in inner if one.wants_value)
    if wants and not answer.has_payload:
        return Refusal("malformed_decision", "a value is wanted, which a verdict alone does not give", ids=wants)
    ids = tuple(one.id for one in inner)
    return Refusal("malformed_decision", f"this cannot mean any of {', '.join(ids)}: name the one that is meant", ids)
