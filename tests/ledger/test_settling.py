"""Settling: only a person says what becomes of an outcome that nobody knows, and not before it is safe to."""

from __future__ import annotations

import json

import pytest

from ledger.desk import Desk, completion, eventually, refused
from sayso_approvals.ledger import Ledger
from sayso_approvals.reading import Entry
from sayso_approvals.records import Begin, CallView, Commit, Journal, Verdict
from sayso_approvals.refusals import Refusal
from sayso_approvals.seal import load_verdict


async def doubtful(desk: Desk, ledger: Ledger, timeout_seconds: float = 0.0) -> CallView:
    """A call that was sent, and of which nobody knows how it ended."""
    turn, (view,) = await desk.claimed(ledger, desk.call(timeout_seconds=timeout_seconds))
    assert (await ledger.begin(turn, view))[0] is Begin.RUN
    await ledger.doubt(turn, view, "the connection broke")
    await ledger.release(turn)
    return (await ledger.view(view.pause.pause_id))[0]


async def settle(ledger: Ledger, view: CallView, action: str, result: str | None = None, attempt: int = 1) -> None:
    """Settles as soon as it may be."""

    async def done() -> bool:
        try:
            await ledger.settle(
                view.pause.pause_id,
                view.call.call_id,
                action=action,
                result=result,
                by="bob",
                reason="looked it up",
                attempt=attempt,
            )
        except Refusal as refusal:
            if refusal.code != "paused":
                raise
            return False
        return True

    await eventually(done)


async def test_a_retry_runs_it_once_more_and_says_who_ordered_it(desk: Desk) -> None:
    ledger = desk.replica(lease=0.1)
    view = await doubtful(desk, ledger)
    await settle(ledger, view, "retry")
    (after,) = await desk.replica().view(view.pause.pause_id)
    assert after.intact
    assert (after.state.attempt, after.state.journal) == (2, Journal.NONE)
    assert after.state.verdict is not None
    assert (after.state.verdict.by, after.state.verdict.via, after.state.verdict.attempt) == ("bob", "settle", 2)
    assert await ledger.work() == ["s1"]
    ledger = desk.replica()
    turn, (view,) = await ledger.take_and_claim("s1", requester="ann")
    assert (await ledger.begin(turn, view))[0] is Begin.RUN
    assert await ledger.finish(turn, view, "1", is_error=False)
    assert (await ledger.begin(turn, view))[0] is Begin.FINISHED


async def retried_and_not_sent(desk: Desk, ledger: Ledger) -> CallView:
    """An open call that was run once, with an outcome that nobody knows, and whose second start reached nobody."""
    (view,) = await desk.paused(ledger, desk.call(timeout_seconds=0))
    await desk.decide(ledger, view)
    turn, (view,) = await ledger.take_and_claim("s1", requester="ann")
    await ledger.begin(turn, view)
    await ledger.doubt(turn, view, "?")
    await ledger.release(turn)
    await settle(ledger, view, "retry")
    turn, (view,) = await ledger.take_and_claim("s1", requester="ann")
    assert (await ledger.begin(turn, view))[0] is Begin.RUN
    await ledger.unsent(turn, view, "no connection")
    await ledger.release(turn)
    return (await ledger.view(view.pause.pause_id))[0]


@pytest.mark.parametrize("verdict", [Verdict.APPROVED, Verdict.REJECTED, Verdict.CANCELLED])
async def test_a_call_that_was_retried_and_reached_nobody_is_decided_like_any_other(
    desk: Desk, verdict: Verdict
) -> None:
    ledger = desk.replica(lease=0.5)
    view = await retried_and_not_sent(desk, ledger)
    assert view.open
    await desk.decide(ledger, view, verdict)
    for replica in (ledger, desk.replica()):
        (after,) = await replica.view(view.pause.pause_id)
        assert after.intact
        assert after.state.verdict is not None
        assert (after.state.verdict.verdict, after.state.verdict.attempt) == (verdict, 2)
    turn, (view,) = await desk.replica().take_and_claim("s1", requester="ann")
    if verdict is Verdict.APPROVED:
        assert (await ledger.begin(turn, view))[0] is Begin.RUN


