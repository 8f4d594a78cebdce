"""Fifty deciders, twenty-five on each of two replicas, and one gated call."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.a2a03 import APPROVE, Json, asked, batch, reply, state
from support.deciders import decide_at_once, outcome
from support.processes import Shop

ROUNDS = 3


@pytest.mark.parametrize(
    "decision", [pytest.param(APPROVE, id="without-ids"), pytest.param(batch(c2="approve"), id="by-id")]
)
async def test_of_fifty_deciders_one_wins_and_the_tool_runs_once_and_the_others_hear_who_and_when(
    shop: Shop, new_session: Callable[[], str], decision: Json
) -> None:
    for _ in range(ROUNDS):
        await shop.whole()
        session = new_session()
        await shop.a.say("Refund", session)
        assert asked(await shop.b.decide(APPROVE, session)) == [("c2", "refund")]

        accepted, refused = await outcome(await decide_at_once(shop, session, [decision] * 50))

        assert [(state(task), reply(task)) for task in accepted] == [("completed", "Both.")]
        assert len(refused) == 49
        assert {error.code for error in refused} == {"already_decided"}
        assert {(error.data["decidedBy"], error.data["verdict"]) for error in refused} == {("alice", "approved")}
        assert len({error.data["decidedAt"] for error in refused}) == 1
        assert shop.effects("second") == ["refund"]


async def test_of_approvals_and_rejections_by_id_one_wins_and_the_tool_runs_only_if_it_was_an_approval(
    shop: Shop, new_session: Callable[[], str]
) -> None:
    for _ in range(ROUNDS):
        await shop.whole()
        session = new_session()
        await shop.a.say("Refund", session)
        await shop.a.decide(APPROVE, session)

        decisions = [batch(c2=word) for _ in range(13) for word in ("approve", "reject", "reject", "approve")][:50]
        accepted, refused = await outcome(await decide_at_once(shop, session, decisions))

        (won,) = accepted
        assert (state(won), len(refused)) == ("completed", 49)
        assert {error.code for error in refused} == {"already_decided"}
        (verdict,) = {error.data["verdict"] for error in refused}
        assert shop.effects("second") == (["refund"] if verdict == "approved" else [])
        words = "refund second: done" if verdict == "approved" else "Rejected by alice"
        assert words in await shop.told(session, "c2")
