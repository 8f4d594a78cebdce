"""A session's turn: one holder at a time, fenced, in order of arrival, and replaced when it dies."""

from __future__ import annotations

import asyncio
import time

import pytest

from ledger.desk import Desk, eventually, refused
from sayso_approvals.ledger import Ledger, TurnLost
from sayso_approvals.records import Commit, TaskWrite


async def waiting(desk: Desk, number: int) -> None:
    """Until so many wait for the only session's turn."""

    async def so_many() -> bool:
        keys = [key async for key in desk.redis.scan_iter("*:waiting:*")]
        return bool(keys) and await desk.redis.zcard(keys[0]) == number

    await eventually(so_many)


async def test_each_turn_has_a_higher_token(ledger: Ledger) -> None:
    tokens = []
    for _ in range(3):
        turn = await ledger.take("s1", requester="ann")
        tokens.append(turn.token)
        await ledger.release(turn)
    assert tokens == sorted(set(tokens))


async def test_a_turn_that_was_released_leaves_the_next_one_clean(ledger: Ledger) -> None:
    await ledger.release(await ledger.take("s1", requester="ann"))
    assert not (await ledger.take("s1", requester="ann")).dirty


async def test_a_holder_that_died_is_replaced_and_the_next_turn_knows_it(desk: Desk, ledger: Ledger) -> None:
    dead = await desk.replica(lease=0.1).take("s1", requester="ann")
    turn = await ledger.take("s1", requester="ann")
    assert turn.dirty
    assert turn.token > dead.token


async def test_nobody_else_gets_a_turn_that_is_held(desk: Desk, ledger: Ledger) -> None:
    await ledger.take("s1", requester="ann")
    await refused(desk.replica().take("s1", requester="ann", wait_seconds=0.05), "busy")


async def test_sessions_do_not_wait_for_each_other(ledger: Ledger) -> None:
    await ledger.take("s1", requester="ann")
    await ledger.take("s2", requester="ann", wait_seconds=0)


async def test_the_deadline_comes_a_fifth_before_the_leases_end(desk: Desk) -> None:
    before = time.monotonic()
    turn = await desk.replica(lease=10).take("s1", requester="ann")
    assert before + 8 <= turn.deadline <= time.monotonic() + 8


async def test_the_wait_for_a_turn_is_not_part_of_its_lease(desk: Desk) -> None:
    first = desk.replica(lease=10)
    turn = await first.take("s1", requester="ann")
    begun = time.monotonic()
    waiter = asyncio.create_task(desk.replica(lease=10).take("s1", requester="ann"))
    await waiting(desk, 1)
    freed = time.monotonic()
    await first.release(turn)
    assert (await waiter).deadline >= freed + 8 > begun + 8


async def test_waiters_are_served_in_order_of_arrival(desk: Desk) -> None:
    holder = desk.replica()
    turn = await holder.take("s1", requester="ann")
    order: list[int] = []

    async def wait(number: int, ledger: Ledger) -> None:
        mine = await ledger.take("s1", requester="ann")
        order.append(number)
        await ledger.release(mine)

    tasks = []
    for number in range(5):
        tasks.append(asyncio.create_task(wait(number, desk.replica())))
        await waiting(desk, number + 1)
    await holder.release(turn)
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4]


async def test_a_newcomer_does_not_overtake_those_who_wait(desk: Desk) -> None:
    holder, other = desk.replica(), desk.replica()
    turn = await holder.take("s1", requester="ann")
    waiter = asyncio.create_task(desk.replica().take("s1", requester="ann"))
    await waiting(desk, 1)
    await holder.release(turn)
    await refused(other.take("s1", requester="ann", wait_seconds=0), "busy")
    await waiter


async def test_eight_wait_over_all_replicas_and_the_ninth_is_told_busy(desk: Desk) -> None:
    replicas = [desk.replica(), desk.replica()]
    turn = await replicas[0].take("s1", requester="ann")

    async def wait(ledger: Ledger) -> int:
        mine = await ledger.take("s1", requester="ann")
        await ledger.release(mine)
        return mine.token

    tasks = [asyncio.create_task(wait(replicas[n % 2])) for n in range(8)]
    await waiting(desk, 8)
    await refused(desk.replica().take("s1", requester="ann"), "busy")
    await replicas[0].release(turn)
    tokens = await asyncio.gather(*tasks)  # however often each had to ask
    assert sorted(tokens) == [turn.token + n for n in range(1, 9)]


