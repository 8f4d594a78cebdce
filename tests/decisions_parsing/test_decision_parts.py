"""What counts as a decision, case by case: exactly this, and nothing that only looks like it."""

from __future__ import annotations

from typing import Any

import pytest

from sayso_approvals.records import Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.interfaces.a2a.decisions import read_decision
from sayso_runtime.messages import Answer, DataPart, NamedDecision, TextPart, UniformDecision

APPROVED, REJECTED = Verdict.APPROVED, Verdict.REJECTED
ANSWERS = [{"answer": ["PostgreSQL"]}, {"answer": ["a", "b"]}, {"answer": []}]


def native(response: Any, name: str = "adk_request_confirmation", key: Any = "q1", prefix: str = "adk_") -> DataPart:
    return DataPart({"id": key, "name": name, "response": response}, {f"{prefix}type": "function_response"})


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"decision_type": "approve"}, UniformDecision(Answer(APPROVED))),
        ({"decision_type": "reject"}, UniformDecision(Answer(REJECTED))),
        ({"decision_type": "reject", "rejection_reason": "no"}, UniformDecision(Answer(REJECTED, "no"))),
        ({"decision_type": "reject", "rejection_reason": None}, UniformDecision(Answer(REJECTED))),
        (
            {"decision_type": "approve", "ask_user_answers": ANSWERS},
            UniformDecision(Answer(APPROVED, payload={"ask_user_answers": ANSWERS}, has_payload=True)),
        ),
        ({"decision_type": "batch", "decisions": {"c1": "approve"}}, NamedDecision({"c1": Answer(APPROVED)})),
        (
            {
                "decision_type": "batch",
                "decisions": {"c1": "approve", "c2": "reject", "c3": "reject"},
                "rejection_reasons": {"c3": "late"},
            },
            NamedDecision({"c1": Answer(APPROVED), "c2": Answer(REJECTED), "c3": Answer(REJECTED, "late")}),
        ),
    ],
)
def test_a_decision_part_says_what_it_says(data: Any, expected: Any) -> None:
    assert read_decision([DataPart(data)]) == expected
    assert read_decision([DataPart(data, {}), TextPart("Approved"), TextPart("reject everything")]) == expected


