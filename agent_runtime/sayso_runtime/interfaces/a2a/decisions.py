"""Reads a decision out of a message's parts. Pure: nothing here knows what is pending.

Three forms are understood (wire A and ADK's own):

    {"decision_type": "approve" | "reject" | "batch", …}              kagent's decision part
    {"name": "adk_request_confirmation", "id", "response": {"confirmed": …}}   ADK's native answer
    {"name": <a tool's>, "id", "response": {…}}                       ADK's native answer to a long-running tool

The rule behind every check: an approval is one exact word (or JSON's `true`) where it belongs. Whatever is close to a
decision but not exactly one is refused as a whole, so that nobody's half-said no becomes a yes. Text never decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sayso_approvals.records import Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.interfaces import strict_json
from sayso_runtime.messages import Answer, DataPart, Decision, NamedDecision, Part, TextPart, UniformDecision

CONFIRMATION = "adk_request_confirmation"
#: The prefixes under which ADK's and kagent's clients write a part's type.
PREFIXES = ("adk_", "kagent_")

_WORDS = {"approve": Verdict.APPROVED, "reject": Verdict.REJECTED}
#: What a decision part may say, by its type. `None` stands for *not said* where the table allows it.
_KEYS = {
    "approve": frozenset({"decision_type", "ask_user_answers"}),
    "reject": frozenset({"decision_type", "rejection_reason"}),
    "batch": frozenset({"decision_type", "decisions", "rejection_reasons", "ask_user_answers"}),
}
_DECISION_KEYS = frozenset().union(*_KEYS.values())
_OPTIONAL = frozenset({"rejection_reason", "rejection_reasons"})


def read_decision(parts: Sequence[Part], duplicates: Sequence[str] = ()) -> Decision | None:
    """The decision that a user's message carries, None where it carries none.

    `duplicates` are keys that the message's JSON repeats inside one object. Raises `Refusal("malformed_decision")`
    naming the ids concerned, and nothing else, whatever the parts hold.
    """
    plain = [part for part in parts if isinstance(part, DataPart) and _is_plain(part)]
    native = [part for part in parts if isinstance(part, DataPart) and _is_native(part)]
    if not plain and not native:
        return None
    if duplicates:
        names = ", ".join(repr(key) for key in duplicates)
        raise _malformed(f"a decision may say each thing once, but {names} is there twice", duplicates)
    if len(plain) + len(native) != sum(not isinstance(part, TextPart) for part in parts):
        raise _malformed("a decision stands alone: beside it only text (a label) may be sent")
    if plain and native:
        raise _malformed("a message may hold one decision, this one holds two kinds", _ids_of(native))
    if len(plain) > 1:
        raise _malformed("a message may hold one decision part, this one holds more")
    return _plain(plain[0].data) if plain else _native(native)


def is_decision(part: DataPart) -> bool:
    """Whether a data part claims to decide something, well-formed or not."""
    return _is_plain(part) or _is_native(part)


# --- kagent's decision part


def _is_plain(part: DataPart) -> bool:
    return not _is_native(part) and isinstance(part.data, dict) and not _DECISION_KEYS.isdisjoint(part.data)


def _plain(data: Mapping[str, Any]) -> Decision:
    given = {key: value for key, value in data.items() if value is not None or key not in _OPTIONAL}
    word = given.get("decision_type")
    allowed = _KEYS.get(word) if isinstance(word, str) else None
    if allowed is None:
        raise _malformed(f"decision_type is approve, reject or batch, not {_shown(word)}", _batch_ids(given))
    strange = sorted(given.keys() - allowed)
    if strange:
        raise _malformed(f"{_shown(word)} may not be sent together with {', '.join(strange)}", _batch_ids(given))
    if word == "batch":
        return _batch(given)
    if word == "reject":
        return UniformDecision(Answer(Verdict.REJECTED, _reason(given.get("rejection_reason", ""))))
    if "ask_user_answers" in given:
        return UniformDecision(_with_answers(given["ask_user_answers"]))
    return UniformDecision(Answer(Verdict.APPROVED))


def _batch(data: Mapping[str, Any]) -> Decision:
    decisions = data.get("decisions")
    if not isinstance(decisions, dict) or not decisions:
        raise _malformed("a batch names at least one call: decisions is {<call id>: approve or reject}")
    wrong = [key for key, word in decisions.items() if not key or not isinstance(word, str) or word not in _WORDS]
    if wrong:
        said = ", ".join(f"{_shown(key)}: {_shown(decisions[key])}" for key in wrong)
        raise _malformed(f"each call is decided with approve or reject, not {said}", wrong)
    reasons = data.get("rejection_reasons", {})
    if not isinstance(reasons, dict):
        raise _malformed("rejection_reasons is {<call id>: text}", tuple(decisions))
    stray = [key for key in reasons if decisions.get(key) != "reject"]
    if stray:
        raise _malformed("there is a reason for rejecting what is not rejected here", stray)
    mute = [key for key, text in reasons.items() if not isinstance(text, str)]
    if mute:
        raise _malformed("a reason is a text", mute)
    answers = {key: Answer(_WORDS[word], reasons.get(key, "")) for key, word in decisions.items()}
    return NamedDecision(answers | _answers_by_id(data.get("ask_user_answers", {}), decisions))


def _answers_by_id(given: Any, decisions: Mapping[str, Any]) -> dict[str, Answer]:
    """`{<call id>: [{"answer": ["…"]}, …]}`: the answers of each set of questions that the batch approves."""
    if not isinstance(given, dict):
        raise _malformed("in a batch, ask_user_answers is {<call id>: [{answer: [text]}]}", tuple(decisions))
    stray = [key for key in given if decisions.get(key) != "approve"]
    if stray:
        raise _malformed("there are answers to what is not approved here", stray)
    return {key: _with_answers(value) for key, value in given.items()}


def _batch_ids(data: Mapping[str, Any]) -> tuple[str, ...]:
    decisions = data.get("decisions")
    return tuple(decisions) if isinstance(decisions, dict) else ()


def _with_answers(value: Any) -> Answer:
    return Answer(Verdict.APPROVED, payload={"ask_user_answers": _user_answers(value)}, has_payload=True)


def _user_answers(value: Any) -> list[dict[str, list[str]]]:
    """`[{"answer": ["…", …]}, …]`, one entry per question."""
    if not isinstance(value, list) or not value:
        raise _malformed("ask_user_answers is a list with one {answer: [text]} per question")
    for position, item in enumerate(value):
        answer = item.get("answer") if isinstance(item, dict) and item.keys() == {"answer"} else None
        if not isinstance(answer, list) or not all(isinstance(text, str) for text in answer):
            raise _malformed(f"ask_user_answers[{position}] is {{answer: [text]}}, not {_shown(item)}")
    return value


# --- ADK's native answers


def part_type(part: DataPart) -> set[str]:
    """What a part's metadata says that it is, under either prefix. Two different answers are both there."""
    said = (part.metadata.get(prefix + "type") for prefix in PREFIXES)
    return {word for word in said if isinstance(word, str)}


