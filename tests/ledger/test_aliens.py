"""What somebody else wrote into the agent's indexes is taken out and told, and keeps nobody from their work."""

from __future__ import annotations

import logging

import pytest

from ledger.desk import Desk, eventually
from sayso_approvals.ledger import Ledger
from sayso_approvals.records import Verdict

ALIENS = [
    "junk",
    "a:b",
    "a:b:c",
    f"{'a' * 26}:x:s1",
    f"{'a' * 26}:0:",
    f"{'a' * 26}:0:{'s' * 600}",
    f"{'a' * 26}:",
    f"{'a' * 26}:{'s' * 600}",
    "s" * 600,
    b"\xff\xfe",
    b"aaaaaaaaaaaaaaaaaaaaaaaaaa:0:\xff",
    b"aaaaaaaaaaaaaaaaaaaaaaaaaa:\xff",
    "",
]
INDEXES = ("open", "ready", "running", "unfinished", "archive")


async def _spoil(desk: Desk, ledger: Ledger) -> None:
    for name in INDEXES:
        for score in (0, "-inf", "+inf", -5):
            for number, alien in enumerate(ALIENS):
                suffix = f"{score}{number}" if alien and number < 3 else ""
                member = alien if isinstance(alien, bytes) else alien + suffix
                await desk.redis.execute_command("ZADD", getattr(ledger._keys, name), score, member)


async def test_members_that_nobody_here_wrote_stop_neither_expiry_nor_work_nor_lists(
    desk: Desk, ledger: Ledger
) -> None:
    (late,) = await desk.paused(ledger, seconds=-1, session="late")
    (decided,) = await desk.paused(ledger, session="decided")
    await desk.decide(ledger, decided)
    await _spoil(desk, ledger)
    assert await ledger.expire_due() == 1
    assert {"late", "decided"} <= set(await ledger.work())
    assert [view.pause.session_id for view in await ledger.calls(include_done=True)] == ["late", "decided"]
    listed = [view.pause.session_id for _, views in await ledger.unfinished(None, 100) for view in views]
    assert listed == ["late", "decided"]
    (after,) = await ledger.view(late.pause.pause_id)
    assert after.state.verdict is not None
    assert after.state.verdict.verdict is Verdict.EXPIRED


async def test_what_stands_for_nothing_is_taken_out_and_named(
    desk: Desk, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    (view,) = await desk.paused(ledger)
    await desk.decide(ledger, view)
    keys = ledger._keys
    stray = f"{'b' * 26}:0:s1"  # of a session that is there, and no call of it
    for index, member in ((keys.open, "junk"), (keys.ready, "junk"), (keys.ready, stray), (keys.running, "nobody")):
        await desk.redis.zadd(index, {member: 0})
    await desk.redis.zadd(keys.open, {f"{'c' * 26}:0:s1": 0})
    with caplog.at_level(logging.ERROR, logger="sayso_approvals"):
        await ledger.expire_due()
        await ledger.work()
        await ledger.work()
        assert await ledger.work() == ["s1"]
    assert await desk.redis.zcard(keys.open) == 0
    assert await desk.redis.zcard(keys.running) == 0
    assert await desk.redis.zcard(keys.ready) == 1
    text = caplog.text
    for what in (f"{keys.open} held 'junk'", f"{keys.ready} held 'junk'", repr(stray), "'nobody'"):
        assert text.count(what) == 1, what


async def test_a_call_whose_place_in_the_index_was_moved_expires_when_its_record_says(
    desk: Desk, ledger: Ledger
) -> None:
    (view,) = await desk.paused(ledger)
    (member,) = await desk.redis.zrange(ledger._keys.open, 0, -1)
    for score in (0, "-inf"):
        await desk.redis.execute_command("ZADD", ledger._keys.open, score, member)
        assert await ledger.expire_due() == 0
        assert await desk.redis.zscore(ledger._keys.open, member) == int(view.expires_at * 1000)


async def test_sessions_that_cannot_go_on_hide_no_others_however_many_they_are(desk: Desk, ledger: Ledger) -> None:
    for number in range(1100):
        await desk.redis.zadd(ledger._keys.running, {f"away{number:04}": 1})
        await desk.redis.hset(ledger._keys.session(f"away{number:04}")[0], "requester", "ann")
    (view,) = await desk.paused(ledger)
    await desk.decide(ledger, view)

    async def found() -> bool:
        return "s1" in await ledger.work()

    await eventually(found)
    assert len(await ledger.work()) == 1101