@pytest.mark.parametrize(
    ("data", "ids"),
    [
        ({"decision_type": "Approve"}, ()),
        ({"decision_type": "approve "}, ()),
        ({"decision_type": "approved"}, ()),
        ({"decision_type": "deny"}, ()),
        ({"decision_type": None}, ()),
        ({"decision_type": True}, ()),
        ({"decision_type": ["approve"]}, ()),
        ({"decision_type": {"approve": True}}, ()),
        ({"decisions": {"c1": "approve"}}, ("c1",)),
        ({"rejection_reason": "no"}, ()),
        ({"rejection_reasons": {"c1": "no"}}, ()),
        ({"ask_user_answers": ANSWERS}, ()),
        ({"decision_type": "reject", "ask_user_answers": ANSWERS}, ()),
        ({"decision_type": "batch", "decisions": {"c1": "approve"}, "ask_user_answers": ANSWERS}, ("c1",)),
        ({"decision_type": "batch", "decisions": {"c1": "approve"}, "ask_user_answers": None}, ("c1",)),
        ({"decision_type": "batch", "decisions": {"c1": "reject"}, "ask_user_answers": {"c1": ANSWERS}}, ("c1",)),
        ({"decision_type": "batch", "decisions": {"c1": "approve"}, "ask_user_answers": {"c2": ANSWERS}}, ("c2",)),
        ({"decision_type": "batch", "decisions": {"c1": "approve"}, "ask_user_answers": {"c1": "x"}}, ()),
        ({"decision_type": "approve", "ask_user_answers": None}, ()),
        ({"decision_type": "approve", "ask_user_answers": []}, ()),
        ({"decision_type": "approve", "ask_user_answers": {}}, ()),
        ({"decision_type": "approve", "ask_user_answers": ["PostgreSQL"]}, ()),
        ({"decision_type": "approve", "ask_user_answers": [{"answer": "PostgreSQL"}]}, ()),
        ({"decision_type": "approve", "ask_user_answers": [{"answer": [1]}]}, ()),
        ({"decision_type": "approve", "ask_user_answers": [{"answer": [], "confirmed": True}]}, ()),
        ({"decision_type": "approve", "rejection_reason": "no"}, ()),
        ({"decision_type": "approve", "decisions": {"c1": "reject"}}, ("c1",)),
        ({"decision_type": "reject", "decisions": {"c1": "approve"}}, ("c1",)),
        ({"decision_type": "approve", "decision": "reject"}, ()),
        ({"decision_type": "approve", "approved": False}, ()),
        ({"decision_type": "reject", "rejection_reason": 7}, ()),
        ({"decision_type": "reject", "rejection_reasons": {"c1": "no"}}, ()),
        ({"decision_type": "batch"}, ()),
        ({"decision_type": "batch", "decisions": {}}, ()),
        ({"decision_type": "batch", "decisions": None}, ()),
        ({"decision_type": "batch", "decisions": ["c1"]}, ()),
        ({"decision_type": "batch", "decisions": "approve"}, ()),
        ({"decision_type": "batch", "decisions": {"": "approve"}}, ("",)),
        ({"decision_type": "batch", "decisions": {"c1": "approve", "c2": "deny"}}, ("c2",)),
        ({"decision_type": "batch", "decisions": {"c1": True}}, ("c1",)),
        ({"decision_type": "batch", "decisions": {"c1": None}}, ("c1",)),
        ({"decision_type": "batch", "decisions": {"c1": ["approve"]}}, ("c1",)),
        ({"decision_type": "batch", "decisions": {"c1": "approve"}, "rejection_reasons": {"c1": "no"}}, ("c1",)),
        ({"decision_type": "batch", "decisions": {"c1": "reject"}, "rejection_reasons": {"c9": "no"}}, ("c9",)),
        ({"decision_type": "batch", "decisions": {"c1": "reject"}, "rejection_reasons": {"c1": 1}}, ("c1",)),
        ({"decision_type": "batch", "decisions": {"c1": "reject"}, "rejection_reasons": "no"}, ("c1",)),
        ({"decision_type": "batch", "decisions": {"c1": "reject"}, "rejection_reason": "no"}, ("c1",)),
    ],
)
def test_what_is_close_to_a_decision_is_refused_and_the_ids_are_named(data: Any, ids: tuple[str, ...]) -> None:
    with pytest.raises(Refusal) as refused:
        read_decision([DataPart(data), TextPart("Approved")])
    assert (refused.value.code, refused.value.ids) == ("malformed_decision", ids)


@pytest.mark.parametrize("prefix", ["adk_", "kagent_"])
@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({"confirmed": True}, Answer(APPROVED)),
        ({"confirmed": False}, Answer(REJECTED)),
        ({"confirmed": True, "payload": None, "hint": "x"}, Answer(APPROVED)),
        ({"confirmed": True, "payload": {"days": 3}}, Answer(APPROVED, payload={"days": 3}, has_payload=True)),
        ({"response": '{"confirmed": true}'}, Answer(APPROVED)),
        ({"response": '{"confirmed": false, "payload": 1}'}, Answer(REJECTED, payload=1, has_payload=True)),
    ],
)
def test_a_native_confirmation_names_its_question(prefix: str, response: Any, expected: Answer) -> None:
    assert read_decision([native(response, prefix=prefix)]) == NamedDecision({"q1": expected})