async def test_a_call_that_was_retried_and_reached_nobody_expires_like_any_other(desk: Desk) -> None:
    ledger, stale = desk.replica(), desk.replica()
    (view,) = await desk.paused(ledger, seconds=-1)
    early = await stale._watch.live("s1")
    name = (await desk.field(":call")).removesuffix(":call")
    await desk.redis.hset(await desk.live_key(), f"{name}:attempt", "2")  # as a retry leaves it
    look = stale._watch.live

    async def as_seen_before(session_id: str) -> list[Entry]:
        stale._watch.live = look  # type: ignore[method-assign]
        return early

    stale._watch.live = as_seen_before  # type: ignore[method-assign]
    assert await stale.expire_due() == 0, "that look was at the first attempt"
    assert await stale.expire_due() == 1
    (after,) = await ledger.view(view.pause.pause_id)
    assert after.intact
    assert after.state.verdict is not None
    assert (after.state.verdict.verdict, after.state.verdict.attempt) == (Verdict.EXPIRED, 2)


@pytest.mark.parametrize("number", ["0", "02", "-1", "x", ""])
async def test_an_attempt_that_is_no_count_was_written_by_somebody_else(desk: Desk, number: str) -> None:
    ledger = desk.replica()
    (view,) = await desk.paused(ledger)
    name = (await desk.field(":call")).removesuffix(":call")
    await desk.redis.hset(await desk.live_key(), f"{name}:attempt", number)
    for verdict in (Verdict.APPROVED, Verdict.REJECTED):
        await refused(desk.decide(ledger, view, verdict), "integrity")
    await desk.decide(ledger, view, Verdict.CANCELLED)
    assert await ledger.work() == ["s1"]


async def test_a_retry_that_is_lost_too_is_in_doubt_under_another_id(desk: Desk) -> None:
    ledger = desk.replica(lease=0.1)
    view = await doubtful(desk, ledger)
    await settle(ledger, view, "retry")
    turn, (again,) = await ledger.take_and_claim("s1", requester="ann")
    await ledger.begin(turn, again)
    await ledger.doubt(turn, again, "again")
    (after,) = await ledger.view(view.pause.pause_id)
    assert after.doubtful
    assert after.outcome_id != view.outcome_id
    await refused(settle(ledger, view, "retry", attempt=1), "already_decided")


async def test_a_first_attempts_result_does_not_count_for_the_second(desk: Desk) -> None:
    ledger = desk.replica(lease=0.1)
    turn, (view,) = await desk.claimed(ledger, desk.call(timeout_seconds=0.0))
    await ledger.begin(turn, view)
    await ledger.doubt(turn, view, "?")
    await settle(ledger, view, "retry")
    assert not await ledger.finish(turn, view, "1", is_error=False)
    later, (again,) = await ledger.take_and_claim("s1", requester="ann")
    await ledger.begin(later, again)
    assert not await ledger.finish(turn, view, "1", is_error=False)


async def test_a_given_result_is_what_the_model_gets(desk: Desk) -> None:
    ledger = desk.replica(lease=0.1)
    view = await doubtful(desk, ledger)
    await settle(ledger, view, "result", '{"refunded":20}')
    turn, (again,) = await desk.replica().take_and_claim("s1", requester="ann")
    assert await ledger.begin(turn, again) == (Begin.FINISHED, '{"refunded":20}', False)
    assert "bob" in again.state.note
    assert again.state.verdict is not None
    assert again.state.verdict.by == "ann", "who approved the call stays known"


async def test_an_abandoned_call_is_an_error_that_names_who_and_hides_nothing(desk: Desk) -> None:
    ledger = desk.replica(lease=0.1)
    view = await doubtful(desk, ledger)
    await settle(ledger, view, "abandon")
    turn, (again,) = await desk.replica().take_and_claim("s1", requester="ann")
    begin, result, is_error = await ledger.begin(turn, again)
    assert (begin, is_error) == (Begin.FINISHED, True)
    assert json.loads(result or "") == {"error": "Nobody knows whether this call ran. bob abandoned it: looked it up"}
    await ledger.commit(turn, Commit(completions=(completion(turn, again),)))


async def test_settling_waits_until_nobody_can_still_be_sending(desk: Desk) -> None:
    ledger = desk.replica(lease=20)
    view = await doubtful(desk, ledger, timeout_seconds=40)
    for action, result in (("retry", None), ("result", "1"), ("abandon", None)):
        early = await refused(
            ledger.settle(view.pause.pause_id, "c1", action=action, result=result, by="bob", reason="", attempt=1),
            "paused",
        )
        assert 50 < early.extra["retryAfterSeconds"] <= 60
    assert (await ledger.view(view.pause.pause_id))[0].state == view.state


