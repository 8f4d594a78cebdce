"""Deciding: all or none, once, about exactly what was shown."""

from __future__ import annotations

import pytest

from ledger.desk import Desk, choice, completion, refused
from sayso_approvals.ledger import ELSEWHERE, Choice, Ledger
from sayso_approvals.records import Commit, Kind, Verdict

QUESTIONS = '{"questions":[{"question":"Which database?","choices":["PostgreSQL","SQLite"]}]}'
ANSWERS = '{"ask_user_answers":[{"answer":["SQLite"]}]}'


async def verdicts(ledger: Ledger, pause_id: str) -> list[str | None]:
    """What was decided about each call of a pause."""
    return [v.state.verdict.verdict if v.state.verdict else None for v in await ledger.view(pause_id)]


async def test_a_verdict_is_kept_with_who_when_how_and_why(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    await ledger.decide([choice(view, Verdict.REJECTED, reason="too much")], by="ann", via="cli", decision_id="d1")
    (after,) = await desk.replica().view(view.pause.pause_id)
    record = after.state.verdict
    assert record is not None
    assert (record.verdict, record.by, record.via, record.reason) == (Verdict.REJECTED, "ann", "cli", "too much")
    assert abs(record.at - view.pause.opened_at) < 60
    assert after.intact
    assert not after.open


async def test_another_replica_decides_as_well(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    await desk.decide(desk.replica(), view)
    assert await verdicts(ledger, view.pause.pause_id) == ["approved"]


async def test_the_second_to_decide_hears_who_was_first_and_what_they_said(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    await desk.decide(ledger, view, Verdict.REJECTED, by="ann", reason="no")
    late = await refused(desk.decide(desk.replica(), view, by="bob"), "already_decided")
    assert (late.decided_by, late.verdict, late.reason, late.ids) == ("ann", "rejected", "no", ("c1",))
    assert late.decided_at is not None
    assert await verdicts(ledger, view.pause.pause_id) == ["rejected"]


@pytest.mark.parametrize(("verdict", "code"), [(Verdict.CANCELLED, "cancelled"), (Verdict.SUPERSEDED, "superseded")])
async def test_what_nobody_decided_is_refused_by_its_own_name(
    desk: Desk, ledger: Ledger, verdict: Verdict, code: str
) -> None:
    (view,) = await desk.paused(ledger)
    await desk.decide(ledger, view, verdict)
    await refused(desk.decide(ledger, view), code)


async def test_of_two_choices_neither_counts_when_one_is_refused(desk: Desk, ledger: Ledger) -> None:
    one, two = await desk.paused(ledger, desk.call("c1"), desk.call("c2"))
    await desk.decide(ledger, two)
    late = await refused(
        ledger.decide([choice(one), choice(two)], by="bob", via="chat", decision_id="d"), "already_decided"
    )
    assert late.ids == ("c2",)
    assert await verdicts(ledger, one.pause.pause_id) == [None, "approved"]


async def test_every_call_that_was_not_open_is_named(desk: Desk, ledger: Ledger) -> None:
    views = await desk.paused(ledger, *(desk.call(f"c{n}") for n in range(3)))
    await desk.decide(ledger, views[1])
    await desk.decide(ledger, views[2])
    late = await refused(
        ledger.decide([choice(v) for v in views], by="bob", via="chat", decision_id="d"), "already_decided"
    )
    assert late.ids == ("c1", "c2")


async def test_a_part_of_the_calls_can_be_decided_now_and_the_rest_later(desk: Desk, ledger: Ledger) -> None:
    one, two = await desk.paused(ledger, desk.call("c1"), desk.call("c2"))
    await desk.decide(ledger, one)
    assert [v.call.call_id for v in (await ledger.resolve("s1")).calls if v.open] == ["c2"]
    await desk.decide(ledger, two, Verdict.REJECTED)
    assert await verdicts(ledger, one.pause.pause_id) == ["approved", "rejected"]


async def test_a_verdict_about_other_arguments_is_refused(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    await refused(desk.decide(ledger, view, digest="sha256:other"), "integrity")
    await refused(desk.decide(desk.replica(), view, digest="sha256:other"), "integrity")
    assert (await ledger.view(view.pause.pause_id))[0].open


async def test_an_unknown_call_or_pause_refuses_the_whole(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    for pause_id, call_id in ((view.pause.pause_id, "c9"), ("p-none", "c1")):
        unknown = Choice(pause_id, call_id, view.call.digest, Verdict.APPROVED)
        refusal = await refused(
            ledger.decide([choice(view), unknown], by="ann", via="chat", decision_id="d"), "unknown_call"
        )
        assert refusal.ids == (call_id,)
    assert (await ledger.view(view.pause.pause_id))[0].open


async def test_an_empty_decision_and_two_verdicts_for_one_call_are_malformed(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    await refused(ledger.decide([], by="ann", via="chat", decision_id="d"), "malformed_decision")
    both = [choice(view), choice(view, Verdict.REJECTED)]
    refusal = await refused(ledger.decide(both, by="ann", via="chat", decision_id="d"), "malformed_decision")
    assert refusal.ids == ("c1",)


async def test_a_payload_that_is_not_json_is_malformed(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    for payload in ("{", '{"a":1,"a":2}', "NaN"):
        await refused(desk.decide(ledger, view, payload=payload), "malformed_decision")


async def test_one_decision_is_about_one_session(desk: Desk, ledger: Ledger) -> None:
    (one,) = await desk.paused(ledger, session="s1")
    (two,) = await desk.paused(ledger, session="s2")
    await refused(ledger.decide([choice(one), choice(two)], by="ann", via="cli", decision_id="d"), "malformed_decision")


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("verdict", list(Verdict))
async def test_only_a_question_for_a_value_is_answered_and_only_others_approved(
    desk: Desk, ledger: Ledger, kind: Kind, verdict: Verdict
) -> None:
    asks = kind is Kind.QUESTION
    (view,) = await desk.paused(ledger, desk.call(kind=kind, **({"arguments": QUESTIONS} if asks else {})))
    yes = Verdict.ANSWERED if asks or kind is Kind.INPUT_REQUIRED else Verdict.APPROVED
    no = set() if kind is Kind.INPUT_REQUIRED else {Verdict.REJECTED}
    if verdict in {Verdict.CANCELLED, Verdict.SUPERSEDED, yes} | no:
        given = ANSWERS if asks and verdict is Verdict.ANSWERED else "null"
        await desk.decide(ledger, view, verdict, payload=given)
        assert await verdicts(ledger, view.pause.pause_id) == [verdict]
    else:
        await refused(desk.decide(ledger, view, verdict), "malformed_decision")
        assert await verdicts(ledger, view.pause.pause_id) == [None]


async def test_a_verdict_after_the_time_is_over_expires_the_call_instead(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger, seconds=-1)
    late = await refused(desk.decide(ledger, view), "expired")
    assert late.ids == ("c1",)
    assert late.decided_by is None
    assert await verdicts(ledger, view.pause.pause_id) == ["expired"]
    assert await ledger.open_count() == 0


async def test_a_session_is_answering_until_the_answer_has_gone_out(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    assert not (await ledger.resolve("s1")).answering
    await ledger.decide([choice(view)], by="ann", via="chat", decision_id="d1", resumes=True)
    assert (await desk.replica().resolve("s1")).answering
    await ledger.answered("s1", "another")
    assert (await ledger.resolve("s1")).answering
    await ledger.answered("s1", "d1")
    assert not (await ledger.resolve("s1")).answering


async def test_a_decision_that_nobody_waits_for_is_answered_by_who_carries_it_out(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    await ledger.decide([choice(view)], by="ann", via="cli", decision_id="d1")
    assert (await ledger.resolve("s1")).answering
    await ledger.answered("s1", ELSEWHERE)
    assert not (await ledger.resolve("s1")).answering


async def test_a_refused_decision_is_not_being_answered(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    await refused(desk.decide(ledger, view, digest="sha256:x"), "integrity")
    (old,) = await desk.paused(ledger, desk.call("c2"), seconds=-1)
    await refused(desk.decide(ledger, old), "expired")
    assert not (await ledger.resolve("s1")).answering


async def test_an_answer_that_never_goes_out_is_given_up_after_four_leases(desk: Desk) -> None:
    ledger = desk.replica(lease=0.02)
    (view,) = await desk.paused(ledger)
    await desk.decide(ledger, view)
    while (await ledger.resolve("s1")).answering:
        pass


async def test_what_became_of_the_newest_decided_call_stays_known(desk: Desk, ledger: Ledger) -> None:
    for number in range(3):
        turn, views = await desk.claimed(ledger, desk.call(f"c{number}", Kind.CONFIRMATION))
        await ledger.commit(turn, Commit(completions=(completion(turn, views[0]),), release=True))
        for replica in (ledger, desk.replica()):
            found = await replica.resolve("s1")
            assert found.calls == []
            assert found.last is not None
            assert found.last.call.call_id == f"c{number}"
            assert found.last.state.done


async def test_the_newest_decided_call_is_found_when_another_pause_ended_after_it(desk: Desk, ledger: Ledger) -> None:
    (one,) = await desk.paused(ledger, desk.call("c1", Kind.CONFIRMATION))
    (two,) = await desk.paused(ledger, desk.call("c2", Kind.CONFIRMATION))
    await desk.decide(ledger, one)
    await desk.decide(ledger, two)
    turn, views = await ledger.take_and_claim("s1", requester="ann")
    for view in reversed(views):
        await ledger.commit(turn, Commit(completions=(completion(turn, view),)))
    found = (await desk.replica().resolve("s1")).last
    assert found is not None
    assert found.call.call_id == "c2"


async def test_a_late_decision_about_a_pause_long_done_hears_what_became_of_it(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger, desk.call("c1", Kind.CONFIRMATION))
    await desk.decide(ledger, view, by="ann")
    turn, views = await ledger.take_and_claim("s1", requester="ann")
    await ledger.commit(turn, Commit(completions=(completion(turn, views[0]),), release=True))
    turn, views = await desk.claimed(ledger, desk.call("c2", Kind.CONFIRMATION))
    await ledger.commit(turn, Commit(completions=(completion(turn, views[0]),), release=True))
    for replica in (ledger, desk.replica()):
        late = await refused(desk.decide(replica, view, by="bob"), "already_decided")
        assert late.decided_by == "ann"


async def test_answers_that_never_went_out_leave_nothing_behind(desk: Desk) -> None:
    ledger = desk.replica(lease=0.02)
    for number in range(3):
        (view,) = await desk.paused(ledger, desk.call(f"c{number}"))
        await desk.decide(ledger, view)
        while (await ledger.resolve("s1")).answering:
            pass
    assert await desk.redis.zcard(ledger._session("s1")[4]) <= 1
    while await desk.redis.exists(ledger._session("s1")[4]):
        pass


@pytest.mark.parametrize(
    "payload",
    ["null", '"SQLite"', '{"ask_user_answers":[]}', '{"ask_user_answers":[{"answer":["PostgreSQL","SQLite"]}]}'],
)
async def test_what_does_not_answer_a_question_is_refused_whoever_sends_it(
    desk: Desk, ledger: Ledger, payload: str
) -> None:
    (view,) = await desk.paused(ledger, desk.call(kind=Kind.QUESTION, arguments=QUESTIONS))
    refusal = await refused(desk.decide(ledger, view, Verdict.ANSWERED, payload=payload), "malformed_decision")
    assert refusal.ids == ("c1",)
    assert await verdicts(ledger, view.pause.pause_id) == [None]
