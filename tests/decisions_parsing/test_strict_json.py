"""JSON from outside: one meaning or none."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sayso_runtime.interfaces import strict_json


@pytest.mark.parametrize(
    ("text", "duplicates"),
    [
        ('{"a":1,"b":2}', ()),
        ('{"a":1,"a":1}', ("a",)),
        ('{"x":{"a":1,"a":2},"y":[{"b":1,"b":2,"b":3}]}', ("a", "b")),
        ('{"a":{"a":1}}', ()),
        ('{"a":1,"\\u0061":2}', ("a",)),
    ],
)
def test_keys_that_one_object_repeats_are_reported(text: str, duplicates: tuple[str, ...]) -> None:
    assert strict_json.loads(text).duplicates == duplicates
    assert strict_json.loads(text).value == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":1e999}',
        b'"\\ud800"',
        b'{"a":"x\\uDC00y"}',
        b"[" * 100_000,
        b'{"a":' * 65 + b"1" + b"}" * 65,
        b"1" * 5000,
        b"{} {}",
        b"{'a':1}",
    ],
)
def test_what_is_not_json_is_told_apart_from_every_other_error(text: bytes) -> None:
    with pytest.raises(strict_json.NotJson):
        strict_json.loads(text)


def test_depth_up_to_the_limit_and_any_width_is_fine() -> None:
    deep = b"[" * 64 + b"]" * 64
    wide = json.dumps([{"a": [1]}] * 500).encode()
    assert strict_json.loads(deep).value
    assert len(strict_json.loads(wide).value) == 500
    assert strict_json.loads(b'"\\ud83d\\ude00"').value == "😀"


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(text: bytes) -> None:
    with contextlib.suppress(strict_json.NotJson):
        strict_json.loads(text)


@pytest.mark.parametrize("value", [math.nan, {"a": [math.inf]}, {"when": object()}, "\ud800", {"k": "ü😀"}, {1: 2}])
def test_everything_can_be_written_as_json_that_others_can_read(value: Any) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads(strict_json.dumps(value).decode("utf-8"), parse_constant=refuse)