@pytest.mark.parametrize("attempt", [0, 2])
async def test_only_the_attempt_that_is_in_doubt_is_settled(desk: Desk, attempt: int) -> None:
    ledger = desk.replica(lease=0.05)
    view = await doubtful(desk, ledger)
    await refused(settle(ledger, view, "retry", attempt=attempt), "already_decided")


async def test_an_outcome_is_settled_once(desk: Desk) -> None:
    ledger = desk.replica(lease=0.05)
    view = await doubtful(desk, ledger)
    await settle(ledger, view, "result", "1")
    late = await refused(settle(ledger, view, "abandon"), "already_decided")
    assert "bob gave the result" in late.detail
    assert (await ledger.view(view.pause.pause_id))[0].state.result == "1"


async def test_what_is_not_in_doubt_is_not_settled(desk: Desk) -> None:
    ledger = desk.replica(lease=0.2)
    (view,) = await desk.paused(ledger, desk.call(timeout_seconds=0))
    await refused(settle(ledger, view, "retry"), "already_decided")
    await desk.decide(ledger, view)
    await refused(settle(ledger, view, "abandon"), "already_decided")
    turn, (view,) = await ledger.take_and_claim("s1", requester="ann")
    await ledger.begin(turn, view)
    await desk.lease_over(turn)
    await refused(settle(ledger, view, "retry"), "already_decided")


async def test_a_settlement_says_one_thing_and_says_it_in_json(desk: Desk) -> None:
    ledger = desk.replica(lease=0.05)
    view = await doubtful(desk, ledger)
    for action, result in (("retry", "1"), ("result", None), ("abandon", "1"), ("approve", None), ("result", "{")):
        await refused(settle(ledger, view, action, result), "malformed_decision")
    await refused(
        ledger.settle("p-none", "c1", action="retry", result=None, by="bob", reason="", attempt=1), "unknown_call"
    )


@pytest.mark.parametrize("suffix", [":record", ":mac", ":vmac"])
async def test_what_was_changed_since_the_person_looked_is_not_settled(desk: Desk, suffix: str) -> None:
    ledger = desk.replica(lease=0.05)
    view = await doubtful(desk, ledger)
    look = ledger._now
    seen = [await ledger._now(view.pause.pause_id, "c1")]

    async def as_seen(pause_id: str, call_id: str) -> Entry | None:
        return seen.pop() if seen else await look(pause_id, call_id)

    ledger._now = as_seen  # type: ignore[method-assign]
    await desk.redis.hset(await desk.live_key(), await desk.field(suffix), "x")
    await refused(
        ledger.settle(view.pause.pause_id, "c1", action="retry", result=None, by="bob", reason="", attempt=1),
        "integrity",
    )
    (after,) = await desk.replica().view(view.pause.pause_id)
    assert after.doubtful


async def test_what_went_away_since_the_person_looked_is_not_made_anew(desk: Desk) -> None:
    ledger = desk.replica(lease=0.05)
    view = await doubtful(desk, ledger)
    look = ledger._now
    seen = [await ledger._now(view.pause.pause_id, "c1")]

    async def as_seen(pause_id: str, call_id: str) -> Entry | None:
        return seen.pop() if seen else await look(pause_id, call_id)

    ledger._now = as_seen  # type: ignore[method-assign]
    live = await desk.live_key()
    await desk.redis.delete(live)
    await refused(
        ledger.settle(view.pause.pause_id, "c1", action="abandon", result=None, by="b", reason="", attempt=1),
        "unknown_call",
    )
    assert await desk.redis.exists(live) == 0


@pytest.mark.parametrize(("action", "result"), [("retry", None), ("result", "1"), ("abandon", None)])
async def test_who_approved_and_who_settled_both_stay_on_record(desk: Desk, action: str, result: str | None) -> None:
    ledger = desk.replica(lease=0.05)
    view = await doubtful(desk, ledger)
    await desk.paused(ledger, desk.call("c2"), session="s1")
    await settle(ledger, view, action, result)
    (name,) = [one for one in await desk.redis.hkeys(await desk.live_key()) if one.endswith(":history")]
    history = str(await desk.redis.hget(await desk.live_key(), name))
    (after,) = await ledger.view(view.pause.pause_id)
    assert after.state.verdict is not None
    by = {after.state.verdict.by, *(load_verdict(line.split("\t")[0]).by for line in history.splitlines())}
    assert by == {"ann", "bob"}
    last = (await ledger.resolve("s1")).last
    assert last is not None
    assert last.call.call_id == "c1"
