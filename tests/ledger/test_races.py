"""Many at once: one outcome, and everybody else hears it."""

from __future__ import annotations

import asyncio

from ledger.desk import Desk, choice, completion
from sayso_approvals.ledger import Ledger, TurnLost
from sayso_approvals.records import Begin, CallView, Commit, Kind, Verdict
from sayso_approvals.refusals import Refusal

DECIDERS = 50


async def outcome(ledger: Ledger, view: CallView, number: int) -> Refusal | None:
    """One of many who decide: None when this was the one."""
    verdict = Verdict.APPROVED if number % 2 else Verdict.REJECTED
    try:
        await ledger.decide([choice(view, verdict)], by=f"user{number}", via="chat", decision_id=f"d{number}")
    except Refusal as refusal:
        return refusal
    return None


async def test_fifty_decide_one_call_and_forty_nine_hear_who_was_first(desk: Desk) -> None:
    replicas = [desk.replica(), desk.replica()]
    (view,) = await desk.paused(replicas[0])
    results = await asyncio.gather(*(outcome(replicas[n % 2], view, n) for n in range(DECIDERS)))
    (winner,) = [n for n, result in enumerate(results) if result is None]
    verdict = "approved" if winner % 2 else "rejected"
    for result in results:
        if result is not None:
            assert (result.code, result.decided_by, result.verdict) == ("already_decided", f"user{winner}", verdict)


async def test_fifty_batches_over_two_calls_are_decided_whole(desk: Desk) -> None:
    views = await desk.paused(desk.replica(), desk.call("c1"), desk.call("c2"))
    orders = [views, views[::-1], views[:1], views[1:]]

    async def decide(number: int) -> bool:
        batch = [choice(view) for view in orders[number % 4]]
        try:
            await desk.replica().decide(batch, by=f"u{number}", via="chat", decision_id=f"d{number}")
        except Refusal:
            return False
        return True

    won = [n for n, result in enumerate(await asyncio.gather(*map(decide, range(DECIDERS)))) if result]
    by = [v.state.verdict.by for v in await desk.replica().view(views[0].pause.pause_id) if v.state.verdict]
    assert sum(len(orders[n % 4]) for n in won) == 2
    assert set(by) == {f"u{n}" for n in won}


async def test_replicas_that_race_for_a_decided_call_run_it_once(desk: Desk) -> None:
    await desk.approved(desk.replica())
    runs: list[int] = []

    async def go_on(number: int) -> None:
        ledger = desk.replica()
        turn, views = await ledger.take_and_claim("s1", requester="ann")
        for view in views:
            if (await ledger.begin(turn, view))[0] is Begin.RUN:
                runs.append(number)
                await ledger.finish(turn, view, "1", is_error=False)
            await ledger.commit(turn, Commit(completions=(completion(turn, view),)))
        await ledger.release(turn)

    await asyncio.gather(*(go_on(n) for n in range(8)))
    assert len(runs) == 1
    assert await desk.replica().calls() == []


async def test_one_turn_that_begins_a_call_many_times_at_once_runs_it_once(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    answers = await asyncio.gather(*(desk.replica().begin(turn, view) for _ in range(20)))
    assert [begin for begin, _, _ in answers].count(Begin.RUN) == 1


async def test_two_turns_never_write_at_the_same_time(desk: Desk) -> None:
    """Leases so short that they end in the middle: of what is written, every token is whole and in order."""

    async def write(number: int) -> None:
        ledger = desk.replica(lease=0.05)
        for _ in range(5):
            turn = await ledger.take("s1", requester="ann")
            try:
                await ledger.commit(turn, Commit(events=(f"[{turn.token},0]",)))
                await asyncio.sleep(0.03 * (number % 3))
                await ledger.commit(turn, Commit(events=(f"[{turn.token},1]",), release=True))
            except TurnLost:
                continue

    await asyncio.gather(*(write(n) for n in range(4)))
    events = await desk.replica().events("s1")
    tokens = [int(event.strip("[]").split(",")[0]) for event in events]
    assert tokens == sorted(tokens)


async def test_settling_races_and_one_wins(desk: Desk) -> None:
    ledger = desk.replica(lease=0.01)
    turn, (view,) = await desk.claimed(desk.replica(), desk.call(timeout_seconds=0))
    slow = desk.replica()
    assert (await slow.begin(turn, view))[0] is Begin.RUN
    await slow.doubt(turn, view, "?")

    async def settle(number: int) -> str:
        while True:
            try:
                await ledger.settle(
                    view.pause.pause_id,
                    "c1",
                    action="result",
                    result=str(number),
                    by=f"u{number}",
                    reason="",
                    attempt=1,
                )
            except Refusal as refusal:
                if refusal.code == "paused":
                    continue
                return refusal.code
            return "won"

    results = await asyncio.gather(*(settle(n) for n in range(10)))
    assert sorted(results) == ["already_decided"] * 9 + ["won"]
    assert (await ledger.view(view.pause.pause_id))[0].state.result == str(results.index("won"))


async def test_two_gated_calls_in_a_row_and_a_verdict_meant_for_the_first(desk: Desk) -> None:
    """The choice made for the first call says nothing about the second, whoever is late."""
    ledger = desk.replica()
    (first,) = await desk.paused(ledger, desk.call("c1", Kind.CONFIRMATION))
    results = await asyncio.gather(*(outcome(desk.replica(), first, n) for n in range(DECIDERS)))
    turn, (seen,) = await ledger.take_and_claim("s1", requester="ann")
    second = desk.pause(turn, desk.call("c2"))
    await ledger.commit(turn, Commit(completions=(completion(turn, seen),), pause=second, release=True))
    late = await asyncio.gather(*(outcome(desk.replica(), first, n) for n in range(DECIDERS)))
    assert sum(result is None for result in results) == 1
    assert {result.code for result in late if result} == {"already_decided"}
    assert (await ledger.view(second.pause_id))[0].open
