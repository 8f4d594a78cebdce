"""Whatever is sent: an approval is only ever what says so literally, and nothing but a refusal is raised."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sayso_approvals.records import Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.interfaces import strict_json
from sayso_runtime.interfaces.a2a.decisions import read_decision
from sayso_runtime.messages import Answer, DataPart, Decision, NamedDecision, Part, TextPart

WORDS = ["approve", "reject", "batch", "deny", "Approve", "APPROVE", "yes", "true", "", "confirmed", "c1", "c2"]
KEYS = [
    "decision_type",
    "decisions",
    "rejection_reason",
    "rejection_reasons",
    "ask_user_answers",
    "answer",
    "id",
    "name",
    "response",
    "confirmed",
    "payload",
    "approved",
    "c1",
    "c2",
]
NAMES = ["adk_request_confirmation", "wait_for_ticket"]
WRAPPED = ['{"confirmed": true}', '{"confirmed": "true"}', '{"confirmed": false}', "{", "null"]

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.floats(allow_nan=False), st.sampled_from(WORDS + NAMES + WRAPPED)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=12,
)
metadata = st.dictionaries(
    st.sampled_from(["adk_type", "kagent_type", "type"]),
    st.sampled_from(["function_response", "function_call", "text", "", None, True]),
    max_size=2,
)
parts = st.lists(st.one_of(st.builds(DataPart, values, metadata), st.builds(TextPart, st.text(max_size=8))), max_size=4)


def said_yes_to(sent: Sequence[Part]) -> tuple[bool, set[str]]:
    """Independently of the parser: is there a literal uniform yes, and which ids have one of their own?"""
    everything, named = False, set()
    for part in sent:
        if not isinstance(part, DataPart) or not isinstance(part.data, Mapping):
            continue
        if part.data.get("decision_type") == "approve":
            everything = True
        decisions = part.data.get("decisions")
        if part.data.get("decision_type") == "batch" and isinstance(decisions, Mapping):
            named |= {key for key, word in decisions.items() if word == "approve"}
        response = part.data.get("response")
        if isinstance(response, Mapping):
            inner = response.get("response")
            wrapped = strict_json.loads(inner).value if inner == WRAPPED[0] else response
            if wrapped.get("confirmed") is True and isinstance(part.data.get("id"), str):
                named.add(part.data["id"])
    return everything, named


def outcome(sent: Sequence[Part]) -> tuple[Decision | None, Refusal | None]:
    """What parsing gives or refuses; any other exception passes through."""
    try:
        return read_decision(sent), None
    except Refusal as refusal:
        return None, refusal


def check(sent: Sequence[Part]) -> Decision | None:
    """Parses, and compares what is approved with what was literally said."""
    before = copy.deepcopy(list(sent))
    decision, refusal = outcome(sent)
    assert list(sent) == before
    if refusal is not None:
        assert refusal.code == "malformed_decision"
        assert all(isinstance(key, str) for key in refusal.ids)
        assert strict_json.dumps(refusal.problem())
        return None
    everything, named = said_yes_to(sent)
    match decision:
        case None:
            pass
        case NamedDecision(answers):
            assert answers
            assert {key for key, answer in answers.items() if answer.verdict is Verdict.APPROVED} <= named
        case _:
            assert decision.answer.verdict is not Verdict.APPROVED or everything
    return decision


@settings(max_examples=1500, deadline=None)
@given(parts)
def test_nothing_is_approved_that_was_not_literally_approved(sent: list[Part]) -> None:
    check(sent)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=4), st.sampled_from(["approve", "reject"]), min_size=1, max_size=6))
def test_a_whole_batch_is_read_exactly_as_it_was_sent(decisions: dict[str, str]) -> None:
    verdicts = {"approve": Verdict.APPROVED, "reject": Verdict.REJECTED}
    read = read_decision([DataPart({"decision_type": "batch", "decisions": decisions})])
    assert read == NamedDecision({key: Answer(verdicts[word]) for key, word in decisions.items()})


@settings(max_examples=500, deadline=None)
@given(st.text())
def test_text_is_never_a_decision(words: str) -> None:
    assert read_decision([TextPart(words)]) is None


def test_twenty_thousand_mutated_messages_raise_nothing_but_refusals() -> None:
    random_numbers = random.Random(20_240_501)
    decided = refused = 0
    for _ in range(20_000):
        sent = [mutated(part, random_numbers) for part in random_numbers.choice(SEEDS)]
        decided, refused = (decided + 1, refused) if check(sent) is not None else (decided, refused + 1)
    # Both must happen often, or the mutations test nothing.
    assert decided > 1_000
    assert refused > 5_000


SEEDS: list[list[Part]] = [
    [DataPart({"decision_type": "approve"}), TextPart("Approved")],
    [DataPart({"decision_type": "reject", "rejection_reason": "no"})],
    [
        DataPart(
            {
                "decision_type": "batch",
                "decisions": {"c1": "approve", "c2": "reject"},
                "rejection_reasons": {"c2": "no"},
            }
        )
    ],
    [DataPart({"decision_type": "approve", "ask_user_answers": [{"answer": ["a"]}, {"answer": ["b", "c"]}]})],
    [
        DataPart({"id": key, "name": NAMES[0], "response": {"confirmed": confirmed}}, {"adk_type": "function_response"})
        for key, confirmed in (("c1", True), ("c2", False))
    ],
    [
        DataPart(
            {"id": "c1", "name": NAMES[0], "response": {"response": WRAPPED[0]}}, {"kagent_type": "function_response"}
        )
    ],
]


def mutated(part: Part, random_numbers: random.Random) -> Part:
    """The part with up to three of its places changed."""
    if isinstance(part, TextPart):
        return part
    box: dict[str, Any] = {"data": copy.deepcopy(part.data), "metadata": dict(part.metadata)}
    for _ in range(random_numbers.randrange(4)):
        holder, key = random_numbers.choice(list(places(box)))
        match random_numbers.randrange(4):
            case 0 if holder is not box:
                del holder[key]
            case 1 if isinstance(holder, dict) and holder is not box:
                holder[random_numbers.choice(KEYS)] = holder[key]
            case _:
                holder[key] = random_numbers.choice([None, True, 1, [], {}, "\x00", {"c1": "approve"}, *WORDS, *NAMES])
    return DataPart(box["data"], box["metadata"] if isinstance(box["metadata"], dict) else {})


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])
