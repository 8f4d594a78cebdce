"""Executing: claimed by one turn, begun once for each attempt, its result kept, told to the model once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledger.desk import Desk, choice, completion, refused
from sayso_approvals.ledger import Ledger, TurnLost
from sayso_approvals.records import Begin, Commit, Journal, Kind, Verdict

RUN = (Begin.RUN, None, False)


async def test_only_what_is_decided_is_claimed(desk: Desk, ledger: Ledger) -> None:
    one, _ = await desk.paused(ledger, desk.call("c1"), desk.call("c2"))
    await desk.decide(ledger, one, Verdict.REJECTED)
    turn = await ledger.take("s1", requester="ann")
    assert [view.call.call_id for view in turn.calls] == ["c1", "c2"]
    claimed = await ledger.claim(turn)
    assert [(view.call.call_id, view.state.token) for view in claimed] == [("c1", turn.token)]


async def test_taking_and_claiming_at_once_is_the_same(desk: Desk, ledger: Ledger) -> None:
    turn, claimed = await desk.claimed(ledger)
    assert [(view.call.call_id, view.state.token) for view in claimed] == [("c1", turn.token)]
    assert await ledger.claim(turn) == claimed


async def test_a_call_is_begun_finished_and_done(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    assert await ledger.begin(turn, view) == RUN
    assert turn.may_send(view.call)
    assert (await ledger.view(view.pause.pause_id))[0].state.journal is Journal.STARTED
    assert await ledger.finish(turn, view, '{"ok":1}', is_error=False)
    assert await ledger.begin(turn, view) == (Begin.FINISHED, '{"ok":1}', False)
    await ledger.commit(turn, Commit(completions=(completion(turn, view),), release=True))
    (after,) = await ledger.view(view.pause.pause_id)
    assert (after.state.done, after.state.journal, after.state.result) == (True, Journal.FINISHED, '{"ok":1}')
    assert await ledger.work() == []
    assert (await ledger.resolve("s1")).calls == []


async def test_an_error_that_the_tool_returned_is_a_result(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    await ledger.begin(turn, view)
    await ledger.finish(turn, view, '{"error":"sold out"}', is_error=True)
    assert await ledger.begin(turn, view) == (Begin.FINISHED, '{"error":"sold out"}', True)


async def test_the_next_turn_gets_the_stored_result(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    await ledger.begin(turn, view)
    await ledger.finish(turn, view, "7", is_error=False)
    await ledger.release(turn)
    turn, (view,) = await desk.replica().take_and_claim("s1", requester="ann")
    assert await ledger.begin(turn, view) == (Begin.FINISHED, "7", False)


async def test_a_call_found_started_is_in_doubt_and_not_run_again(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    await ledger.begin(turn, view)
    await ledger.release(turn)
    turn, (view,) = await ledger.take_and_claim("s1", requester="ann")
    for _ in range(2):
        assert await ledger.begin(turn, view) == (Begin.UNKNOWN, None, False)
    (after,) = await ledger.view(view.pause.pause_id)
    assert after.doubtful
    assert after.state.note
    assert await ledger.claim(turn) == []


async def test_an_idempotent_call_found_started_runs_again(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger, desk.call(idempotent=True))
    await ledger.begin(turn, view)
    await ledger.release(turn)
    later, (view,) = await ledger.take_and_claim("s1", requester="ann")
    assert await ledger.begin(later, view) == RUN
    assert not await ledger.finish(turn, view, "1", is_error=False), "the first start does not count any more"
    assert await ledger.finish(later, view, "2", is_error=False)


async def test_a_call_that_is_done_is_not_begun(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger, desk.call(kind=Kind.CONFIRMATION))
    await ledger.commit(turn, Commit(completions=(completion(turn, view),)))
    assert (await ledger.begin(turn, view))[0] is Begin.LOST


async def test_a_call_in_doubt_is_in_nobodys_list_of_work(desk: Desk, ledger: Ledger) -> None:
    ready = ledger._keys.ready
    for doubts in (True, False):
        turn, (view,) = await desk.claimed(ledger, desk.call(f"c{doubts:d}"))
        await ledger.begin(turn, view)
        assert await desk.redis.zcard(ready) == 1
        if doubts:
            await ledger.doubt(turn, view, "?")
        else:
            await ledger.begin(turn, view)
        assert await desk.redis.zcard(ready) == 0
        await ledger.release(turn)


async def test_a_call_open_again_or_done_is_in_nobodys_list_of_work(desk: Desk, ledger: Ledger) -> None:
    ready = ledger._keys.ready
    turn, (one, two, three) = await desk.claimed(
        ledger, desk.call("c1"), desk.call("c2"), desk.call("c3", Kind.CONFIRMATION)
    )
    await ledger.begin(turn, two)
    for step in (
        ledger.reopen(turn, one, "again"),
        ledger.unsent(turn, two, "not sent"),
        ledger.commit(turn, Commit(completions=(completion(turn, three),))),
    ):
        before = await desk.redis.zcard(ready)
        await step
        assert await desk.redis.zcard(ready) == before - 1


@pytest.mark.parametrize("verdict", [Verdict.REJECTED, Verdict.CANCELLED, Verdict.SUPERSEDED])
async def test_what_was_not_approved_is_never_begun(desk: Desk, ledger: Ledger, verdict: Verdict) -> None:
    (view,) = await desk.paused(ledger)
    await desk.decide(ledger, view, verdict)
    turn, (view,) = await ledger.take_and_claim("s1", requester="ann")
    await refused(ledger.begin(turn, view), "integrity")
    assert (await ledger.view(view.pause.pause_id))[0].state.journal is Journal.NONE


async def test_a_call_that_nobody_decided_is_never_begun(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger)
    turn = await ledger.take("s1", requester="ann")
    await refused(ledger.begin(turn, turn.calls[0]), "integrity")


async def test_a_verdict_that_only_the_caller_has_is_not_enough(desk: Desk, ledger: Ledger) -> None:
    one, two = await desk.paused(ledger, desk.call("c1"), desk.call("c2"))
    await desk.decide(ledger, one)
    await desk.decide(ledger, two, Verdict.REJECTED)
    turn, (one, two) = await ledger.take_and_claim("s1", requester="ann")
    verdict = replace(two.state.verdict, verdict=Verdict.APPROVED)  # type: ignore[type-var]
    await refused(ledger.begin(turn, replace(two, state=replace(two.state, verdict=verdict))), "integrity")
    await refused(ledger.begin(turn, replace(two, state=replace(two.state, verdict=one.state.verdict))), "integrity")


async def test_a_call_of_another_turn_is_not_begun(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.approved(ledger)
    turn = await ledger.take("s1", requester="ann")  # without a claim
    assert (await ledger.begin(turn, turn.calls[0]))[0] is Begin.LOST
    assert (await ledger.view(view.pause.pause_id))[0].state.journal is Journal.NONE


async def test_a_turn_that_was_lost_begins_nothing(desk: Desk, ledger: Ledger) -> None:
    await desk.approved(ledger)
    old = desk.replica(lease=0.05)
    turn, (view,) = await old.take_and_claim("s1", requester="ann")
    await desk.lease_over(turn)
    assert (await old.begin(turn, view))[0] is Begin.LOST
    await ledger.take("s1", requester="ann")
    assert (await old.begin(turn, view))[0] is Begin.LOST
    assert (await ledger.view(view.pause.pause_id))[0].state.journal is Journal.NONE


async def test_nothing_is_sent_after_the_deadline(desk: Desk) -> None:
    ledger = desk.replica(lease=0.2)
    await desk.approved(ledger)
    turn, (view,) = await ledger.take_and_claim("s1", requester="ann")
    assert not turn.may_send(view.call), "not begun yet"
    await ledger.begin(turn, view)
    await desk.lease_over(turn)
    assert not turn.may_send(view.call)


async def test_a_renewed_lease_does_not_stretch_the_time_to_send(desk: Desk) -> None:
    ledger = desk.replica(lease=30)
    await desk.approved(ledger)
    turn, (view,) = await ledger.take_and_claim("s1", requester="ann")
    await ledger.begin(turn, view)
    until = turn.send_until[view.call.call_id]
    await ledger.renew(turn)
    assert turn.deadline > until == turn.send_until[view.call.call_id]


async def test_a_result_is_kept_even_when_the_turn_is_lost(desk: Desk, ledger: Ledger) -> None:
    await desk.approved(ledger)
    old = desk.replica(lease=0.1)
    turn, (view,) = await old.take_and_claim("s1", requester="ann")
    assert await old.begin(turn, view) == RUN
    later, (seen,) = await ledger.take_and_claim("s1", requester="ann")
    assert (await ledger.begin(later, seen))[0] is Begin.UNKNOWN
    assert await old.finish(turn, view, '"late"', is_error=False)
    (after,) = await ledger.view(view.pause.pause_id)
    assert (after.state.journal, after.state.result, after.state.note) == (Journal.FINISHED, '"late"', "")
    await ledger.release(later)
    assert await ledger.work() == ["s1"], "somebody has to tell the model"


async def test_a_result_without_a_start_is_not_kept(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    assert not await ledger.finish(turn, view, "1", is_error=False)
    await ledger.begin(turn, view)
    assert await ledger.finish(turn, view, "1", is_error=False)
    assert not await ledger.finish(turn, view, "2", is_error=False)
    assert (await ledger.view(view.pause.pause_id))[0].state.result == "1"


async def test_a_call_that_was_sent_can_be_put_in_doubt_at_once(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    await ledger.begin(turn, view)
    await ledger.doubt(turn, view, "the connection broke")
    (after,) = await ledger.view(view.pause.pause_id)
    assert after.doubtful
    assert after.state.note == "the connection broke"
    await ledger.release(turn)
    assert await ledger.work() == [], "it waits for a person"


async def test_only_a_call_that_was_started_is_put_in_doubt(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    await ledger.doubt(turn, view, "no")
    assert (await ledger.view(view.pause.pause_id))[0].state.journal is Journal.NONE
    await ledger.begin(turn, view)
    await ledger.finish(turn, view, "1", is_error=False)
    await ledger.doubt(turn, view, "no")
    assert (await ledger.view(view.pause.pause_id))[0].state.journal is Journal.FINISHED


async def test_a_lost_turn_puts_nothing_in_doubt_and_opens_nothing(desk: Desk, ledger: Ledger) -> None:
    await desk.approved(ledger)
    old = desk.replica(lease=0.05)
    turn, (view,) = await old.take_and_claim("s1", requester="ann")
    later, (seen,) = await ledger.take_and_claim("s1", requester="ann")
    with pytest.raises(TurnLost):
        await old.reopen(turn, view, "not consumed")
    await ledger.begin(later, seen)
    with pytest.raises(TurnLost):
        await old.doubt(turn, view, "lost")
    assert (await ledger.view(view.pause.pause_id))[0].state.journal is Journal.STARTED


async def test_only_the_turn_that_claimed_and_started_a_call_puts_it_in_doubt(desk: Desk, ledger: Ledger) -> None:
    await desk.approved(ledger)
    short = desk.replica(lease=0.1)
    turn, (view,) = await short.take_and_claim("s1", requester="ann")
    await short.begin(turn, view)
    await desk.lease_over(turn)
    with pytest.raises(TurnLost):
        await short.doubt(turn, view, "its lease is over")
    later = await ledger.take("s1", requester="ann")
    with pytest.raises(TurnLost):
        await ledger.doubt(later, view, "not claimed")
    await ledger.claim(later)
    await ledger.doubt(later, view, "started by another turn: only begin may find out")
    assert (await ledger.view(view.pause.pause_id))[0].state.journal is Journal.STARTED


async def test_a_result_wakes_others_only_when_nobody_is_at_it(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    await ledger.begin(turn, view)
    hints = await desk.redis.xlen(ledger._keys.inbox)
    await ledger.finish(turn, view, "1", is_error=False)
    assert await desk.redis.xlen(ledger._keys.inbox) == hints


async def test_a_verdict_that_was_not_consumed_is_open_again_and_says_so(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    await ledger.reopen(turn, view, "it was not consumed")
    (after,) = await ledger.view(view.pause.pause_id)
    assert after.open
    assert after.intact
    assert after.state.note == "it was not consumed"
    assert await ledger.open_count() == 1
    await ledger.release(turn)
    assert await ledger.work() == []
    kept = await desk.redis.hget(await desk.live_key(), await desk.field(":history"))
    assert '"approved"' in str(kept), "the first verdict is not forgotten"
    await desk.decide(desk.replica(), after, Verdict.REJECTED)


async def test_a_reopened_call_still_expires(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    await ledger.reopen(turn, view, "again")
    assert await ledger.expire_due() == 0
    key = next(iter([key async for key in desk.redis.scan_iter("*:open")]))
    ((_, score),) = await desk.redis.zrange(key, 0, -1, withscores=True)
    assert score == int(view.pause.expires_at * 1000)


async def test_a_call_that_was_started_is_not_opened_again(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    await ledger.begin(turn, view)
    await refused(ledger.reopen(turn, view, "no"), "already_decided")
    assert (await ledger.view(view.pause.pause_id))[0].state.verdict is not None


async def test_a_start_that_reached_nobody_is_taken_back_and_the_call_is_open_again(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    await ledger.begin(turn, view)
    await ledger.unsent(turn, view, "the server refused the connection")
    (after,) = await ledger.view(view.pause.pause_id)
    assert after.open
    assert after.intact
    assert (after.state.journal, after.state.note) == (Journal.NONE, "the server refused the connection")
    kept = await desk.redis.hget(await desk.live_key(), await desk.field(":history"))
    assert '"approved"' in str(kept)
    assert await ledger.open_count() == 1
    assert not await ledger.finish(turn, view, "1", is_error=False)
    await ledger.release(turn)
    assert await ledger.work() == []
    await desk.decide(ledger, after)
    turn, (view,) = await ledger.take_and_claim("s1", requester="ann")
    assert await ledger.begin(turn, view) == RUN


async def test_a_start_whose_end_is_known_or_in_doubt_is_not_taken_back(desk: Desk, ledger: Ledger) -> None:
    turn, (one, two) = await desk.claimed(ledger, desk.call("c1"), desk.call("c2"))
    for view in (one, two):
        await ledger.begin(turn, view)
    await ledger.doubt(turn, one, "?")
    await ledger.finish(turn, two, "1", is_error=False)
    for view in (one, two):
        with pytest.raises(TurnLost):
            await ledger.unsent(turn, view, "no")
    states = [view.state.journal for view in await ledger.view(one.pause.pause_id)]
    assert states == [Journal.UNKNOWN, Journal.FINISHED]


async def test_only_a_turns_own_start_is_taken_back(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    with pytest.raises(TurnLost):
        await ledger.unsent(turn, view, "never begun")
    await ledger.begin(turn, view)
    await ledger.release(turn)
    with pytest.raises(TurnLost):
        await ledger.unsent(turn, view, "the turn is over")
    later, (view,) = await ledger.take_and_claim("s1", requester="ann")
    with pytest.raises(TurnLost):
        await ledger.unsent(later, view, "another turn's start")
    await ledger.begin(later, view)
    with pytest.raises(TurnLost):
        await ledger.unsent(later, view, "it is in doubt")
    assert (await ledger.view(view.pause.pause_id))[0].doubtful


async def test_an_approved_call_is_not_done_before_its_outcome_is_known(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    commit = Commit(events=("{}",), completions=(completion(turn, view),))
    await refused(ledger.commit(turn, commit), "integrity")
    await ledger.begin(turn, view)
    await refused(ledger.commit(turn, commit), "integrity")
    await ledger.doubt(turn, view, "?")
    await refused(ledger.commit(turn, commit), "integrity")
    assert len(await ledger.events("s1")) == 1, "nothing of a refused step is written"


async def test_a_call_that_nobody_decided_is_not_done(desk: Desk, ledger: Ledger) -> None:
    await desk.paused(ledger)
    turn = await ledger.take("s1", requester="ann")
    with pytest.raises(TurnLost):
        await ledger.commit(turn, Commit(completions=(completion(turn, turn.calls[0]),)))


@pytest.mark.parametrize("kind", [Kind.CONTINUE, Kind.CONFIRMATION])
async def test_a_question_of_its_own_is_done_without_a_tool_having_run(desk: Desk, ledger: Ledger, kind: Kind) -> None:
    turn, (view,) = await desk.claimed(ledger, desk.call(kind=kind))
    await ledger.commit(turn, Commit(completions=(completion(turn, view),)))
    assert (await ledger.view(view.pause.pause_id))[0].state.done


async def test_a_confirmation_whose_tool_was_started_is_not_done_without_its_result(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger, desk.call(kind=Kind.CONFIRMATION))
    await ledger.begin(turn, view)
    await refused(ledger.commit(turn, Commit(completions=(completion(turn, view),))), "integrity")


async def test_a_call_is_done_once_and_by_the_turn_that_claimed_it(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    await desk.decide(ledger, view, Verdict.REJECTED)
    old = desk.replica(lease=0.05)
    turn, (view,) = await old.take_and_claim("s1", requester="ann")
    later, (seen,) = await ledger.take_and_claim("s1", requester="ann")
    with pytest.raises(TurnLost):
        await old.commit(turn, Commit(completions=(completion(turn, view),)))
    with pytest.raises(TurnLost):
        await ledger.commit(later, Commit(completions=(completion(turn, view),)))
    await ledger.commit(later, Commit(completions=(completion(later, seen),)))
    with pytest.raises(TurnLost):
        await ledger.commit(later, Commit(completions=(completion(later, seen),)))


async def test_a_verdict_that_comes_during_a_turn_is_claimed_by_claiming_again(desk: Desk, ledger: Ledger) -> None:
    one, two = await desk.paused(ledger, desk.call("c1"), desk.call("c2"))
    await desk.decide(ledger, one)
    turn, claimed = await ledger.take_and_claim("s1", requester="ann")
    await ledger.decide([choice(two)], by="ann", via="chat", decision_id="d9")
    assert [view.call.call_id for view in claimed] == ["c1"]
    assert [view.call.call_id for view in await ledger.claim(turn)] == ["c1", "c2"]


async def test_a_completion_of_an_unknown_call_is_refused(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    done = completion(turn, view)
    await refused(ledger.commit(turn, Commit(completions=(replace(done, call_id="c9"),))), "unknown_call")
    await refused(ledger.commit(turn, Commit(completions=(replace(done, pause_id="p9"),))), "unknown_call")
