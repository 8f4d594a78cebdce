"""Seals and keys: what is sealed as one thing never passes for another, and a key is its owner's alone."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso_approvals.records import AgentId, Kind, Pause, PausedCall, Verdict, VerdictRecord
from sayso_approvals.seal import (
    BadKey,
    BadRecord,
    dump_pause,
    dump_verdict,
    holds,
    load_or_create_key,
    load_pause,
    load_verdict,
    new_key,
    seal,
)

texts = st.text(max_size=20)
times = st.floats(min_value=0, max_value=1e10)
calls = st.builds(
    PausedCall,
    call_id=texts,
    kind=st.sampled_from(Kind),
    server=texts,
    endpoint=texts,
    tool=texts,
    alias=texts,
    arguments=texts,
    digest=texts,
    phase=st.integers(1, 9),
    gated_by=st.lists(texts, max_size=2).map(tuple),
    idempotent=st.booleans(),
    timeout_seconds=times,
    editable=st.lists(texts, max_size=2).map(tuple),
)
pauses = st.builds(
    Pause,
    pause_id=texts,
    agent=st.builds(AgentId, texts, texts),
    session_id=texts,
    task_id=texts,
    engine=texts,
    requester=texts,
    opened_at=times,
    expires_at=times,
    calls=st.lists(calls, max_size=3).map(tuple),
    path=st.lists(texts, max_size=2).map(tuple),
)
verdicts = st.builds(
    VerdictRecord,
    pause_id=texts,
    call_id=texts,
    digest=texts,
    verdict=st.sampled_from(Verdict),
    by=texts,
    at=times,
    via=texts,
    attempt=st.integers(1, 9),
    reason=texts,
    payload=texts,
)


@given(pauses)
def test_a_pause_is_read_as_it_was_written(pause: Pause) -> None:
    assert load_pause(dump_pause(pause)) == pause


@given(verdicts)
def test_a_verdict_is_read_as_it_was_written(record: VerdictRecord) -> None:
    assert load_verdict(dump_verdict(record)) == record


@given(verdicts, verdicts)
def test_only_the_same_verdict_has_the_same_seal(one: VerdictRecord, other: VerdictRecord) -> None:
    key = b"k" * 32
    assert (seal(key, "verdict", dump_verdict(one)) == seal(key, "verdict", dump_verdict(other))) is (one == other)


def test_a_seal_of_one_kind_or_key_is_none_of_another() -> None:
    key, text = new_key(), "{}"
    mac = seal(key, "pause", text)
    assert holds(key, "pause", text, mac)
    assert not holds(key, "verdict", text, mac)
    assert not holds(new_key(), "pause", text, mac)
    assert not holds(key, "pause", text + " ", mac)
    assert not holds(key, "pause", text, "")
    assert not holds(key, "pause", text, "\udcff")


VERDICT = VerdictRecord("p", "c", "d", Verdict.APPROVED, "ann", 1.0, "chat")


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "maybe"}, {"verdict": None}, {"at": "1"}, {"at": True}, {"by": 1}, {"attempt": 1.5}, {"extra": 1},
        {"payload": {}}, {"attempt": False},
    ],
    ids=str,
)  # fmt: skip
def test_a_verdict_of_another_shape_is_no_verdict(change: dict[str, Any]) -> None:
    with pytest.raises(BadRecord):
        load_verdict(json.dumps(json.loads(dump_verdict(VERDICT)) | change))


@pytest.mark.parametrize(
    "change",
    [
        {"agent": "a/b"},
        {"agent": ["a"]},
        {"calls": {}},
        {"calls": [1]},
        {"calls": [{}]},
        {"path": [1]},
        {"engine": None},
    ],
    ids=str,
)
def test_a_pause_of_another_shape_is_no_pause(change: dict[str, Any]) -> None:
    pause = Pause("p", AgentId("a", "b"), "s", "t", "adk", "ann", 1.0, 2.0, ())
    with pytest.raises(BadRecord):
        load_pause(json.dumps(json.loads(dump_pause(pause)) | change))


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", "{", "[" * 100_000, '"x"'])
def test_any_other_text_is_no_record(text: str) -> None:
    for load in (load_pause, load_verdict):
        with pytest.raises(BadRecord):
            load(text)


def test_a_record_cannot_be_read_with_a_field_missing() -> None:
    document = json.loads(dump_verdict(replace(VERDICT, reason="x")))
    for name in list(document):
        with pytest.raises(BadRecord):
            load_verdict(json.dumps({key: value for key, value in document.items() if key != name}))


def test_a_key_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "state" / "key"
    key = load_or_create_key(path)
    assert len(key) == 32
    assert load_or_create_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["key"], "nothing half made is left behind"
    assert new_key() != new_key()


def test_replicas_that_start_at_once_share_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(lambda _: load_or_create_key(tmp_path / "key"), range(64)))
    assert len(keys) == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o622])
def test_a_key_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    load_or_create_key(path)
    path.chmod(mode)
    with pytest.raises(BadKey, match=r"chmod 600"):
        load_or_create_key(path)


@pytest.mark.parametrize("text", ["", "00", "zz" * 32, "00" * 31, "00" * 33, "é" * 32])
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(BadKey, match="hexadecimal"):
        load_or_create_key(path)
