"""Names of keys: one hash tag for each agent, its name right after it, and nothing in them that a client chose."""

from __future__ import annotations

import re

import pytest

from ledger.desk import Desk, completion
from sayso_approvals.keys import SHARDS, Keys, shard, short
from sayso_approvals.ledger import Ledger
from sayso_approvals.records import AgentId, Begin, Commit, TaskWrite

HOSTILE = "s1} *\n{x}:open"


async def test_every_key_in_use_carries_the_agents_tag_and_name_and_nothing_hostile(desk: Desk, ledger: Ledger) -> None:
    turn = await ledger.take(HOSTILE, requester="ann")
    pause = desk.pause(turn, desk.call(HOSTILE), pause_id=HOSTILE)
    task = TaskWrite(HOSTILE, 0, "{}", "x")
    await ledger.commit(turn, Commit(events=("{}",), pause=pause, task=task, answers={HOSTILE: "1"}, release=True))
    (view,) = await ledger.view(HOSTILE)
    await desk.decide(ledger, view)
    assert await ledger.wait_for_work("r1", 1) == [HOSTILE]
    turn, (view,) = await ledger.take_and_claim(HOSTILE, requester="ann")
    assert (await ledger.begin(turn, view))[0] is Begin.RUN
    await ledger.finish(turn, view, "1", is_error=False)
    await ledger.commit(turn, Commit(completions=(completion(turn, view),), release=True))
    tag = shard(desk.agent)
    keys = [key async for key in desk.redis.scan_iter("*")]
    assert f"sayso:{{{tag}}}:wake" in keys
    rest = [key for key in keys if not key.endswith(":wake")]
    prefix = re.escape(f"sayso:{{{tag}}}:shop/refund-desk:")
    assert len(rest) > 8
    for key in rest:
        assert re.fullmatch(prefix + r"[a-z]+(:[a-z2-7]{26})?", key), key


def test_agents_are_spread_over_all_shards_and_stay_there() -> None:
    shards = {shard(AgentId("shop", f"agent-{n}")) for n in range(500)}
    assert shards == {f"s{n:02d}" for n in range(SHARDS)}
    assert shard(AgentId("shop", "refund-desk")) == "s04"


@pytest.mark.parametrize("name", ["", "a b", "a}", "{a}", "a:b", "a/b", "A", "-a", "a\n", "é", "a" * 254])
def test_a_name_that_no_kubernetes_object_has_is_refused(name: str) -> None:
    for agent in (AgentId(name, "desk"), AgentId("shop", name)):
        with pytest.raises(ValueError, match="RFC 1123"):
            Keys(agent)


def test_different_ids_never_share_a_name() -> None:
    assert short("a", "b") != short("ab") != short("a\x00b")
    assert short("a", "b:c") != short("a:b", "c")
    assert short("\ud800") != short("?")