@pytest.mark.parametrize(
    "response",
    [
        {},
        None,
        True,
        "true",
        [],
        {"confirmed": None},
        {"confirmed": "true"},
        {"confirmed": 1},
        {"confirmed": 1.0},
        {"Confirmed": True},
        {"confirmed": True, "approved": False},
        {"payload": {"confirmed": True}},
        {"response": {"confirmed": True}},
        {"response": "confirmed"},
        {"response": "true"},
        {"response": '{"confirmed": "yes"}'},
        {"response": '{"confirmed": false, "confirmed": true}'},
        {"response": '{"response": "{\\"confirmed\\": true}"}'},
        {"response": "[" * 5000},
        {"response": '{"confirmed": true, "payload": NaN}'},
        {"confirmed": True, "response": '{"confirmed": true}'},
    ],
)
def test_a_confirmation_that_is_not_a_boolean_is_refused_by_its_id(response: Any) -> None:
    with pytest.raises(Refusal) as refused:
        read_decision([native(response)])
    assert (refused.value.code, refused.value.ids) == ("malformed_decision", ("q1",))


@pytest.mark.parametrize("key", [None, "", 1, True, ["q1"], {}])
def test_a_native_answer_without_an_id_is_refused(key: Any) -> None:
    with pytest.raises(Refusal, match="malformed_decision"):
        read_decision([native({"confirmed": True}, key=key)])


@pytest.mark.parametrize(
    "part",
    [
        DataPart("approve", {"adk_type": "function_response"}),
        DataPart(None, {"adk_type": "function_response"}),
        DataPart({"id": "q1", "response": {"confirmed": True}}, {"adk_type": "function_response"}),
        DataPart({"id": "q1", "name": 1, "response": {}}, {"adk_type": "function_response"}),
        DataPart({"id": "q1", "name": "wait", "response": {}, "willContinue": True}, {"adk_type": "function_response"}),
        DataPart(
            {"id": "q1", "name": "adk_request_confirmation", "response": {"confirmed": True}},
            {"adk_type": "function_response", "kagent_type": "function_call"},
        ),
        DataPart({"id": "q1", "name": "adk_request_confirmation", "response": {"confirmed": True}}, {}),
    ],
)
def test_a_native_answer_of_another_shape_is_refused(part: DataPart) -> None:
    with pytest.raises(Refusal, match="malformed_decision"):
        read_decision([part])


def test_answers_to_tools_that_wait_for_a_value_carry_it() -> None:
    parts = [native({"ticket": 7}, name="wait_for_ticket", key="t1"), native({"confirmed": True})]
    assert read_decision(parts) == NamedDecision(
        {"t1": Answer(Verdict.ANSWERED, payload={"ticket": 7}, has_payload=True), "q1": Answer(APPROVED)}
    )


@pytest.mark.parametrize(
    "parts",
    [
        [DataPart({"decision_type": "approve"}), DataPart({"decision_type": "approve"})],
        [DataPart({"decision_type": "approve"}), native({"confirmed": True})],
        [native({"confirmed": True}), native({"confirmed": False})],
        [native({"confirmed": True}), native({"confirmed": True})],
        [DataPart({"decision_type": "approve"}), DataPart({"note": "but only the first"})],
    ],
)
def test_two_decisions_in_one_message_are_refused_even_if_they_agree(parts: list[DataPart]) -> None:
    with pytest.raises(Refusal, match="malformed_decision"):
        read_decision(parts)


def test_keys_that_the_json_repeats_are_refused_by_name() -> None:
    with pytest.raises(Refusal) as refused:
        read_decision([DataPart({"decision_type": "batch", "decisions": {"c1": "approve"}})], ("c1",))
    assert (refused.value.code, refused.value.ids) == ("malformed_decision", ("c1",))


@pytest.mark.parametrize(
    "parts",
    [
        [TextPart("approve")],
        [TextPart('{"decision_type": "approve"}')],
        [TextPart("yes", {"adk_type": "function_response"})],
        [DataPart({"order": "A-1", "approve": True})],
        [DataPart(["decision_type", "approve"])],
        [DataPart({"name": "adk_request_confirmation", "id": "q1", "args": {}}, {"adk_type": "function_call"})],
        [],
    ],
)
def test_what_is_no_decision_decides_nothing(parts: list[Any]) -> None:
    assert read_decision(parts) is None
