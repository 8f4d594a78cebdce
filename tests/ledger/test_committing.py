"""A step of a turn is written whole or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from redis.asyncio import Redis

from ledger.desk import Desk, completion, refused
from sayso_approvals.ledger import Ledger
from sayso_approvals.records import AgentId, Commit, Kind, TaskWrite


async def test_events_are_appended_in_order_and_read_from_anywhere(desk: Desk, ledger: Ledger) -> None:
    turn = await ledger.take("s1", requester="ann")
    await ledger.commit(turn, Commit(events=('{"n":1}', '{"n":2}')))
    await ledger.commit(turn, Commit(events=('{"n":3}',), release=True))
    assert turn.length == 3
    assert await desk.replica().events("s1") == ['{"n":1}', '{"n":2}', '{"n":3}']
    assert await ledger.events("s1", 2) == ['{"n":3}']
    assert (await ledger.take("s1", requester="ann")).length == 3


async def test_a_pause_comes_back_as_it_was_written(desk: Desk, ledger: Ledger) -> None:
    turn = await ledger.take("s1", requester="ann")
    calls = (
        desk.call("c1", hint="Ünïcode \u2028 \x00", payload='{"a":[]}', editable=("amount",), timeout_seconds=1.5),
        desk.call("c2", Kind.CONFIRMATION, phase=2, confirmation_id="f2", idempotent=True, node="polite"),
    )
    pause = replace(desk.pause(turn, *calls), path=("shop/parent",), on_timeout="Reject")
    await ledger.commit(turn, Commit(pause=pause))
    views = await desk.replica().view(pause.pause_id)
    assert [view.pause for view in views] == [pause, pause]
    assert [view.call for view in views] == list(calls)
    assert all(view.intact and view.open for view in views)
    assert await ledger.open_count() == 2


async def test_a_stale_task_version_refuses_the_whole_step(desk: Desk, ledger: Ledger) -> None:
    turn = await ledger.take("s1", requester="ann")
    await ledger.commit(turn, Commit(task=TaskWrite("t1", 0, '{"v":1}', "working")))
    for expected in (0, 2):
        stale = Commit(
            events=("{}",),
            pause=desk.pause(turn, desk.call()),
            task=TaskWrite("t1", expected, '{"v":2}', "done"),
            answers={"m1": "{}"},
            release=True,
        )
        refusal = await refused(ledger.commit(turn, stale), "integrity")
        assert refusal.extra == {"version": 1}
    assert await ledger.task("t1") == (1, '{"v":1}')
    assert await ledger.events("s1") == []
    assert await ledger.open_count() == 0
    assert await ledger.answer_to("s1", "m1") is None
    await ledger.commit(turn, Commit(task=TaskWrite("t1", 1, '{"v":2}', "done")))
    assert await ledger.task("t1") == (2, '{"v":2}')
    assert await ledger.task("t2") is None


async def test_every_part_of_a_step_ends_up_in_its_own_place(desk: Desk, ledger: Ledger) -> None:
    turn, views = await desk.claimed(ledger, desk.call("c1", Kind.CONFIRMATION), desk.call("c2", Kind.CONFIRMATION))
    pause = desk.pause(turn, desk.call("c3"), desk.call("c4"))
    commit = Commit(
        events=('"e1"', '"e2"'),
        pause=pause,
        completions=tuple(completion(turn, view) for view in views),
        task=TaskWrite("t7", 0, '"document"', "working"),
        answers={"m1": '"a1"', "m2": '"a2"'},
        release=True,
    )
    await ledger.commit(turn, commit)
    other = desk.replica()
    assert (await other.events("s1"))[-2:] == ['"e1"', '"e2"']
    assert [view.call.call_id for view in await other.calls()] == ["c3", "c4"]
    assert [view.state.done for view in await other.view(views[0].pause.pause_id)] == [True, True]
    assert await other.task("t7") == (1, '"document"')
    assert [await other.answer_to("s1", message) for message in ("m1", "m2")] == ['"a1"', '"a2"']
    assert not (await other.take("s1", requester="ann", wait_seconds=0)).dirty


async def test_the_sessions_newest_task_is_found(desk: Desk, ledger: Ledger) -> None:
    turn = await ledger.take("s1", requester="ann")
    await ledger.commit(turn, Commit(task=TaskWrite("t1", 0, "{}", "done")))
    await ledger.commit(turn, Commit(task=TaskWrite("t2", 0, "{}", "working")))
    assert (await desk.replica().resolve("s1")).task_id == "t2"


async def test_a_repeated_message_gets_the_first_answer(desk: Desk, ledger: Ledger) -> None:
    turn = await ledger.take("s1", requester="ann")
    await ledger.commit(turn, Commit(answers={"m1": '"first"', "m2": '"other"'}))
    await ledger.commit(turn, Commit(answers={"m1": '"second"'}))
    assert await desk.replica().answer_to("s1", "m1") == '"first"'
    assert await ledger.answer_to("s1", "m2") == '"other"'
    assert await ledger.answer_to("s2", "m1") is None, "another session's message is another message"


async def test_an_answer_is_kept_for_seven_days(desk: Desk, ledger: Ledger) -> None:
    turn = await ledger.take("s1", requester="ann")
    await ledger.commit(turn, Commit(answers={"m1": "1"}))
    (key,) = [key async for key in desk.redis.scan_iter("*:answer:*")]
    assert 6.9 * 86_400 < await desk.redis.ttl(key) <= 7 * 86_400


async def test_a_pauses_id_is_used_once(desk: Desk, ledger: Ledger) -> None:
    turn, views = await desk.claimed(ledger, desk.call("c1", Kind.CONFIRMATION))
    again = replace(desk.pause(turn, desk.call("c2")), pause_id=views[0].pause.pause_id)
    await refused(ledger.commit(turn, Commit(pause=again)), "integrity")
    await ledger.commit(turn, Commit(completions=(completion(turn, views[0]),)))
    await refused(ledger.commit(turn, Commit(events=("{}",), pause=again)), "integrity")
    assert len(await ledger.events("s1")) == 1


async def test_a_pause_of_somebody_else_is_a_mistake(desk: Desk, ledger: Ledger) -> None:
    turn = await ledger.take("s1", requester="ann")
    pause = desk.pause(turn, desk.call())
    for wrong in (
        replace(pause, agent=AgentId("shop", "other")),
        replace(pause, session_id="s2"),
        replace(pause, calls=()),
        replace(pause, calls=(desk.call(), desk.call())),
        replace(pause, expires_at=0.0),
    ):
        with pytest.raises(ValueError, match="pause"):
            await ledger.commit(turn, Commit(pause=wrong))
    assert await ledger.open_count() == 0


async def test_releasing_with_the_last_step_lets_the_next_one_in(desk: Desk, ledger: Ledger) -> None:
    turn = await ledger.take("s1", requester="ann")
    await ledger.commit(turn, Commit(events=("{}",), release=True))
    assert not (await desk.replica().take("s1", requester="ann", wait_seconds=0)).dirty


async def test_calls_that_are_done_stay_to_be_looked_at(desk: Desk, ledger: Ledger) -> None:
    for number in range(3):
        turn, (view,) = await desk.claimed(ledger, desk.call(f"c{number}", Kind.CONFIRMATION))
        await ledger.commit(turn, Commit(completions=(completion(turn, view),), release=True))
    await desk.paused(ledger, desk.call("c3"))
    assert [view.call.call_id for view in await ledger.calls()] == ["c3"]
    seen = await desk.replica().calls(include_done=True)
    assert [view.call.call_id for view in seen] == ["c0", "c1", "c2", "c3"]
    assert all(view.intact for view in seen)
    assert [view.state.done for view in seen] == [True, True, True, False]


async def test_a_pause_that_is_partly_done_shows_all_its_calls_only_when_asked(desk: Desk, ledger: Ledger) -> None:
    one, _ = await desk.paused(ledger, desk.call("c1", Kind.CONFIRMATION), desk.call("c2"))
    await desk.decide(ledger, one)
    turn, (one,) = await ledger.take_and_claim("s1", requester="ann")
    await ledger.commit(turn, Commit(completions=(completion(turn, one),), release=True))
    assert [view.call.call_id for view in await ledger.calls()] == ["c2"]
    assert [view.call.call_id for view in await ledger.calls(include_done=True)] == ["c1", "c2"]
    assert [view.call.call_id for view in await ledger.view(one.pause.pause_id)] == ["c1", "c2"]


async def test_a_long_session_does_not_grow_what_a_message_reads(desk: Desk, ledger: Ledger) -> None:
    sizes = []
    for number in range(12):
        turn, (view,) = await desk.claimed(ledger, desk.call(f"c{number}", Kind.CONFIRMATION))
        await ledger.commit(turn, Commit(completions=(completion(turn, view),), release=True))
        sizes.append(await desk.redis.hlen(await desk.live_key()))
    assert sizes[-1] == sizes[0]


async def test_agents_do_not_see_each_other(desk: Desk, redis: Redis) -> None:
    other = Ledger(redis, AgentId("shop", "refund-desk2"), desk.key)
    (view,) = await desk.paused(desk.replica())
    assert await other.view(view.pause.pause_id) == []
    assert await other.calls() == []
    assert (await other.resolve("s1")).requester is None


async def test_everything_that_happened_is_in_the_outbox_until_it_is_acknowledged(desk: Desk, ledger: Ledger) -> None:
    turn, (view,) = await desk.claimed(ledger)
    await ledger.begin(turn, view)
    await ledger.finish(turn, view, "1", is_error=False)
    await ledger.commit(turn, Commit(completions=(completion(turn, view),), release=True))
    events = await ledger.happened()
    assert [fields["event"] for _, fields in events] == ["opened", "decided", "started", "finished", "completed"]
    assert {(fields["pause"], fields["call"], fields["session"]) for _, fields in events} == {
        (view.pause.pause_id, "c1", "s1")
    }
    assert [fields["event"] for _, fields in await ledger.happened(events[1][0], limit=2)] == ["started", "finished"]
    await ledger.acknowledge(events[2][0])
    assert [fields["event"] for _, fields in await ledger.happened()] == ["finished", "completed"]


async def test_a_turn_begins_its_task_in_the_same_step(desk: Desk, ledger: Ledger) -> None:
    turn = await ledger.take("s1", requester="ann", begins=TaskWrite("t1", 0, '"new"', "working"))
    assert turn.task == (1, '"new"')
    assert await desk.replica().task("t1") == (1, '"new"')
    assert (await ledger.resolve("s1")).task_id == "t1"
    await ledger.commit(turn, Commit(task=TaskWrite("t1", 1, '"next"', "done"), answers={"m1": '"a"'}, release=True))
    turn = await ledger.take("s1", requester="ann", begins=TaskWrite("t1", 0, '"again"', "working"))
    assert turn.task == (2, '"next"'), "a task that exists is read, never begun again"


async def test_a_turn_that_begins_no_task_writes_none(desk: Desk, ledger: Ledger) -> None:
    await ledger.take("s1", requester="ann")
    assert [key async for key in desk.redis.scan_iter("*:task:*")] == []
    assert (await ledger.resolve("s1")).task_id is None


async def test_no_task_begins_where_a_call_waits_or_the_message_had_its_answer(desk: Desk, ledger: Ledger) -> None:
    begins = TaskWrite("t9", 0, '"new"', "working")
    turn = await ledger.take("s1", requester="ann")
    await ledger.commit(turn, Commit(answers={"m1": '"a"'}, release=True))
    turn = await ledger.take("s1", requester="ann", message_id="m1", begins=begins)
    assert (turn.answer, turn.task) == ('"a"', None)
    await ledger.release(turn)
    await desk.paused(ledger)
    turn = await ledger.take("s1", requester="ann", message_id="m2", begins=begins)
    assert (turn.answer, turn.task) == (None, None)
    assert await ledger.task("t9") is None


async def test_who_waits_in_vain_begins_no_task(desk: Desk, ledger: Ledger) -> None:
    begins = TaskWrite("t9", 0, '"new"', "working")
    await ledger.take("s1", requester="ann")
    await refused(desk.replica().take("s1", requester="ann", wait_seconds=0, begins=begins), "busy")
    await refused(ledger.take("s1", requester="bob", begins=begins), "not_found")
    assert await ledger.task("t9") is None


async def test_a_message_finds_its_answer_and_its_task_in_one_look(desk: Desk, ledger: Ledger) -> None:
    turn = await ledger.take("s1", requester="ann")
    await ledger.commit(turn, Commit(task=TaskWrite("t1", 0, '"d"', "done"), answers={"m1": '"a"'}, release=True))
    found = await desk.replica().resolve("s1", message_id="m1", task_id="t1")
    assert (found.answer, found.task) == ('"a"', (1, '"d"'))
    found = await ledger.resolve("s1", message_id="m2", task_id="t2")
    assert (found.answer, found.task) == (None, None)
    turn, _ = await ledger.take_and_claim("s1", requester="ann", task_id="t1")
    assert turn.task == (1, '"d"')


async def test_a_pause_that_is_done_is_kept_for_thirty_days_and_then_out_of_every_index(
    desk: Desk, ledger: Ledger
) -> None:
    for number in range(2):
        turn, (view,) = await desk.claimed(ledger, desk.call(f"c{number}", Kind.CONFIRMATION))
        await ledger.commit(turn, Commit(completions=(completion(turn, view),), release=True))
        kept = desk.redis.ttl(ledger._keys.pause(view.pause.pause_id))
        assert 29.9 * 86_400 < await kept <= 30 * 86_400
        assert await desk.redis.zcard(ledger._keys.unfinished) == 0
        (newest,) = await desk.redis.zrange(ledger._keys.archive, -1, -1)
        assert await desk.redis.zcard(ledger._keys.archive) == 1, "what is older than that leaves the archive's index"
        await desk.redis.zadd(ledger._keys.archive, {newest: 1})
