"""Expiry belongs to the pause, goes by Redis' clock, and means that nobody decided."""

from __future__ import annotations

import asyncio

from ledger.desk import Desk, completion, refused
from sayso_approvals.ledger import Ledger
from sayso_approvals.records import Commit, Verdict


async def test_what_nobody_decided_in_time_is_expired_by_any_replica(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger, seconds=-1)
    assert await desk.replica().expire_due() == 1
    (after,) = await ledger.view(view.pause.pause_id)
    record = after.state.verdict
    assert record is not None
    assert (record.verdict, record.by, record.via) == (Verdict.EXPIRED, "", "expiry")
    assert record.at == view.pause.expires_at
    assert after.intact
    assert await ledger.expire_due() == 0
    assert await ledger.open_count() == 0
    assert await ledger.work() == ["s1"]


async def test_what_still_has_time_is_left_open(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger, seconds=60)
    assert await ledger.expire_due() == 0
    assert (await ledger.view(view.pause.pause_id))[0].open


async def test_a_replica_whose_clock_is_ahead_expires_nothing_early(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger, seconds=60)
    await ledger.resolve("s1")
    ledger._watch.clock((await desk.redis.time())[0] * 1000 + 3_600_000)
    assert await ledger.expire_due() == 0
    assert (await ledger.view(view.pause.pause_id))[0].open


async def test_a_call_that_was_decided_is_not_expired(desk: Desk, ledger: Ledger) -> None:
    one, two = await desk.paused(ledger, desk.call("c1"), desk.call("c2"), seconds=60)
    await desk.decide(ledger, one)
    key = next(iter([key async for key in desk.redis.scan_iter("*:open")]))
    name = f"{(await desk.redis.zrange(key, 0, 0))[0]}"
    await desk.redis.zadd(key, {name: 0, name.replace(":1:", ":0:"): 0})
    assert await ledger.expire_due() == 0
    assert (await ledger.view(one.pause.pause_id))[0].state.verdict is not None
    assert (await ledger.view(two.pause.pause_id))[1].open
    assert await ledger.open_count() == 1, "what is no longer open leaves the index"


async def test_an_index_entry_of_nothing_disappears(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger, seconds=60)
    key = next(iter([key async for key in desk.redis.scan_iter("*:open")]))
    await desk.redis.zadd(key, {"a" * 26 + ":0:s9": 1})
    assert await ledger.expire_due() == 0
    assert await ledger.open_count() == 1


async def test_no_more_calls_than_asked_for_expire_at_once(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger, *(desk.call(f"c{n}") for n in range(5)), seconds=-1)
    assert [await ledger.expire_due(limit=2) for _ in range(4)] == [2, 2, 1, 0]


async def test_many_replicas_expire_a_call_once(desk: Desk) -> None:
    await desk.paused(desk.replica(), *(desk.call(f"c{n}") for n in range(3)), seconds=-1)
    counts = await asyncio.gather(*(desk.replica().expire_due() for _ in range(10)))
    assert sum(counts) == 3


async def test_a_changed_record_is_cancelled_when_its_time_is_over(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger, seconds=-1)
    await desk.redis.hset(await desk.live_key(), await desk.field(":mac"), "x")
    assert await ledger.expire_due() == 1
    assert await ledger.expire_due() == 0
    turn, (seen,) = await ledger.take_and_claim("s1", requester="ann")
    assert not seen.intact
    assert seen.state.verdict is not None
    assert seen.state.verdict.verdict is Verdict.CANCELLED
    await ledger.commit(turn, Commit(completions=(completion(turn, seen),)))
    assert view.call.call_id == "c1"


async def test_of_a_decision_and_the_expiry_exactly_one_wins(desk: Desk) -> None:
    won: set[str] = set()
    for number in range(30):
        ledger = desk.replica()
        (view,) = await desk.paused(ledger, session=f"s{number}", seconds=0.004)
        decided, expired = await asyncio.gather(
            desk.decide(ledger, view), desk.replica().expire_due(), return_exceptions=True
        )
        (after,) = await desk.replica().view(view.pause.pause_id)
        if decided is None:
            assert expired == 0
            assert after.state.verdict is not None
            assert after.state.verdict.verdict is Verdict.APPROVED
        elif after.open:
            raise AssertionError(f"refused ({decided}), but still open")
        else:
            await refused(desk.decide(ledger, view), "expired")
        won.add("decided" if decided is None else "expired")
    assert won


async def test_a_call_that_is_done_leaves_the_index_and_keeps_its_verdict(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger, seconds=-1)
    (member,) = await desk.redis.zrange(ledger._keys.open, 0, -1)
    assert await ledger.expire_due() == 1
    turn, (view,) = await ledger.take_and_claim("s1", requester="ann")
    await ledger.commit(turn, Commit(completions=(completion(turn, view),)))
    await desk.redis.hset(await desk.live_key(), await desk.field(":mac"), "x")
    await desk.redis.zadd(ledger._keys.open, {member: 1})
    assert await ledger.expire_due() == 0
    assert await ledger.open_count() == 0


async def test_expiring_nothing_tells_nobody(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger, seconds=60)
    await desk.redis.zadd(ledger._keys.open, {"a" * 26 + ":0:s9": 1})
    hints = await desk.redis.xlen(ledger._keys.wake)
    await ledger.expire_due()
    assert await desk.redis.xlen(ledger._keys.wake) == hints
