"""Several things that wait at once: in one agent, in two, beside calls of one's own, and three levels deep."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from support import a2a03
from support.a2a03 import APPROVE, REJECT, Json, Refused, batch, by_id, reply, state
from support.agents import call, calls
from support.family import Family, Member, family, inner, payloads

TWO = calls(call("refund", "k1", order="A-1"), call("wipe", "k2", order="A-2"))


async def _one_child(home: Family) -> Member:
    await home.add("child", TWO)
    return await home.add("root", calls(call("shop__NS__child", "p1", request="both")), children=["child"])


async def test_a_part_is_decided_now_and_the_rest_stays_open(redis: Redis) -> None:
    async with family(redis) as home:
        root = await _one_child(home)
        paused = await root.say()
        assert inner(paused) == [("k1", "refund"), ("k2", "wipe")]
        rest = await root.decide(batch(k2="reject"))
        assert (state(rest), inner(rest), home.ran) == ("input-required", [("k1", "refund")], [])
        done = await root.decide(batch(k1="approve"))
        assert (state(done), home.ran) == ("completed", [("refund", "A-1")])
        assert "Rejected by ada" in reply(done)


@pytest.mark.parametrize(
    ("said", "ran"),
    [
        (APPROVE, [("refund", "A-1"), ("wipe", "A-2")]),
        (REJECT, []),
        (batch(k1="approve", k2="reject"), [("refund", "A-1")]),
    ],
)
async def test_everything_that_waits_below_is_decided_at_once(
    redis: Redis, said: Json, ran: list[tuple[str, str]]
) -> None:
    async with family(redis) as home:
        root = await _one_child(home)
        await root.say()
        done = await root.decide(said)
        assert (state(done), sorted(home.ran)) == ("completed", ran)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (batch(k1="approve", k9="approve"), "unknown_call"),
        (by_id({}), "malformed_decision"),
        (batch(k1="approve", k2="deny"), "malformed_decision"),
    ],
)
async def test_a_decision_that_names_anything_else_decides_nothing(redis: Redis, said: Json, code: str) -> None:
    async with family(redis) as home:
        root = await _one_child(home)
        paused = await root.say()
        with pytest.raises(Refused) as refused:
            await root.decide(said)
        assert (refused.value.code, home.ran) == (code, [])
        now = await root.post(a2a03.get_task(paused["id"]))
        assert inner(now) == [("k1", "refund"), ("k2", "wipe")]


async def test_what_was_decided_below_is_not_decided_again(redis: Redis) -> None:
    async with family(redis) as home:
        root = await _one_child(home)
        await root.say()
        await root.decide(batch(k2="reject"))
        with pytest.raises(Refused) as refused:
            await root.decide(batch(k2="approve"))
        assert (refused.value.code, refused.value.data["verdict"]) == ("already_decided", "rejected")
        assert home.ran == []


async def _two_children(home: Family, one: str, other: str) -> Member:
    await home.add("left", calls(call("refund", one, order="L")))
    await home.add("right", calls(call("wipe", other, order="R")))
    both = calls(call("shop__NS__left", "p1", request="go"), call("shop__NS__right", "p2", request="go"))
    return await home.add("root", both, children=["left", "right"])


@pytest.mark.parametrize("first", ["k1", "k2"])
async def test_two_agents_that_wait_are_decided_in_any_order(redis: Redis, first: str) -> None:
    async with family(redis) as home:
        root = await _two_children(home, "k1", "k2")
        paused = await root.say()
        assert sorted(inner(paused)) == [("k1", "refund"), ("k2", "wipe")]
        (second,) = {"k1", "k2"} - {first}
        rest = await root.decide(batch(**{first: "approve"}))
        assert (state(rest), [id_ for id_, _ in inner(rest)]) == ("input-required", [second])
        done = await root.decide(batch(**{second: "approve"}))
        assert (state(done), sorted(home.ran)) == ("completed", [("refund", "L"), ("wipe", "R")])


async def test_two_agents_that_use_the_same_id_are_told_apart(redis: Redis) -> None:
    async with family(redis) as home:
        root = await _two_children(home, "k", "k")
        ids = {name: id_ for id_, name in inner(await root.say())}
        assert len(set(ids.values())) == 2
        rest = await root.decide(by_id({ids["wipe"]: "reject"}))
        assert ([name for _, name in inner(rest)], home.ran) == (["refund"], [])
        done = await root.decide(by_id({inner(rest)[0][0]: "approve"}))
        assert (state(done), home.ran) == ("completed", [("refund", "L")])


@pytest.mark.parametrize("first", ["k1", "own"])
async def test_a_call_of_ones_own_and_one_below_are_decided_in_any_order(redis: Redis, first: str) -> None:
    async with family(redis) as home:
        await home.add("child", calls(call("refund", "k1", order="C")))
        both = calls(call("shop__NS__child", "p1", request="go"), call("wipe", "own", order="P"))
        root = await home.add("root", both, children=["child"])
        paused = await root.say()
        assert sorted(a2a03.asked(paused)) == [("own", "wipe"), ("p1", "shop__NS__child")]
        (second,) = {"k1", "own"} - {first}
        rest = await root.decide(batch(**{first: "approve"}))
        assert (state(rest), len(home.ran)) == ("input-required", 1)
        done = await root.decide(batch(**{second: "approve"}))
        assert (state(done), sorted(home.ran)) == ("completed", [("refund", "C"), ("wipe", "P")])


async def test_the_same_id_above_and_below_is_told_apart(redis: Redis) -> None:
    async with family(redis) as home:
        await home.add("child", calls(call("refund", "c1", order="C")))
        both = calls(call("shop__NS__child", "c2", request="go"), call("wipe", "c1", order="P"))
        root = await home.add("root", both, children=["child"])
        paused = await root.say()
        ((below, _),) = inner(paused)
        assert below != "c1"
        await root.decide(batch(c1="reject"))
        done = await root.decide(by_id({below: "approve"}))
        assert (state(done), home.ran) == ("completed", [("refund", "C")])


async def test_parallel_calls_of_one_agent_have_sessions_of_their_own(redis: Redis) -> None:
    async with family(redis) as home:
        await home.add("child", calls(call("refund", "k1", order="C")))
        both = calls(call("shop__NS__child", "p1", request="one"), call("shop__NS__child", "p2", request="two"))
        root = await home.add("root", both, children=["child"])
        paused = await root.say()
        assert len({payload["context_id"] for payload in payloads(paused)}) == 2
        done = await root.decide(APPROVE)
        assert (state(done), home.ran) == ("completed", [("refund", "C")] * 2)


async def _three_levels(home: Family) -> Member:
    await home.add("leaf", calls(call("refund", "k1", order="A-1")), calls(call("wipe", "k2", order="A-2")))
    await home.add("middle", calls(call("shop__NS__leaf", "m1", request="go")), children=["leaf"])
    return await home.add("root", calls(call("shop__NS__middle", "p1", request="go")), children=["middle"])


async def test_three_levels_with_two_pauses_in_the_deepest(redis: Redis) -> None:
    async with family(redis) as home:
        root = await _three_levels(home)
        first = await root.say()
        assert inner(first) == [("k1", "refund")]
        second = await root.decide(batch(k1="approve"))
        assert (inner(second), home.ran) == ([("k2", "wipe")], [("refund", "A-1")])
        reason = {"decision_type": "batch", "decisions": {"k2": "reject"}, "rejection_reasons": {"k2": "keep it"}}
        done = await root.decide(reason)
        assert (state(done), home.ran) == ("completed", [("refund", "A-1")])
        assert "Rejected by ada: keep it" in reply(done)


async def test_the_agents_above_are_named_in_the_deepest_pause(redis: Redis) -> None:
    async with family(redis) as home:
        root = await _three_levels(home)
        await root.say()
        (view,) = await home.members["leaf"].open()
        assert view.pause.path == ("shop/root", "shop/middle")


async def test_a_gated_call_of_an_agent_asks_before_anything_is_sent(redis: Redis) -> None:
    async with family(redis) as home:
        child = await home.add("child", calls(call("refund", "k1", order="A-1")))
        once = calls(call("shop__NS__child", "p1", request="go"))
        root = await home.add("root", once, children=["child"], asks=["child"])
        paused = await root.say()
        assert (a2a03.asked(paused), payloads(paused), await child.open()) == ([("p1", "shop__NS__child")], [], [])
        below = await root.decide(batch(p1="approve"))
        assert (inner(below), home.ran) == ([("k1", "refund")], [])
        done = await root.decide(batch(k1="approve"))
        assert (state(done), home.ran) == ("completed", [("refund", "A-1")])


async def test_a_gated_call_of_an_agent_that_is_rejected_sends_nothing(redis: Redis) -> None:
    async with family(redis) as home:
        await home.add("child", calls(call("look", "k1", order="A-1")))
        once = calls(call("shop__NS__child", "p1", request="go"))
        root = await home.add("root", once, children=["child"], asks=["child"])
        await root.say()
        done = await root.decide(batch(p1="reject"))
        assert (state(done), home.ran) == ("completed", [])
