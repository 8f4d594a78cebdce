"""What a decision says about questions of `ask_user`. Pure.

A person answers, declines (the reason goes to the model) or cancels. Whatever else is said is refused: a bare yes is no
answer, and a no is never turned into one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sayso_approvals import questions
from sayso_approvals.records import Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import Answer


def to_questions(arguments: Any, answer: Answer, name: str) -> Answer:
    """`answer` as it is meant for a call with these arguments: `ANSWERED` with answers as they are kept, or a verdict
    without any. Raises `malformed_decision`. Questions of another agent that cannot be read take what they are given.
    """
    if answer.verdict not in (Verdict.APPROVED, Verdict.ANSWERED):
        if answer.has_payload and answer.payload is not None:
            raise Refusal(
                "malformed_decision", f"{name} is declined or answered, not both. Nothing was decided.", (name,)
            )
        return replace(answer, value=None, has_value=False)
    given: Any = None
    if answer.has_value:
        given = answer.value
    elif answer.has_payload:
        given = answer.payload
    elif answer.reason:
        given = answer.reason
    try:
        asked = questions.read(arguments)
    except questions.BadQuestions:
        if given is None:
            raise Refusal("malformed_decision", f"{name} wants answers. Nothing was decided.", (name,)) from None
        return Answer(Verdict.ANSWERED, payload=given, has_payload=True)
    return Answer(Verdict.ANSWERED, payload=questions.canonical(asked, given, name), has_payload=True)
