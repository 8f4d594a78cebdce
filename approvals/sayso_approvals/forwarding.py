"""A pause that stands for the pauses of another agent: what it shows, and how what was decided about that is written.

An agent that called another one, which then paused, waits with a call of kind `FORWARD`. Its payload shows the other
agent's calls; the verdict on it is `approved` ("pass this on") with an *order* as its payload, which says for each of
those calls what was decided:

    payload   {"task_id", "context_id", "subagent_name", "hitl_parts": [<call>, …], "child_ids"?: {shown: theirs}, …}
    <call>    {"name": "adk_request_confirmation", "id", "originalFunctionCall": {"name", "args", "id"}, "hint"?}
    order     {"sayso_order": {"calls": {<their id>: {"verdict", "reason", "payload"?}}}}    or {"look": true}

Pure. Both are sealed with the pause and the verdict; whoever reads them here still believes no type in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sayso_approvals import questions
from sayso_approvals.records import CallView, Kind, PausedCall, Verdict

ORDER = "sayso_order"
#: The question of an agent whose tool may or may not have run: only a verdict that names it runs it again.
_OUTCOME = "sayso_outcome_unknown"


@dataclass(frozen=True, slots=True)
class Inner:
    """A call of another agent that waits. `id` is its name here, `child_id` there; they differ only where two calls
    that wait here would share one. `confirmation_id` is that of the other agent's question."""

    id: str
    child_id: str
    confirmation_id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    hint: str = ""
    payload: Any = None
    kind: str = ""  # as the other agent says, if it does

    @property
    def wants_value(self) -> bool:
        """It asks for answers, which a bare yes does not give."""
        return self.asks or self.kind == Kind.INPUT_REQUIRED

    @property
    def asks(self) -> bool:
        """It is a set of questions (`questions.py`)."""
        return self.name == questions.TOOL or self.kind == Kind.QUESTION

    @property
    def doubtful(self) -> bool:
        """It asks what became of a call: never meant by a verdict without ids."""
        return self.name == _OUTCOME


@dataclass(frozen=True, slots=True)
class Said:
    """What was decided about one inner call. `payload`: any JSON value, only where there is one."""

    verdict: Verdict
    reason: str = ""
    payload: Any = None
    has_payload: bool = False


def is_forwarding(view: CallView) -> bool:
    """Whether the call stands for calls of another agent."""
    return view.call.kind is Kind.FORWARD


def inner_calls(payload: Any) -> tuple[Inner, ...]:
    """The calls that a forwarding payload shows, in order; what has not their form is left out."""
    if not isinstance(payload, dict) or not isinstance(payload.get("hitl_parts"), list):
        return ()
    theirs = payload.get("child_ids")
    names: dict[str, Any] = theirs if isinstance(theirs, dict) else {}
    found = []
    for part in payload["hitl_parts"]:
        call = part.get("originalFunctionCall") if isinstance(part, dict) else None
        if not isinstance(call, dict) or not isinstance(call.get("id"), str) or not isinstance(call.get("name"), str):
            continue
        arguments, confirmation, hint = call.get("args"), part.get("id"), part.get("hint")
        found.append(
            Inner(
                id=call["id"],
                child_id=str(names.get(call["id"], call["id"])),
                confirmation_id=confirmation if isinstance(confirmation, str) else call["id"],
                name=call["name"],
                arguments=arguments if isinstance(arguments, dict) else {},
                hint=hint if isinstance(hint, str) else "",
                payload=part.get("payload"),
                kind=str(part.get("kind", "")),
            )
        )
    return tuple(found)


def inner_of(view: CallView) -> tuple[Inner, ...]:
    """The calls that a pending call stands for; none for one that stands for itself."""
    return inner_calls(json.loads(view.call.payload)) if is_forwarding(view) else ()


def named(inner: Iterable[Inner], name: str) -> Inner | None:
    """The inner call that an id means: its own, or that of its question."""
    known = tuple(inner)
    by_id = next((one for one in known if one.id == name), None)
    return by_id or next((one for one in known if one.confirmation_id == name), None)


