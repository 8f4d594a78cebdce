"""Digests: equal for what is the same call, different for any other, and refused for numbers that would lie."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso_approvals.digest import LARGEST, NotCanonical, UnsafeNumber, canonical, digest, loads_strict

numbers = st.integers(-LARGEST, LARGEST) | st.floats(-1e15, 1e15)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, "x"]}, '{"a":[true,null,"x"],"b":1}'),
        ([3, 3.0, -0.0, 1e-7, 0.1, 333333333.33333329], "[3,3,0,1e-7,0.1,333333333.3333333]"),
        ("\u20ac$\u000f\u000aA'\"\\/", '"\u20ac$\\u000f\\nA\'\\"\\\\/"'),
        ({"\ufb33": 1, "\U0001f600": 2, "1": 3}, '{"1":3,"\U0001f600":2,"\ufb33":1}'),  # sorted by UTF-16 units
        ((), "[]"),
        ({}, "{}"),
    ],
)
def test_the_canonical_form_is_the_one_of_rfc_8785(value: Any, text: str) -> None:
    assert canonical(value) == text


@given(values)
def test_writing_and_reading_again_changes_nothing(value: Any) -> None:
    text = canonical(value)
    assert canonical(loads_strict(text)) == text


@given(values, values)
def test_two_values_share_a_digest_only_if_they_are_the_same_json(one: Any, other: Any) -> None:
    same = canonical(one) == canonical(other)
    assert (digest("s", "e", "t", one) == digest("s", "e", "t", other)) is same


def test_an_integer_that_became_a_float_on_the_way_is_the_same_call() -> None:
    assert digest("s", "e", "t", {"n": 3}) == digest("s", "e", "t", {"n": 3.0})
    assert digest("s", "e", "t", {"n": 3}) != digest("s", "e", "t", {"n": "3"})
    assert digest("s", "e", "t", {"n": 1}) != digest("s", "e", "t", {"n": True})


def test_every_part_of_what_runs_counts() -> None:
    base = ("shop/orders", "http://o/mcp", "refund", {"a": 1})
    digests = {digest(*base)}
    for index, other in enumerate(("shop/orders2", "http://evil/mcp", "refund_all", {"a": 2})):
        changed = [*base]
        changed[index] = other
        digests.add(digest(*changed))
    digests.add(digest("shop/orders", "refund", "http://o/mcp", {"a": 1}))
    assert len(digests) == 6
    assert all(one.startswith("sha256:") and len(one) == 71 for one in digests)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (LARGEST + 1, "$"),
        (-LARGEST - 1, "$"),
        ({"a": [0, {"b": 2**60}]}, "$.a[1].b"),
        ([float(2**53)], "$[0]"),
        ({"x": -1e300}, "$.x"),
        ([float("nan")], "$[0]"),
        ({"y": float("inf")}, "$.y"),
        ((1, -float("inf")), "$[1]"),
    ],
)
def test_a_number_whose_digest_would_lie_is_refused_by_its_path(value: Any, path: str) -> None:
    with pytest.raises(UnsafeNumber) as caught:
        canonical(value)
    assert caught.value.path == path
    with pytest.raises(UnsafeNumber):
        digest("s", "e", "t", value)


@pytest.mark.parametrize("value", [LARGEST, -LARGEST, float(LARGEST), 0.5, 1e15])
def test_every_other_number_is_fine(value: Any) -> None:
    assert float(canonical(value)) == value


@pytest.mark.parametrize(
    ("value", "path"), [({1: 2}, "$"), ({"a": {2: 3}}, "$.a"), ([b"x"], "$[0]"), ({"s": {1}}, "$.s"), ("\ud800", "$")]
)
def test_what_is_not_json_is_refused(value: Any, path: str) -> None:
    with pytest.raises(NotCanonical) as caught:
        canonical(value)
    assert caught.value.path == path


def test_what_is_nested_too_deeply_is_refused() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(NotCanonical):
        canonical(value)
    with pytest.raises(NotCanonical):
        loads_strict("[" * 100_000 + "]" * 100_000)
    while value:  # taken apart by hand, for the interpreter would do it recursively
        value = value[0]


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '{"a":{"b":1,"b":1}}',
        '[{"c":1,"\\u0063":2}]',
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e999",
        "",
        "{",
        "{'a':1}",
        "1 2",
        b"\xff",
    ],
)
def test_json_with_two_readings_is_refused(text: str | bytes) -> None:
    with pytest.raises(NotCanonical):
        loads_strict(text)


@given(values)
def test_all_other_json_is_read_as_usual(value: Any) -> None:
    text = json.dumps(value)
    assert loads_strict(text) == json.loads(text)
