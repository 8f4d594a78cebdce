"""Whoever can write to Redis can break a call, but can neither approve nor change one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ledger.desk import Desk, completion, refused
from sayso_approvals.digest import canonical, digest
from sayso_approvals.ledger import Ledger
from sayso_approvals.records import Begin, CallView, Commit, Journal, Kind, Verdict, state_of
from sayso_approvals.seal import new_key, seal


def changed(text: str, **changes: Any) -> str:
    """The record with its first call changed, the digest consistently too."""
    document = json.loads(text)
    call = document["calls"][0]
    call.update(changes)
    call["digest"] = digest(call["server"], call["endpoint"], call["tool"], json.loads(call["arguments"]))
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


async def tampered(desk: Desk, suffix: str, value: str) -> None:
    """Overwrites the one field that ends so."""
    await desk.redis.hset(await desk.live_key(), await desk.field(suffix), value)


async def can_only_be_cancelled(desk: Desk, view: CallView) -> None:
    """Neither a replica that knows the call nor a new one does anything else with it."""
    ledger = desk.replica()
    (seen,) = await ledger.view(view.pause.pause_id)
    assert not seen.intact
    assert state_of(seen) == "integrity"
    await refused(desk.decide(ledger, seen), "integrity")
    turn, claimed = await ledger.take_and_claim("s1", requester="ann")
    assert claimed == []
    await ledger.release(turn)
    await desk.decide(ledger, seen, Verdict.CANCELLED)
    turn, (seen,) = await ledger.take_and_claim("s1", requester="ann")
    await refused(ledger.begin(turn, seen), "integrity")
    await ledger.commit(turn, Commit(completions=(completion(turn, seen),), release=True))
    assert (await ledger.resolve("s1")).calls == []


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": canonical({"order": "all of them"})},
        {"tool": "refund_all"},
        {"endpoint": "http://evil:1/mcp"},
        {"gated_by": []},
        {"idempotent": True},
        {"timeout_seconds": 0},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("when", ["before the decision", "after it"])
async def test_a_record_changed_with_its_digest_is_refused(
    desk: Desk, ledger: Ledger, change: dict[str, Any], when: str
) -> None:
    (view,) = await desk.paused(ledger)
    if when == "after it":
        await desk.decide(ledger, view)
    text = await desk.redis.hget(await desk.live_key(), await desk.field(":record"))
    await tampered(desk, ":record", changed(str(text), **change))
    if when == "before the decision":
        await refused(desk.decide(ledger, view), "integrity")  # it has seen the record before
    await can_only_be_cancelled(desk, view)


@pytest.mark.parametrize("text", ["", "{}", "not json", "[]", "[" * 100_000, "\x00", '{"calls":[]}'])
async def test_a_record_that_is_no_record_is_shown_and_cancelled(desk: Desk, ledger: Ledger, text: str) -> None:
    (view,) = await desk.paused(ledger)
    await tampered(desk, ":record", text)
    (seen,) = await ledger.calls()
    assert (seen.pause.pause_id, seen.call.call_id) == (view.pause.pause_id, "c1")
    await can_only_be_cancelled(desk, view)


async def test_a_record_that_is_gone_is_shown_and_cancelled(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    await desk.redis.hdel(await desk.live_key(), await desk.field(":record"))
    await can_only_be_cancelled(desk, view)


async def test_bytes_that_are_no_text_are_shown_and_cancelled(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    await desk.redis.hset(await desk.live_key(), await desk.field(":record"), b"\xff\xfe{}")  # type: ignore[arg-type]
    await can_only_be_cancelled(desk, view)


async def test_a_record_sealed_with_another_key_is_refused(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    text = str(await desk.redis.hget(await desk.live_key(), await desk.field(":record")))
    await tampered(desk, ":mac", seal(new_key(), "pause", text))
    await can_only_be_cancelled(desk, view)


async def test_a_record_copied_from_another_session_is_refused(desk: Desk, ledger: Ledger) -> None:
    (cheap,) = await desk.paused(ledger, desk.call("cheap"))
    source = await desk.redis.hgetall(await desk.live_key())
    await desk.decide(ledger, cheap)
    name = (await desk.field(":record")).removesuffix(":record")
    turn = await ledger.take("s2", requester="bob")
    await ledger.release(turn)
    target = ledger._session("s2")[1]
    await desk.redis.hset(target, mapping=dict(source))
    found = (await desk.replica().resolve("s2")).calls
    assert [view.intact for view in found] == [False]
    assert name


async def test_a_record_moved_to_another_pauses_place_is_refused(desk: Desk, ledger: Ledger) -> None:
    (one,) = await desk.paused(ledger, desk.call("c1"))
    live = await desk.live_key()
    first = await desk.redis.hgetall(live)
    (two,) = await desk.paused(ledger, desk.call("c1"))
    both = await desk.redis.hgetall(live)
    (other,) = [name for name in both if name.endswith(":record") and name not in first]
    (mine,) = [name for name in first if name.endswith(":record")]
    for suffix in (":record", ":mac", ":pause"):
        await desk.redis.hset(
            live, other.removesuffix(":record") + suffix, first[mine.removesuffix(":record") + suffix]
        )
    seen = (await desk.replica().resolve("s1")).calls
    assert sorted(view.intact for view in seen) == [False, True]
    assert one.pause.pause_id != two.pause.pause_id


async def test_a_verdict_written_by_hand_runs_nothing(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    forged = json.dumps(
        {
            "pause_id": view.pause.pause_id, "call_id": "c1", "digest": view.call.digest, "verdict": "approved",
            "by": "ann", "at": 1.0, "via": "chat", "attempt": 1, "reason": "", "payload": "null",
        }
    )  # fmt: skip
    at = (await desk.field(":call")).removesuffix(":call")
    fields = {f"{at}:word": "approved", f"{at}:verdict": forged, f"{at}:vmac": "0" * 64}
    await desk.redis.hset(await desk.live_key(), mapping=dict(fields))
    await can_only_be_cancelled(desk, view)


@pytest.mark.parametrize("word", ["approved", "rejected", "cancelled"])
async def test_a_word_without_a_verdict_runs_nothing(desk: Desk, ledger: Ledger, word: str) -> None:
    (view,) = await desk.paused(ledger)
    at = (await desk.field(":call")).removesuffix(":call")
    await desk.redis.hset(await desk.live_key(), f"{at}:word", word)
    await can_only_be_cancelled(desk, view)


async def test_a_rejection_turned_around_runs_nothing(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    await desk.decide(ledger, view, Verdict.REJECTED)
    text = str(await desk.redis.hget(await desk.live_key(), await desk.field(":verdict")))
    await tampered(desk, ":verdict", text.replace("rejected", "approved"))
    await tampered(desk, ":word", "approved")
    await can_only_be_cancelled(desk, view)


async def test_an_approval_of_one_call_does_not_serve_for_another(desk: Desk, ledger: Ledger) -> None:
    one, two = await desk.paused(ledger, desk.call("c1"), desk.call("c2"))
    await desk.decide(ledger, one)
    live = await desk.live_key()
    stored = await desk.redis.hgetall(live)
    at = next(name for name in stored if name.endswith("0:call")).removesuffix("0:call")
    for field in ("word", "verdict", "vmac"):
        await desk.redis.hset(live, f"{at}1:{field}", stored[f"{at}0:{field}"])
    turn, claimed = await desk.replica().take_and_claim("s1", requester="ann")
    assert [view.call.call_id for view in claimed] == ["c1"]
    assert [view.intact for view in turn.calls] == [True, False]
    assert two.call.call_id == "c2"


async def test_an_approval_does_not_serve_for_a_second_attempt(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    await ledger.begin(turn, view)
    await ledger.doubt(turn, view, "?")
    await ledger.release(turn)
    at = (await desk.field(":call")).removesuffix(":call")
    live = await desk.live_key()
    await desk.redis.hset(live, f"{at}:attempt", "2")
    await desk.redis.hdel(live, f"{at}:journal", f"{at}:start")
    await can_only_be_cancelled(desk, view)


async def test_a_verdict_changed_between_claim_and_begin_runs_nothing(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    for suffix, value in ((":vmac", "0" * 64), (":word", "rejected")):
        kept = str(await desk.redis.hget(await desk.live_key(), await desk.field(suffix)))
        await tampered(desk, suffix, value)
        await refused(ledger.begin(turn, view), "integrity")
        await tampered(desk, suffix, kept)
    assert (await ledger.view(view.pause.pause_id))[0].state.journal is Journal.NONE


async def test_a_record_changed_between_claim_and_begin_runs_nothing(desk: Desk, ledger: Ledger) -> None:
    for suffix in (":record", ":mac"):
        turn, (view,) = await desk.claimed(ledger)
        kept = str(await desk.redis.hget(await desk.live_key(), await desk.field(suffix)))
        await tampered(desk, suffix, "x")
        await refused(ledger.begin(turn, view), "integrity")
        await tampered(desk, suffix, kept)
        assert (await ledger.begin(turn, view))[0] is Begin.RUN
        await desk.redis.flushall()


async def test_a_journal_word_that_nobody_here_writes_counts_as_unknown(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    await ledger.begin(turn, view)
    await tampered(desk, ":journal", "paused")
    (seen,) = await ledger.view(view.pause.pause_id)
    assert seen.doubtful


async def test_a_doubtful_call_whose_record_was_changed_is_not_settled(desk: Desk) -> None:
    ledger = desk.replica(lease=0.05)
    turn, (view,) = await desk.claimed(ledger, desk.call(timeout_seconds=0))
    await ledger.begin(turn, view)
    await ledger.doubt(turn, view, "?")
    await tampered(desk, ":mac", "x")
    await refused(
        ledger.settle(view.pause.pause_id, "c1", action="retry", result=None, by="bob", reason="", attempt=1),
        "integrity",
    )


async def test_a_verdict_taken_away_after_the_claim_is_not_told_to_the_model(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger, desk.call(kind=Kind.CONFIRMATION))
    live = await desk.live_key()
    at = (await desk.field(":call")).removesuffix(":call")
    await desk.redis.hdel(live, f"{at}:word", f"{at}:verdict", f"{at}:vmac")
    await refused(ledger.commit(turn, Commit(completions=(completion(turn, view),))), "integrity")


async def test_a_call_that_is_done_keeps_its_verdict_even_if_its_record_is_changed(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger, desk.call(kind=Kind.CONFIRMATION))
    await ledger.commit(turn, Commit(completions=(completion(turn, view),)))
    live = await desk.live_key()
    mac = await desk.field(":mac")
    (archived,) = [key async for key in desk.redis.scan_iter("*:pause:*")]
    for key in (live, archived):
        await desk.redis.hset(key, mac, "x")
    verdict = await desk.redis.hget(live, await desk.field(":verdict"))
    await refused(desk.decide(desk.replica(), view, Verdict.CANCELLED), "integrity")
    assert await desk.redis.hget(live, await desk.field(":verdict")) == verdict


async def test_a_call_that_went_away_while_it_was_cancelled_leaves_no_trace(
    desk: Desk, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    (view,) = await desk.paused(ledger)
    await tampered(desk, ":mac", "x")
    seen = await ledger._now(view.pause.pause_id, "c1")

    async def as_seen(_: object) -> object:
        return seen

    monkeypatch.setattr(ledger, "_find", as_seen)
    live = await desk.live_key()
    await desk.redis.delete(live)
    await refused(desk.decide(ledger, view, Verdict.CANCELLED), "unknown_call")
    assert await desk.redis.exists(live) == 0


async def test_of_two_who_cancel_a_changed_call_the_second_hears_of_it(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    await tampered(desk, ":mac", "x")
    seen = await ledger._now(view.pause.pause_id, "c1")
    await desk.decide(ledger, view, Verdict.CANCELLED, by="ann")
    verdict = await desk.redis.hget(await desk.live_key(), await desk.field(":verdict"))

    async def as_seen(_: object) -> object:
        return seen

    ledger._find = as_seen  # type: ignore[method-assign, assignment]
    await refused(desk.decide(ledger, view, Verdict.CANCELLED, by="bob"), "integrity")
    assert await desk.redis.hget(await desk.live_key(), await desk.field(":verdict")) == verdict


async def test_a_forged_verdict_stays_on_record_when_it_is_cancelled(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    live = await desk.live_key()
    at = (await desk.field(":call")).removesuffix(":call")
    await desk.decide(ledger, view, Verdict.CANCELLED)
    assert await desk.redis.hget(live, f"{at}:history") is None, "there was nothing before"
    await desk.redis.hset(live, mapping={f"{at}:verdict": "forged", f"{at}:vmac": "forged", f"{at}:word": "approved"})
    await desk.decide(desk.replica(), view, Verdict.CANCELLED)
    assert await desk.redis.hget(live, f"{at}:history") == "forged\tforged\n"
