"""A replica may die between any two steps: at most one run for each attempt, and the call ends done or in doubt."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

import pytest

from ledger.desk import Desk, completion, eventually
from sayso_approvals.ledger import Ledger, TurnLost
from sayso_approvals.records import Begin, Commit, Kind, Verdict, execution_of
from sayso_approvals.refusals import Refusal

STEPS = ["take", "pause", "resolve", "decide", "claim", "begin", "send", "finish", "complete", "answered"]
LEASE = 0.3


class Died(Exception):  # noqa: N818
    """The replica is gone: nothing of it goes on."""


@dataclass
class World:
    """What is outside of the ledger: how often the tool ran, and what the client still wants."""

    desk: Desk
    dies_after: set[int]
    steps: int = 0
    sent: list[int] = field(default_factory=list)
    told: int = 0

    def step(self, name: str) -> None:
        """The end of a step: here a replica may die."""
        assert name in STEPS
        self.steps += 1
        if self.steps in self.dies_after:
            raise Died(name)


async def go_on(world: World, ledger: Ledger) -> None:
    """What a replica does with a session that has work."""
    turn, views = await ledger.take_and_claim("s1", requester="system", any_requester=True, wait_seconds=30)
    world.step("claim")
    for view in views:
        verdict = view.state.verdict
        if verdict is not None and verdict.verdict is Verdict.APPROVED:
            begin, _, _ = await ledger.begin(turn, view)
            world.step("begin")
            if begin in (Begin.UNKNOWN, Begin.LOST):
                continue
            if begin is Begin.RUN:
                if not turn.may_send(view.call):
                    continue
                world.sent.append(view.state.attempt)
                world.step("send")
                await ledger.finish(turn, view, '"ran"', is_error=False)
                world.step("finish")
        await ledger.commit(turn, Commit(events=('"told"',), completions=(completion(turn, view),)))
        world.told += 1
        world.step("complete")
    await ledger.release(turn)


async def client(world: World, ledger: Ledger) -> None:
    """A run that pauses, is approved, and goes on, all on one replica."""
    turn = await ledger.take("s1", requester="ann")
    world.step("take")
    await ledger.commit(turn, Commit(pause=world.desk.pause(turn, world.desk.call(), pause_id="p1"), release=True))
    world.step("pause")
    await approve(world, ledger)
    await go_on(world, ledger)
    await ledger.answered("s1", "d1")
    world.step("answered")


async def approve(world: World, ledger: Ledger) -> None:
    """The person's decision, sent again by their client until it is heard."""
    (view,) = (await ledger.resolve("s1")).calls
    world.step("resolve")
    if view.open:
        await world.desk.decide(ledger, view)
    world.step("decide")


async def survives(world: World) -> None:
    """Replicas that die are followed by new ones, until nothing is left to do but, perhaps, for a person."""
    with contextlib.suppress(Died, TurnLost):
        await client(world, world.desk.replica(LEASE))

    async def settled() -> bool:
        ledger = world.desk.replica(LEASE)
        try:
            found = await ledger.resolve("s1")
            if not found.calls and found.last is None:  # it died before the pause was written: the client sends again
                await client(world, ledger)
            elif any(view.open for view in found.calls):
                await approve(world, ledger)
            for _ in await ledger.work():
                await go_on(world, ledger)
        except (Died, TurnLost):
            return False
        return await ledger.work() == [] and all(view.doubtful or view.state.done for view in await ledger.view("p1"))

    await eventually(settled)


@pytest.mark.parametrize("dies_after", range(1, len(STEPS) + 1), ids=[f"after {step}" for step in STEPS])
async def test_a_replica_that_dies_once_leaves_a_call_done_or_in_doubt(desk: Desk, dies_after: int) -> None:
    world = World(desk, {dies_after})
    await survives(world)
    (view,) = await desk.replica().view("p1")
    assert len(world.sent) <= 1
    begun_but_lost = STEPS[dies_after - 1] in ("begin", "send")
    assert view.doubtful is begun_but_lost
    assert view.state.done is not begun_but_lost
    assert execution_of(view) == ("outcome_unknown" if begun_but_lost else "succeeded")
    assert world.told == (0 if begun_but_lost else 1)


@pytest.mark.parametrize("second", range(1, 8))
@pytest.mark.parametrize("first", [5, 6, 8])
async def test_a_replica_and_its_successor_that_both_die_leave_the_same(desk: Desk, first: int, second: int) -> None:
    world = World(desk, {first, first + second})
    await survives(world)
    (view,) = await desk.replica().view("p1")
    assert len(world.sent) <= 1
    assert view.doubtful is not view.state.done
    if view.state.done:
        assert len(world.sent) == 1
        assert world.told == 1


async def test_a_doubtful_call_that_is_retried_runs_once_more_at_most(desk: Desk) -> None:
    world = World(desk, {7})  # sent, and nobody heard the result
    world.desk.call = lambda call_id="c1", kind=Kind.TOOL_CALL, **more: Desk.call(  # type: ignore[method-assign]
        desk, call_id, kind, **({"timeout_seconds": 0.0} | more)
    )
    await survives(world)

    async def retried() -> bool:
        try:
            await desk.replica(LEASE).settle("p1", "c1", action="retry", result=None, by="bob", reason="", attempt=1)
        except Refusal as refusal:
            if refusal.code != "paused":
                raise
            return False
        return True

    await eventually(retried)
    await survives_again(world)
    (view,) = await desk.replica().view("p1")
    assert world.sent == [1, 2]
    assert view.state.done


async def survives_again(world: World) -> None:
    """Goes on with what a person ordered."""

    async def done() -> bool:
        ledger = world.desk.replica(LEASE)
        for _ in await ledger.work():
            await go_on(world, ledger)
        return all(view.state.done for view in await ledger.view("p1"))

    await eventually(done)
