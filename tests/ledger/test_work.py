"""After a crash somebody goes on; while all is well nobody gets in the way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from ledger.desk import Desk, choice, completion, eventually
from sayso_approvals.ledger import Ledger
from sayso_approvals.records import Begin, Commit, Kind, Verdict
from sayso_approvals.refusals import Refusal


async def test_a_decided_call_is_work_until_it_is_done(desk: Desk, ledger: Ledger) -> None:
    assert await ledger.work() == []
    (view,) = await desk.paused(ledger, desk.call(kind=Kind.CONFIRMATION))
    assert await ledger.work() == [], "nobody has decided"
    await desk.decide(ledger, view, Verdict.REJECTED)
    assert await desk.replica().work() == ["s1"]
    turn, (view,) = await ledger.take_and_claim("s1", requester="ann")
    assert await ledger.work() == [], "somebody is at it"
    await ledger.commit(turn, Commit(completions=(completion(turn, view),), release=True))
    assert await ledger.work() == []


async def test_a_turn_whose_holder_died_is_work(desk: Desk, ledger: Ledger) -> None:
    turn = await desk.replica(lease=0.05).take("s1", requester="ann")
    await desk.lease_over(turn)
    assert await ledger.work() == ["s1"]
    turn = await ledger.take("s1", requester="ann")
    assert turn.dirty
    await ledger.release(turn)
    assert await ledger.work() == []


async def test_a_claimed_call_whose_holder_died_is_work(desk: Desk, ledger: Ledger) -> None:
    await desk.approved(ledger)
    turn, _ = await desk.replica(lease=0.05).take_and_claim("s1", requester="ann")
    await desk.lease_over(turn)
    assert await ledger.work() == ["s1"]


async def test_a_doubtful_call_is_a_persons_work_only(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    await ledger.begin(turn, view)
    await ledger.release(turn)
    turn, (view,) = await ledger.take_and_claim("s1", requester="ann")
    assert (await ledger.begin(turn, view))[0] is Begin.UNKNOWN
    await ledger.release(turn)
    assert await ledger.work() == []
    assert [v.doubtful for v in await ledger.calls()] == [True]


async def test_a_failing_run_is_not_tried_again_at_once(desk: Desk, ledger: Ledger) -> None:
    turn, _ = await desk.claimed(ledger)
    await ledger.release(turn)
    assert await ledger.work() == []


async def test_a_failing_run_is_tried_again_within_a_lease(desk: Desk) -> None:
    ledger = desk.replica(lease=0.2)
    turn, _ = await desk.claimed(ledger)
    await ledger.release(turn)

    async def again() -> bool:
        return await ledger.work() == ["s1"]

    await eventually(again)


async def test_whoever_decides_and_goes_on_itself_gets_a_head_start(desk: Desk) -> None:
    ledger = desk.replica(lease=0.3)
    (view,) = await desk.paused(ledger)
    hints = await desk.redis.xlen(ledger._keys.inbox)
    await ledger.decide([choice(view)], by="ann", via="chat", decision_id="d1", resumes=True)
    assert await ledger.work() == []
    assert await desk.redis.xlen(ledger._keys.inbox) == hints, "nobody else is woken"

    async def others_look() -> bool:
        return await ledger.work() == ["s1"]

    await eventually(others_look)


async def test_a_replica_hears_of_a_decision(desk: Desk, ledger: Ledger) -> None:
    other = desk.replica(lease=10_000)  # it looks by itself once in an hour and a half
    assert await other.wait_for_work("r2", 0.01) == []
    (view,) = await desk.paused(ledger)
    waiter = asyncio.create_task(other.wait_for_work("r2", 60))
    await desk.decide(ledger, view)
    assert await waiter == ["s1"]


async def test_a_lost_hint_costs_half_a_lease_only(desk: Desk, ledger: Ledger) -> None:
    other = desk.replica(lease=0.4)
    assert await other.wait_for_work("r2", 0.01) == []
    await desk.approved(ledger)
    (inbox,) = [key async for key in desk.redis.scan_iter("*:inbox")]
    await desk.redis.delete(inbox)
    assert await other.wait_for_work("r2", 60) == ["s1"]


async def test_a_decision_during_a_turn_is_work_right_after_it(desk: Desk, ledger: Ledger) -> None:
    one, two = await desk.paused(ledger, desk.call("c1", Kind.CONFIRMATION), desk.call("c2", Kind.CONFIRMATION))
    await desk.decide(ledger, one)
    turn, (one,) = await ledger.take_and_claim("s1", requester="ann")
    other = desk.replica()
    while await other.wait_for_work("r2", 0.01):
        pass
    await desk.decide(ledger, two)
    assert await other.wait_for_work("r2", 0.01) == [], "the turn is held"
    waiter = asyncio.create_task(other.wait_for_work("r2", 60))
    await ledger.commit(turn, Commit(completions=(completion(turn, one),), release=True))
    assert await waiter == ["s1"]


async def test_two_replicas_that_wait_share_the_hints_and_both_return_in_time(desk: Desk, ledger: Ledger) -> None:
    replicas = [desk.replica(lease=1), desk.replica(lease=1)]
    waiters = [asyncio.create_task(one.wait_for_work(f"r{n}", 60)) for n, one in enumerate(replicas)]
    await desk.approved(ledger)
    assert await asyncio.gather(*waiters) == [["s1"], ["s1"]]


async def test_whoever_watches_the_shard_is_told_of_all_that_concerns_people(desk: Desk) -> None:
    """Each of these steps is in the agent's outbox, and the shard's wake-up key then names the agent."""
    ledger = desk.replica(lease=0.5)
    wake = ledger._keys.wake
    told: list[str] = []

    async def step(event: str, work: Awaitable[object]) -> None:
        hints, (newest, *_) = await desk.redis.xlen(wake), [*reversed(await ledger.happened()), ("0", {})]
        await work
        events = [fields["event"] for _, fields in await ledger.happened(newest[0])]
        told.append(event)
        assert events == [event], told
        assert await desk.redis.xlen(wake) == hints + 1, told
        ((_, hint),) = await desk.redis.xrevrange(wake, count=1)
        assert hint == {"agent": "shop/refund-desk"}

    turn = await ledger.take("s1", requester="ann")
    pause = desk.pause(turn, desk.call(timeout_seconds=0), desk.call("c2"), seconds=30)
    await step("opened", ledger.commit(turn, Commit(pause=pause)))
    one, two = await ledger.view(pause.pause_id)
    await step("decided", desk.decide(ledger, one))
    await step("decided", desk.decide(ledger, two))
    one, two = await ledger.claim(turn)
    await step("reopened", ledger.reopen(turn, two, "again"))
    await ledger.begin(turn, one)
    await step("reopened", ledger.unsent(turn, one, "not sent"))
    await step("decided", desk.decide(ledger, one))
    (one,) = await ledger.claim(turn)
    await ledger.begin(turn, one)
    await step("unknown", ledger.doubt(turn, one, "?"))
    await step("finished", ledger.finish(turn, one, "1", is_error=False))
    late = desk.pause(turn, desk.call("c3"), seconds=-1)
    await ledger.commit(turn, Commit(pause=late))
    await step("expired", ledger.expire_due())


async def test_a_doubt_found_by_a_successor_and_its_settlement_are_told_too(desk: Desk) -> None:
    ledger = desk.replica(lease=0.05)
    turn, (view,) = await desk.claimed(desk.replica(), desk.call(timeout_seconds=0))
    await desk.replica().begin(turn, view)
    hints = await desk.redis.xlen(ledger._keys.wake)
    await desk.replica().begin(turn, view)
    assert await desk.redis.xlen(ledger._keys.wake) == hints + 1

    async def settled() -> bool:
        try:
            await ledger.settle(view.pause.pause_id, "c1", action="abandon", result=None, by="b", reason="", attempt=1)
        except Refusal as refusal:
            if refusal.code != "paused":
                raise
            return False
        return True

    hints = await desk.redis.xlen(ledger._keys.wake)
    await eventually(settled)
    assert await desk.redis.xlen(ledger._keys.wake) == hints + 1
    assert [fields["event"] for _, fields in await ledger.happened()][-3:] == ["started", "unknown", "settled"]
