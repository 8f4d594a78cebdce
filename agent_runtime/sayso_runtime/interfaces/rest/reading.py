"""Reads the body of a chat request. Pure: nothing here knows what is pending.

    {"prompt", "session_id"?, "agent"?, "stream"?}                         a message
    {"session_id", "agent"?, "stream"?, "resume": {"run_id"?, "decisions": [{"id", "status", "message"?, "payload"?}]}}

A member that is null counts as left out: clients of typed languages send every member. Members that are not known are
passed over beside a prompt, as clients send context of their own there, and refused inside `resume`: a decision that
is not understood whole decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sayso_approvals.records import Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.interfaces.answering import fingerprint
from sayso_runtime.interfaces.problems import Fault, identifier
from sayso_runtime.interfaces.strict_json import Parsed
from sayso_runtime.messages import Answer, DataPart, NamedDecision, TextPart

WORDS = {"approved": Verdict.APPROVED, "denied": Verdict.REJECTED, "cancelled": Verdict.CANCELLED}
_RESUME = frozenset({"run_id", "decisions"})
_DECISION = frozenset({"id", "status", "message", "payload"})


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat request. `decision` None: a message. `fingerprint` tells one request from another under the same key."""

    agent: str | None
    session_id: str | None
    stream: bool
    part: TextPart | DataPart
    fingerprint: str
    run_id: str | None = None
    decision: NamedDecision | None = None


def read_chat(parsed: Parsed) -> Chat:
    """Raises `Fault`, and `Refusal("malformed_decision")` for what is wrong with a decision, naming the ids."""
    body = parsed.value
    if not isinstance(body, dict):
        raise Fault(422, "the body has to be an object")
    given = {key: value for key, value in body.items() if value is not None}
    resume = given.get("resume")
    if parsed.duplicates:
        names = ", ".join(repr(key) for key in parsed.duplicates)
        detail = f"an object says each thing once, but {names} is there twice"
        raise _malformed(detail, parsed.duplicates) if resume is not None else Fault(422, detail, parsed.duplicates)
    session_id = given.get("session_id")
    stream = given.get("stream", False)
    if not isinstance(stream, bool):
        raise Fault(422, "stream is true or false", ("stream",))
    agent = given.get("agent")
    if agent is not None and not isinstance(agent, str):
        raise Fault(422, "agent is a name", ("agent",))
    session_id = None if session_id is None else identifier(session_id, "session_id")
    mark = fingerprint({key: value for key, value in given.items() if key != "stream"})
    if resume is None:
        return Chat(agent, session_id, stream, TextPart(_prompt(given)), mark)
    if "prompt" in given:
        raise _malformed("a request says something or decides something: leave out prompt or resume", ("prompt",))
    if session_id is None:
        raise _malformed("a decision names its session: session_id is missing", ("session_id",))
    run_id, decision = _resume(resume)
    return Chat(agent, session_id, stream, DataPart({"resume": resume}), mark, run_id, decision)


def _prompt(given: Mapping[str, Any]) -> str:
    prompt = given.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise Fault(422, "prompt has to be a text that says something; to decide, send resume instead", ("prompt",))
    return prompt


def _resume(resume: Any) -> tuple[str | None, NamedDecision]:
    if not isinstance(resume, dict):
        raise _malformed("resume is {run_id, decisions}", ("resume",))
    if strange := sorted(resume.keys() - _RESUME):
        raise _malformed(f"resume is {{run_id, decisions}}, without {', '.join(strange)}", strange)
    run_id = resume.get("run_id")
    if run_id is not None and (not isinstance(run_id, str) or not run_id):
        raise _malformed("run_id is the text that the paused answer has", ("run_id",))
    entries = resume.get("decisions")
    if not isinstance(entries, list) or not entries:
        raise _malformed("decisions is a list of at least one {id, status}", ("decisions",))
    answers: dict[str, Answer] = {}
    twice: list[str] = []
    for position, entry in enumerate(entries):
        name = _id(entry, position)
        if name in answers:
            twice.append(name)
        answers[name] = _answer(name, entry)
    if twice:
        raise _malformed("each call is decided once", tuple(dict.fromkeys(twice)))
    return run_id, NamedDecision(answers)


def _id(entry: Any, position: int) -> str:
    name = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        raise _malformed(f"decisions[{position}] is {{id, status, message?, payload?}} with the id of what it decides")
    return name


def _answer(name: str, entry: Mapping[str, Any]) -> Answer:
    """A status that is missing can only go with a value: the service refuses it where a verdict is wanted."""
    if strange := sorted(entry.keys() - _DECISION):
        raise _malformed(
            f"{name}: a decision is {{id, status, message, payload}}, without {', '.join(strange)}", (name,)
        )
    status, message, payload = entry.get("status"), entry.get("message"), entry.get("payload")
    if status is not None and (not isinstance(status, str) or status not in WORDS):
        raise _malformed(f"{name}: status is approved, denied or cancelled, not {_shown(status)}", (name,))
    if message is not None and not isinstance(message, str):
        raise _malformed(f"{name}: message is a text", (name,))
    has_payload = payload is not None
    value = payload if has_payload else message
    return Answer(
        Verdict.ANSWERED if status is None else WORDS[status],
        reason=message or "",
        payload=payload,
        has_payload=has_payload,
        value=value,
        has_value=value is not None and value != "",
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _malformed(detail: str, ids: Sequence[str] = ()) -> Refusal:
    return Refusal("malformed_decision", f"{detail}. Nothing was decided.", tuple(ids))
