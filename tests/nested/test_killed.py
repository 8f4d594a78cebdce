"""Three agents deep, as processes that are killed: each tool runs once, and the root answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import a2a03
from support.a2a03 import Json, batch, by_id, reply, state
from support.family import inner
from support.generations import House, three
from support.processes import until


async def _shows(house: House, task: Json, *ids: str) -> Json:
    """The root's task once it shows these calls, whoever had to be started again for it."""

    async def there() -> Json | None:
        found = await house.root.task(task["id"])
        return found if state(found) == "input-required" and {id_ for id_, _ in inner(found)} == set(ids) else None

    found: Json = await until(there, f"the root shows {ids}")
    return found


async def test_each_is_killed_while_all_wait(tmp_path: Path) -> None:
    async with three(tmp_path) as house:
        paused = await house.root.say("go", "s1")
        assert inner(paused) == [("k1", "refund")]
        for name in ("root", "middle", "leaf"):
            await house[name].kill()
            await house[name].start()
        second = await house.root.decide(batch(k1="approve"), "s1")
        assert inner(second) == [("k2", "slow")]
        for name in ("leaf", "middle", "root"):
            await house[name].kill()
            await house[name].start()
        done = await house.root.decide(batch(k2="approve"), "s1")
        assert state(done) == "completed"
        assert "The leaf is done." in reply(done)
        assert house.shop.effects() == ["refund", "slow"]


@pytest.mark.parametrize("victim", ["root", "middle"])
async def test_one_is_killed_while_the_tool_runs(tmp_path: Path, victim: str) -> None:
    async with three(tmp_path) as house:
        paused = await house.root.say("go", "s1")
        house.shop.touch("hold-refund-before")
        await house.root.decide(batch(k1="approve"), "s1", blocking=False)
        await house.shop.there("at-refund-before")
        await house[victim].kill()
        await house[victim].start()
        house.shop.touch("go")
        await _shows(house, paused, "k2")
        done = await house.root.decide(batch(k2="approve"), "s1")
        assert state(done) == "completed"
        assert "The leaf is done." in reply(done)
        assert house.shop.effects() == ["refund", "slow"]


async def test_an_outcome_that_is_unknown_at_the_leaf_is_settled_at_the_root(tmp_path: Path) -> None:
    async with three(tmp_path) as house:
        paused = await house.root.say("go", "s1")
        house.shop.touch("hold-refund-before")
        await house.root.decide(batch(k1="approve"), "s1", blocking=False)
        await house.shop.there("at-refund-before")
        await house["leaf"].kill()
        await house["leaf"].start()
        doubtful = await _shows(house, paused, "k1:outcome:1")
        with pytest.raises(a2a03.Refused) as refused:
            await house.root.decide(a2a03.APPROVE, "s1")
        assert refused.value.code in ("malformed_decision", "already_decided")
        (name,) = [id_ for id_, _ in inner(doubtful)]
        house.shop.touch("go")

        async def settled() -> bool:
            again = await house.root.decide(by_id({name: "approve"}), "s1")
            return inner(again) == [("k2", "slow")]

        await until(settled, "the retry is accepted at the leaf")
        done = await house.root.decide(batch(k2="approve"), "s1")
        assert state(done) == "completed"
        assert house.shop.effects() == ["refund", "slow"]
