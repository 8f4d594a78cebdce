"""Deciding and settling: one call after the other, so that one that is refused keeps nobody from the rest."""

from __future__ import annotations

import json
import os
import pwd
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sayso_approvals import questions
from sayso_approvals.forwarding import inner_of, is_forwarding, verdict_on
from sayso_approvals.ledger import Choice
from sayso_approvals.records import Kind, Verdict
from sayso_approvals.refusals import Refusal
from sayso_cli.approvals.rows import Row, find, is_input
from sayso_cli.approvals.store import Store, sentence
from sayso_cli.errors import USAGE, CliError
from sayso_cli.output import safe


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one id. `error` empty: done."""

    id: str
    tool: str
    agent: str
    word: str
    error: str = ""
    code: str = ""

    def document(self) -> dict[str, Any]:
        """For `-o json`."""
        return {
            "id": self.id,
            "agent": self.agent,
            "tool": self.tool,
            "result": "refused" if self.error else self.word,
            "error": self.error or None,
            "code": self.code or None,
        }


def who() -> str:
    """The name that goes on record: the operating system's for this process, which no variable can change."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


def picked(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """The calls that `names` mean, each once. Every name must fit before anything is decided."""
    found: list[Row] = []
    for name in names:
        row = find(rows, name)
        if all(row.short != other.short for other in found):
            found.append(row)
    return found


async def decide(
    store: Store, names: Sequence[str], verdict: Verdict, *, reason: str, payload: str | None = None
) -> list[Outcome]:
    """Gives `verdict` to each call. `payload` is JSON text: the value that a question for input wants."""
    by = who()
    rows = picked(await store.rows(done=True), names)
    if payload is not None and len(rows) != 1:
        raise CliError("--answer is for one call at a time", USAGE)

    async def one(row: Row) -> None:
        chosen, given = verdict_for(row, verdict, payload), payload
        if chosen is Verdict.ANSWERED and payload is not None:
            given = answer_for(row, payload)
        call = row.view.call
        if is_forwarding(row.view):
            chosen, given = passed_on(row, verdict, reason, payload)
        choice = Choice(
            pause_id=row.view.pause.pause_id,
            call_id=call.call_id,
            digest=call.digest,
            verdict=chosen,
            reason=reason,
            payload=given if given is not None else "null",
        )
        await store.ledger(row.agent).decide([choice], by=by, via="cli", decision_id=f"cli-{uuid.uuid4().hex}")

    return [await _tried(row, verdict.value, one) for row in rows]


def verdict_for(row: Row, verdict: Verdict, payload: str | None) -> Verdict:
    """The verdict to record. Refusal where this one makes no sense for this call."""
    if row.doubtful and verdict is Verdict.APPROVED:
        raise Refusal(
            "malformed_decision",
            f"whether {row.view.call.tool} ran is not known, so approving it again could run it twice; "
            f"look for yourself, then: sayso approvals settle {row.short} --retry, --result or --abandon",
        )
    if not row.view.intact and verdict is not Verdict.CANCELLED:
        raise Refusal(
            "integrity",
            f"the record of {row.view.call.tool} is not as its agent wrote it, and cannot be believed; "
            f"all that can be done is: sayso approvals cancel {row.short}",
        )
    if is_input(row) and verdict is Verdict.APPROVED:
        if payload is None:
            raise Refusal("malformed_decision", f"{row.view.call.tool} wants a value: give it with --answer")
        return Verdict.ANSWERED
    if payload is not None and not is_forwarding(row.view):
        raise Refusal("malformed_decision", f"{row.view.call.tool} wants a yes or no, not a value: leave --answer out")
    return verdict


def answer_for(row: Row, payload: str) -> str:
    """The value to record (JSON text). Refusal where it does not answer what is asked."""
    call = row.view.call
    if call.kind is not Kind.QUESTION:
        return payload
    answers = questions.canonical(questions.read(json.loads(call.arguments)), json.loads(payload), call.call_id)
    return json.dumps(answers, ensure_ascii=False)


def passed_on(row: Row, verdict: Verdict, reason: str, answer: str | None) -> tuple[Verdict, str]:
    """The verdict to record about a call that waits for another agent, and its payload: everything that waits there
    gets the same. Refusal where nothing that waits there can be meant."""
    found = verdict_on(row.view, verdict, reason, answer)
    if found is None:
        names = ", ".join(safe(one.name) for one in inner_of(row.view)) or "nothing"
        raise Refusal(
            "malformed_decision",
            f"agent {row.view.call.tool} waits with {names}, which this cannot mean: decide it there by its own name",
        )
    return found


async def settle(store: Store, names: Sequence[str], action: str, *, result: str | None, reason: str) -> list[Outcome]:
    """Settles unknown outcomes: `retry`, `result` (JSON text) or `abandon`."""
    by = who()
    rows = picked(await store.rows(done=True), names)

    async def one(row: Row) -> None:
        if not row.doubtful:
            raise Refusal(
                "malformed_decision",
                f"there is nothing to settle: {row.view.call.tool} is {row.state}, and its outcome is not in doubt",
            )
        await store.ledger(row.agent).settle(
            row.view.pause.pause_id,
            row.view.call.call_id,
            action=action,
            result=result,
            by=by,
            reason=reason,
            attempt=row.view.state.attempt,
        )

    return [await _tried(row, f"settled ({action})", one) for row in rows]


async def _tried(row: Row, word: str, step: Callable[[Row], Awaitable[None]]) -> Outcome:
    try:
        await step(row)
    except Refusal as refusal:
        if refusal.code == "store_unreachable":
            raise
        return Outcome(row.short, row.view.call.tool, str(row.agent), word, sentence(refusal), refusal.code)
    return Outcome(row.short, row.view.call.tool, str(row.agent), word)


def summary(outcomes: Sequence[Outcome]) -> str:
    """One line for each id, and a count where there are several."""
    lines = [
        f"{one.id}  {safe(one.agent)}  {safe(one.tool)}  " + (f"refused: {one.error}" if one.error else one.word)
        for one in outcomes
    ]
    if len(outcomes) > 1:
        refused = sum(1 for one in outcomes if one.error)
        lines.append(f"{len(outcomes) - refused} done, {refused} refused")
    return "\n".join(lines)
