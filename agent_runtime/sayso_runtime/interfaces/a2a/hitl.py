"""The message extension of kagent's second generation (wire B): a message's metadata says what waits or was decided.

    tool_approval_request   {"type", "hint"?, "tools": [{"id", "call_id", "name", "args"}, …], "nested"?}
    ask_user_request        {"type", "id", "questions": [{"question", "choices", "multiple"}, …], "nested"?}
    tool_approval_response  {"type", "approvals": [{"id", "approved", "rejection_reason"?}, …]}
    ask_user_response       {"type", "id", "answers": [{"answer": [text, …]}, …]}

A message carries one request. Where more waits than one can say, the first is: the agent's own calls together, then
those of each agent that was called (`nested`), then each unknown outcome, then each set of questions. The next one
comes when it was answered. An answer is whole: every call of the request that it belongs to is in it.

Pure. The ids are those of the questions, not of the calls: a call that asks once more has another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sayso_approvals import questions
from sayso_approvals.forwarding import inner_calls
from sayso_approvals.records import Kind, Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import OUTCOME_UNKNOWN, Answer, Interruption, NamedDecision

URI = "https://kagent.dev/extensions/hitl/v1"
HEADER = b"a2a-extensions"
DESCRIPTION = "Calls that wait for a person's say-so, and questions to a person, with what was decided about them."

_TOOLS, _OUTCOME, _VALUE = range(3)  # what a request may be about, in the order in which they are asked


@dataclass(frozen=True, slots=True)
class _Item:
    """One thing that waits. `outer`: the call through which another agent's call waits."""

    id: str
    call_id: str
    name: str
    arguments: dict[str, Any]
    hint: str
    about: int
    outer: Interruption | None = None

    def tool(self) -> dict[str, Any]:
        return {"id": self.id, "call_id": self.call_id, "name": self.name, "args": self.arguments}

    @property
    def group(self) -> tuple[int, str, str]:
        """What goes into one request has the same group, and requests are made in the order of their groups."""
        alone = "" if self.about == _TOOLS else self.id
        return self.about, self.outer.id if self.outer else "", alone


def asked_for(header: Iterable[str]) -> bool:
    """Whether a client asks for the extension. `header`: the values of `A2A-Extensions`."""
    return any(name.strip() == URI for value in header for name in value.split(","))


# --- what waits


def request(asks: Sequence[Interruption]) -> dict[str, Any] | None:
    """The request that comes first of what waits; None where nothing does."""
    items = _items(asks)
    if not items:
        return None
    first = min(item.group for item in items)
    group = [item for item in items if item.group == first]
    if first[0] == _VALUE:
        document: dict[str, Any] = {"type": "ask_user_request", "id": group[0].id, "questions": _questions(group[0])}
    else:
        document = {"type": "tool_approval_request", "tools": [item.tool() for item in group]}
        if hint := "\n".join(dict.fromkeys(item.hint for item in group if item.hint)):
            document["hint"] = hint
    outer = group[0].outer
    if outer is not None:
        document["nested"] = _nested(outer, group)
        if "tools" in document:
            document["tools"] = [_Item(*_ids(outer), outer.name, outer.arguments, outer.hint, _TOOLS).tool()]
    return document


def _items(asks: Sequence[Interruption]) -> list[_Item]:
    found: list[_Item] = []
    for one in asks:
        inner = inner_calls(one.payload)
        for call in inner:
            about = _VALUE if call.wants_value else _OUTCOME if call.doubtful else _TOOLS
            hint = call.hint or one.hint
            found.append(_Item(call.confirmation_id, call.id, call.name, call.arguments, hint, about, one))
        if not inner:
            wants = one.kind in (Kind.QUESTION, Kind.INPUT_REQUIRED)
            about = _VALUE if wants else _OUTCOME if one.name == OUTCOME_UNKNOWN else _TOOLS
            found.append(_Item(*_ids(one), one.name, one.arguments, one.hint, about))
    names = [item.id for item in found]
    # Other agents choose the ids of their questions; where two share one, the calls' ids tell them apart.
    return [item if names.count(item.id) == 1 else _by_call(item) for item in found]


def _by_call(item: _Item) -> _Item:
    return _Item(item.call_id, item.call_id, item.name, item.arguments, item.hint, item.about, item.outer)


def _ids(one: Interruption) -> tuple[str, str]:
    return one.confirmation_id, one.id


def _questions(item: _Item) -> list[dict[str, Any]]:
    try:
        asked = questions.read(item.arguments)
    except questions.BadQuestions:
        asked = (questions.Question(item.hint or f"{item.name} wants a value."),)
    return [{"question": q.text, "choices": list(q.choices), "multiple": q.multiple} for q in asked]


def _nested(outer: Interruption, group: Sequence[_Item]) -> dict[str, Any]:
    payload = outer.payload
    names = {key: payload[key] for key in ("subagent_name", "task_id", "context_id") if payload.get(key)}
    return {**names, "tools": [item.tool() for item in group]}


# --- what was decided


def read_response(metadata: Mapping[str, Any], extensions: Sequence[str]) -> NamedDecision | None:
    """The decision in a message's metadata; None where there is none. Raises `malformed_decision`.

    `extensions`: those that the message declares. An answer without the declaration is refused, not passed over.
    """
    if URI not in metadata:
        return None
    given = metadata[URI]
    if URI not in extensions:
        raise _malformed(f"the message's metadata answers for {URI}, which its extensions do not name")
    match given.get("type") if isinstance(given, dict) else None:
        case "tool_approval_response":
            return NamedDecision(_approvals(given), requests=True)
        case "ask_user_response":
            return NamedDecision(_answers(given), requests=True)
    raise _malformed("a response has the type tool_approval_response or ask_user_response")


def _approvals(given: Mapping[str, Any]) -> dict[str, Answer]:
    entries = given.get("approvals")
    if given.keys() != {"type", "approvals"} or not isinstance(entries, list) or not entries:
        raise _malformed("a tool_approval_response is {type, approvals} with at least one {id, approved}")
    found: dict[str, Answer] = {}
    for entry in entries:
        name = _name(entry)
        if name in found:
            raise _malformed("there are two verdicts for one call", name)
        if entry.keys() - {"id", "approved", "rejection_reason"}:
            raise _malformed("an approval is {id, approved, rejection_reason}", name)
        approved, reason = entry.get("approved"), entry.get("rejection_reason")
        if not isinstance(approved, bool):
            raise _malformed("approved is true or false", name)
        if reason is not None and not isinstance(reason, str):
            raise _malformed("rejection_reason is a text", name)
        if approved and reason:
            raise _malformed("there is a reason for rejecting what is approved", name)
        found[name] = Answer(Verdict.APPROVED if approved else Verdict.REJECTED, reason or "")
    return found


def _answers(given: Mapping[str, Any]) -> dict[str, Answer]:
    name = _name(given)
    answers = given.get("answers")
    if given.keys() != {"type", "id", "answers"} or not isinstance(answers, list) or not answers:
        raise _malformed("an ask_user_response is {type, id, answers} with one {answer: [text]} per question", name)
    for entry in answers:
        texts = entry.get("answer") if isinstance(entry, dict) and entry.keys() == {"answer"} else None
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise _malformed("each of the answers is {answer: [text]}", name)
    return {name: Answer(Verdict.ANSWERED, payload={questions.ANSWERS: answers}, has_payload=True)}


def _name(entry: Any) -> str:
    name = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        raise _malformed("an answer names the id that the request gave")
    return name


def _malformed(detail: str, *ids: str) -> Refusal:
    return Refusal("malformed_decision", f"{detail}. Nothing was decided.", ids)
