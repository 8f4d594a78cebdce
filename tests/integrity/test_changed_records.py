"""What was approved is what runs: a record changed in Redis is refused, with nothing run, and can only be cancelled."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from redis.asyncio import Redis

from sayso_approvals.digest import canonical, digest
from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import TaskState
from support.agents import Counter, Replica, agent, call, calls, reply


def _replica(redis: Redis, seen: Counter, key: bytes = b"k" * 32) -> Replica:
    model = seen.model(calls(call("refund", "c1", order="A")))
    return Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"], key=key)


async def _rewrite(redis: Redis, change: Callable[[dict[str, Any]], None]) -> int:
    """Rewrites the stored record of every pause, as somebody with full access to Redis would."""
    changed = 0
    for key in await redis.keys("sayso:*"):
        if await redis.type(key) != "hash":
            continue
        for name, text in (await redis.hgetall(key)).items():
            if name.endswith(":record"):
                document = json.loads(text)
                change(document)
                await redis.hset(key, name, canonical(document))
                changed += 1
    return changed


def _more_money(document: dict[str, Any]) -> None:
    """Arguments, and the digest that goes with them: consistent, but not sealed."""
    (one,) = document["calls"]
    arguments = {"order": "everything"}
    one["arguments"] = canonical(arguments)
    one["digest"] = digest(one["server"], one["endpoint"], one["tool"], arguments)


def _other_gate(document: dict[str, Any]) -> None:
    document["calls"][0]["gated_by"] = []


def _longer(document: dict[str, Any]) -> None:
    document["expires_at"] = document["expires_at"] + 3600


@pytest.mark.parametrize("change", [_more_money, _other_gate, _longer])
async def test_a_changed_record_runs_nothing_and_can_only_be_cancelled(
    redis: Redis, change: Callable[[dict[str, Any]], None]
) -> None:
    seen = Counter()
    replica = _replica(redis, seen)
    await replica.say("go")
    assert await _rewrite(redis, change) == 1

    for fresh in (replica, _replica(redis, seen)):
        with pytest.raises(Refusal) as caught:
            await fresh.decide("approve")
        assert caught.value.code == "integrity"
    assert seen.runs == []
    done = await replica.decide("cancel")
    assert done.state is TaskState.COMPLETED
    assert seen.runs == []


async def test_a_record_changed_after_the_approval_is_not_run(redis: Redis) -> None:
    seen = Counter()
    replica = _replica(redis, seen)
    await replica.say("go")
    (view,) = await replica.ledger.calls()
    from sayso_approvals.ledger import Choice
    from sayso_approvals.records import Verdict

    await replica.ledger.decide(
        [Choice(view.pause.pause_id, "c1", view.call.digest, Verdict.APPROVED)], by="bob", via="cli", decision_id="d"
    )
    await _rewrite(redis, _more_money)
    fresh = _replica(redis, seen)
    await fresh.service.go_on("s1")
    assert seen.runs == []


async def test_a_pause_sealed_with_another_key_is_not_believed(redis: Redis) -> None:
    seen = Counter()
    await _replica(redis, seen, key=b"x" * 32).say("go")
    with pytest.raises(Refusal) as caught:
        await _replica(redis, seen).decide("approve")
    assert caught.value.code == "integrity"
    assert seen.runs == []


async def test_a_verdict_written_into_redis_by_hand_is_not_believed(redis: Redis) -> None:
    seen = Counter()
    replica = _replica(redis, seen)
    await replica.say("go")
    for key in await redis.keys("sayso:*:live*"):
        for name in await redis.hkeys(key):
            if name.endswith(":call"):
                at = name.removesuffix(":call")
                await redis.hset(key, mapping={f"{at}:word": "approved", f"{at}:verdict": "{}", f"{at}:vmac": "0" * 64})
    await replica.service.go_on("s1")
    await _replica(redis, seen).service.go_on("s1")
    assert seen.runs == []


async def test_a_tool_server_that_moved_is_not_the_one_that_was_approved(redis: Redis) -> None:
    seen = Counter()
    replica = _replica(redis, seen)
    await replica.say("go")

    moved = seen.tool("refund")
    moved.func.__module__ = "another_shop"
    model = seen.model(calls(call("refund", "c1", order="A")))
    fresh = Replica(redis, agent("desk", model, [moved]), ["refund"])
    with pytest.raises(Refusal) as caught:
        await fresh.decide("approve")
    assert caught.value.code == "integrity"
    assert seen.runs == []
    done = await fresh.decide("cancel")
    assert "Nobody decided" in reply(done)