def _is_native(part: DataPart) -> bool:
    if "function_response" in part_type(part):
        return True
    # An answer to a question that lost its type on the way is still meant as an answer.
    return isinstance(part.data, dict) and part.data.get("name") == CONFIRMATION and "response" in part.data


def _native(parts: Sequence[DataPart]) -> Decision:
    answers: dict[str, Answer] = {}
    for part in parts:
        if part_type(part) != {"function_response"}:
            raise _malformed("an answer to a question carries the type function_response", _ids_of([part]))
        key, answer = _function_response(part.data)
        if key in answers:
            raise _malformed("there are two answers to one question", (key,))
        answers[key] = answer
    return NamedDecision(answers)


def _function_response(data: Any) -> tuple[str, Answer]:
    if not isinstance(data, dict) or not data.keys() <= {"id", "name", "response"}:
        raise _malformed("a function response is {id, name, response}", _ids_of([DataPart(data)]))
    key, name, response = data.get("id"), data.get("name"), data.get("response")
    if not isinstance(key, str) or not key:
        raise _malformed("a function response names the id of the question that it answers")
    if not isinstance(name, str) or not name:
        raise _malformed("a function response names the function that asked", (key,))
    if not isinstance(response, dict):
        raise _malformed("a function response's response is an object", (key,))
    if name != CONFIRMATION:
        return key, Answer(Verdict.ANSWERED, payload=response, has_payload=True)
    return key, _confirmation(key, _unwrapped(key, response))


def _unwrapped(key: str, response: dict[str, Any]) -> dict[str, Any]:
    """ADK's clients wrap an answer as `{"response": "<JSON text>"}`."""
    if response.keys() != {"response"}:
        return response
    inner = response["response"]
    if not isinstance(inner, str):
        raise _malformed("a wrapped response is a JSON text", (key,))
    try:
        parsed = strict_json.loads(inner)
    except strict_json.NotJson as error:
        raise _malformed(f"the wrapped response is not JSON: {error}", (key,)) from error
    if parsed.duplicates:
        raise _malformed("the wrapped response says one thing twice", (key,))
    if not isinstance(parsed.value, dict):
        raise _malformed("a wrapped response is a JSON object", (key,))
    return parsed.value


def _confirmation(key: str, response: Mapping[str, Any]) -> Answer:
    strange = sorted(response.keys() - {"confirmed", "payload", "hint"})
    if strange:
        raise _malformed(f"a confirmation is {{confirmed, payload}}, without {', '.join(strange)}", (key,))
    confirmed = response.get("confirmed")
    if not isinstance(confirmed, bool):
        raise _malformed(f"confirmed is true or false, not {_shown(confirmed)}", (key,))
    payload = response.get("payload")
    verdict = Verdict.APPROVED if confirmed else Verdict.REJECTED
    return Answer(verdict, payload=payload, has_payload=payload is not None)


# --- small pieces


def _reason(value: Any) -> str:
    if not isinstance(value, str):
        raise _malformed(f"rejection_reason is a text, not {_shown(value)}")
    return value


def _ids_of(parts: Sequence[DataPart]) -> tuple[str, ...]:
    ids = (part.data.get("id") for part in parts if isinstance(part.data, dict))
    return tuple(key for key in ids if isinstance(key, str))


def _shown(value: Any) -> str:
    """A value as an error may quote it: short, whatever was sent."""
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _malformed(detail: str, ids: Sequence[str] = ()) -> Refusal:
    return Refusal("malformed_decision", f"{detail}. Nothing was decided.", tuple(ids))