async def test_a_waiter_keeps_one_place_however_often_it_asks_and_gives_it_back(desk: Desk) -> None:
    holder = desk.replica()
    turn = await holder.take("s1", requester="ann")
    await refused(desk.replica().take("s1", requester="ann", wait_seconds=0.2), "busy")
    await waiting(desk, 1)
    await desk.redis.delete(holder._session("s1")[3])
    waiter = asyncio.create_task(desk.replica().take("s1", requester="ann"))
    await waiting(desk, 1)
    await holder.release(turn)
    await waiter
    assert await desk.redis.zcard(holder._session("s1")[3]) == 0


async def test_a_waiter_that_died_makes_way(desk: Desk) -> None:
    holder = desk.replica()
    turn = await holder.take("s1", requester="ann")
    task = asyncio.create_task(desk.replica().take("s1", requester="ann"))
    await waiting(desk, 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await holder.release(turn)
    assert (await desk.replica().take("s1", requester="ann", wait_seconds=30)).token == turn.token + 1


async def test_a_session_is_not_there_for_anybody_but_its_owner(desk: Desk, ledger: Ledger) -> None:
    await ledger.release(await ledger.take("s1", requester="ann"))
    foreign = await refused(ledger.take("s1", requester="bob"), "not_found")
    unknown = await refused(ledger.take("s2", requester="bob", create=False), "not_found")
    assert foreign.problem() == unknown.problem()


async def test_the_agents_own_work_takes_anybodys_session_and_keeps_its_owner(ledger: Ledger) -> None:
    await ledger.release(await ledger.take("s1", requester="ann"))
    turn = await ledger.take("s1", requester="system", any_requester=True)
    assert turn.requester == "ann"
    assert (await ledger.resolve("s1")).requester == "ann"


async def test_a_session_that_nobody_began_is_not_made_by_asking(desk: Desk, ledger: Ledger) -> None:
    await refused(ledger.take("s1", requester="ann", create=False), "not_found")
    assert [key async for key in desk.redis.scan_iter("*")] == []
    assert (await ledger.resolve("s1")).requester is None


async def test_renewing_keeps_the_turn(desk: Desk) -> None:
    ledger = desk.replica(lease=0.5)
    turn = await ledger.take("s1", requester="ann")
    for _ in range(4):
        before = turn.deadline
        await refused(desk.replica().take("s1", requester="ann", wait_seconds=0.2), "busy")
        await ledger.renew(turn)
        assert turn.deadline > before
    await ledger.commit(turn, Commit(events=("{}",)))


async def test_a_renewed_turn_does_not_look_dead_to_others(desk: Desk) -> None:
    ledger = desk.replica(lease=30)
    turn = await ledger.take("s1", requester="ann")
    await desk.redis.zadd(ledger._keys.running, {"s1": 1})
    assert await ledger.work() == ["s1"]
    await ledger.renew(turn)
    assert await ledger.work() == []


async def test_a_turn_that_was_lost_cannot_be_renewed_or_used(desk: Desk, ledger: Ledger) -> None:
    old = desk.replica(lease=0.05)
    turn = await old.take("s1", requester="ann")
    await ledger.take("s1", requester="ann")
    for step in (
        old.renew(turn),
        old.release(turn),
        old.claim(turn),
        old.commit(turn, Commit(events=("{}",), task=TaskWrite("t1", 0, "{}", "working"))),
    ):
        with pytest.raises(TurnLost):
            await step
    assert await ledger.events("s1") == []
    assert await ledger.task("t1") is None
    await refused(desk.replica().take("s1", requester="ann", wait_seconds=0), "busy")


async def test_a_turn_whose_lease_ended_writes_nothing_even_if_nobody_came(desk: Desk) -> None:
    ledger = desk.replica(lease=0.05)
    turn = await ledger.take("s1", requester="ann")
    await desk.lease_over(turn)
    with pytest.raises(TurnLost):
        await ledger.commit(turn, Commit(events=("{}",)))
    with pytest.raises(TurnLost):
        await ledger.renew(turn)
    with pytest.raises(TurnLost):
        await ledger.release(turn)
    assert await ledger.events("s1") == []
    assert (await ledger.take("s1", requester="ann")).dirty, "a late release would hide that a step was not written"


@pytest.mark.parametrize("session", ["", "x" * 513])
async def test_a_session_id_of_impossible_length_names_no_session(ledger: Ledger, session: str) -> None:
    await refused(ledger.take(session, requester="ann"), "not_found")
    await refused(ledger.resolve(session), "not_found")


async def test_a_session_id_with_lone_surrogates_names_no_session(ledger: Ledger) -> None:
    await refused(ledger.take("\ud800", requester="ann"), "not_found")


async def test_a_turn_is_taken_for_somebody(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="requester"):
        await ledger.take("s1", requester="")