def order(said: Mapping[str, Said]) -> str:
    """The verdict's payload (JSON text). Keys are the ids that the other agent knows."""
    calls = {}
    for child_id, one in said.items():
        calls[child_id] = {"verdict": one.verdict.value, "reason": one.reason}
        if one.has_payload:
            calls[child_id]["payload"] = one.payload
    return json.dumps({ORDER: {"calls": calls}}, ensure_ascii=False)


#: The verdict's payload where nothing is to be passed on: the other agent has moved, look at it and go on.
LOOK = json.dumps({ORDER: {"look": True}})


def ordered(payload: Any) -> dict[str, Said]:
    """What an order says by the other agent's ids; empty for *look*, and for whatever is no order."""
    said = payload.get(ORDER) if isinstance(payload, dict) else None
    calls = said.get("calls") if isinstance(said, dict) else None
    found = {}
    for child_id, one in (calls if isinstance(calls, dict) else {}).items():
        found[child_id] = Said(Verdict(one["verdict"]), str(one["reason"]), one.get("payload"), "payload" in one)
    return found


def everything(inner: Iterable[Inner], said: Said) -> dict[str, Said]:
    """The same verdict for each inner call that one without ids can mean."""
    known = tuple(inner)
    if said.has_payload:
        return {one.child_id: said for one in known if one.wants_value}
    if said.verdict is Verdict.APPROVED:
        return {one.child_id: said for one in known if not one.wants_value and not one.doubtful}
    certain = {one.child_id: said for one in known if not one.doubtful}
    return certain or {one.child_id: said for one in known}


def verdict_on(view: CallView, verdict: Verdict, reason: str, answer: str | None = None) -> tuple[Verdict, str] | None:
    """What to record where somebody gives one verdict for all that a call stands for: the verdict and its payload.
    `answer` is the JSON text of a value. None: nothing that waits behind the call can be meant by it."""
    if verdict not in (Verdict.APPROVED, Verdict.REJECTED):
        return verdict, "null"
    value = json.loads(answer) if answer is not None else None
    said = everything(inner_of(view), Said(verdict, reason, value, answer is not None))
    return (Verdict.APPROVED, order(said)) if said else None


def rejected(view: CallView) -> bool:
    """Whether what was passed on says no to everything."""
    record = view.state.verdict
    if record is None or record.verdict is not Verdict.APPROVED or not is_forwarding(view):
        return False
    said = ordered(json.loads(record.payload))
    return bool(said) and all(one.verdict is Verdict.REJECTED for one in said.values())


def said_about(view: CallView, name: str) -> Said | None:
    """What was passed on about an inner call, by any of its ids; None where it was not decided here."""
    record = view.state.verdict
    one = named(inner_of(view), name)
    if record is None or one is None:
        return None
    return ordered(json.loads(record.payload)).get(one.child_id)


def carried(view: CallView) -> dict[str, str]:
    """What was passed on, by the ids that people saw."""
    return {one.id: said.verdict.value for one in inner_of(view) if (said := said_about(view, one.id)) is not None}


def distinct(asks: Mapping[str, PausedCall], waiting: Iterable[CallView]) -> dict[str, PausedCall]:
    """`asks` with every inner id of its own: where another call that waits has it already, the id is told apart by
    the call that it came through. Other agents know nothing of each other, and may well use the same ids."""
    taken: set[str] = set()
    for view in waiting:
        taken |= {one.id for one in inner_of(view)} if is_forwarding(view) else {view.call.call_id, view.outcome_id}
    taken |= {call_id for call_id, call in asks.items() if call.kind is not Kind.FORWARD}
    found: dict[str, PausedCall] = {}
    for call_id, call in asks.items():
        if call.kind is not Kind.FORWARD:
            found[call_id] = call
            continue
        payload = json.loads(call.payload)
        theirs = {}
        for part in payload["hitl_parts"]:
            original = part["originalFunctionCall"]
            id_ = original["id"]
            while id_ in taken:
                id_ = f"{id_}@{call_id}"
            taken.add(id_)
            if id_ != original["id"]:
                theirs[id_] = original["id"]
                original["id"] = id_
        text = json.dumps(payload | ({"child_ids": theirs} if theirs else {}), ensure_ascii=False)
        found[call_id] = replace(call, payload=text)
    return found
