"""Questions that an agent puts to a person, and what counts as an answer to them. Pure.

    arguments   {"questions": [{"question": text, "choices"?: [text, …], "multiple"?: bool}, …]}
    answers     {"ask_user_answers": [{"answer": [text, …]}, …]}         one entry per question, in their order

    BadQuestions           the model's arguments are no questions: told to the model, which can ask better

Choices are suggestions: a text of the person's own is always an answer, beside a choice or instead of one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sayso_approvals.refusals import Refusal

#: The tool that asks, its key as a server, and the member under which answers travel.
TOOL, SERVER, ANSWERS = "ask_user", "sayso", "ask_user_answers"
MOST_QUESTIONS, MOST_CHOICES, LONGEST_TEXT = 20, 50, 4096  # the last in bytes of UTF-8
MOST_ANSWERS, LONGEST_ANSWER = 100, 65_536  # to one question; the last in bytes of UTF-8


class BadQuestions(ValueError):  # noqa: N818  it describes the arguments
    """What is wrong, in words for the model."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `multiple`: several of the choices may be taken."""

    text: str
    choices: tuple[str, ...] = ()
    multiple: bool = False


def read(arguments: Any) -> tuple[Question, ...]:
    """The questions in a call's arguments. Raises `BadQuestions` naming the one that is wrong."""
    if not isinstance(arguments, dict) or arguments.keys() != {"questions"}:
        raise BadQuestions("ask_user takes one argument, questions")
    entries = arguments["questions"]
    if not isinstance(entries, list) or not entries:
        raise BadQuestions("questions has to be a list of at least one {question, choices, multiple}")
    if len(entries) > MOST_QUESTIONS:
        raise BadQuestions(f"at most {MOST_QUESTIONS} questions can be asked at once, not {len(entries)}")
    return tuple(_question(entry, f"questions[{index}]") for index, entry in enumerate(entries))


def _question(entry: Any, where: str) -> Question:
    if not isinstance(entry, dict):
        raise BadQuestions(f"{where} has to be an object {{question, choices, multiple}}")
    if strange := sorted(map(str, entry.keys() - {"question", "choices", "multiple"})):
        raise BadQuestions(f"{where} has members that are not known: {', '.join(strange)[:200]}")
    choices, multiple = entry.get("choices"), entry.get("multiple")
    if choices is None:
        choices = []
    if not isinstance(choices, list):
        raise BadQuestions(f"{where}.choices has to be a list of texts")
    if len(choices) > MOST_CHOICES:
        raise BadQuestions(f"{where}.choices has at most {MOST_CHOICES} entries, not {len(choices)}")
    if multiple is not None and not isinstance(multiple, bool):
        raise BadQuestions(f"{where}.multiple has to be true or false")
    texts = tuple(_text(choice, f"{where}.choices[{index}]") for index, choice in enumerate(choices))
    if len(set(texts)) != len(texts):
        raise BadQuestions(f"{where}.choices has one choice twice")
    return Question(_text(entry.get("question"), f"{where}.question"), texts, bool(multiple))


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadQuestions(f"{where} has to be a text that says something")
    if _size(value) > LONGEST_TEXT:
        raise BadQuestions(f"{where} is longer than {LONGEST_TEXT} bytes")
    return value


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def canonical(questions: Sequence[Question], given: Any, name: str) -> dict[str, Any]:
    """Answers in the form in which they are kept.

    `given` is that form, its list alone, or a list with a text or a list of texts per question; where there is one
    question, a text is enough. Raises `malformed_decision` naming `name` (the call) and the question.
    """
    if isinstance(given, dict) and len(given) == 1 and (ANSWERS in given or "answers" in given):
        given = next(iter(given.values()))
    entries = [given] if isinstance(given, str) else given
    if not isinstance(entries, list):
        raise _malformed(name, f"it asks {_count(questions)}: {wanted(questions)}")
    if len(entries) != len(questions):
        raise _malformed(name, f"it asks {_count(questions)} and got {len(entries)} answers: {wanted(questions)}")
    pairs = enumerate(zip(questions, entries, strict=True))
    return {ANSWERS: [{"answer": _answer(question, entry, index, name)} for index, (question, entry) in pairs]}


def _answer(question: Question, entry: Any, index: int, name: str) -> list[str]:
    asked = question.text if len(question.text) <= 80 else question.text[:79] + "…"

    def wrong(what: str) -> Refusal:
        return _malformed(name, f"question {index + 1} ({asked!r}) {what}")

    if isinstance(entry, dict) and entry.keys() == {"answer"}:
        entry = entry["answer"]
    texts = [entry] if isinstance(entry, str) else entry
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise wrong("is answered with a list of texts")
    if not texts or not all(text.strip() for text in texts):
        raise wrong("has no answer: choose, or say it in words")
    if len(texts) > MOST_ANSWERS or any(_size(text) > LONGEST_ANSWER for text in texts):
        raise wrong(f"takes at most {MOST_ANSWERS} texts of at most {LONGEST_ANSWER} bytes")
    chosen = [text for text in texts if text in question.choices]
    if len(chosen) > 1 and not question.multiple:
        raise wrong(f"takes one of its choices, not {len(chosen)}")
    return texts


def result(questions: Sequence[Question], answers: Any) -> list[dict[str, Any]]:
    """What the model is told, of answers in the form in which they are kept."""
    given = answers[ANSWERS]
    return [{"question": q.text, "answer": a["answer"]} for q, a in zip(questions, given, strict=True)]


def check(arguments: str, payload: str, name: str) -> None:
    """Whether a payload (JSON text) answers the questions of a call with these arguments (JSON text), in the form in
    which answers are kept. Raises `malformed_decision`."""
    given = json.loads(payload)
    try:
        questions = read(json.loads(arguments))
    except BadQuestions as error:
        raise _malformed(name, f"its questions cannot be read: {error}") from error
    if canonical(questions, given, name) != given:
        raise _malformed(name, wanted(questions))


def wanted(questions: Sequence[Question]) -> str:
    """What an answer has to look like."""
    return f"answer with {{{ANSWERS}: [{{answer: [text]}}]}}, one entry for each of {_count(questions)}"


def _count(questions: Sequence[Question]) -> str:
    return "one question" if len(questions) == 1 else f"{len(questions)} questions"


def _malformed(name: str, detail: str) -> Refusal:
    return Refusal("malformed_decision", f"{name}: {detail}. Nothing was decided.", (name,))
