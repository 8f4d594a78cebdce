"""A request that was sent and never answered: nobody knows, so a person is asked, and nothing runs again by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sayso_approvals.records import execution_of
from support import a2a03
from support.a2a03 import APPROVE, REJECT, Json, Refused, asked, by_id, questions, reply, state
from support.processes import Shop, until

QUESTION = "c1:outcome:1"
NAME = "sayso_outcome_unknown"


async def commits_and_drops_the_connection(shop: Shop, session: str) -> Json:
    """The server does it, and resets the connection."""
    shop.touch("drop")
    answer = await shop.a.decide(APPROVE, session)
    (shop.held / "drop").unlink()
    return answer


async def commits_and_answers_too_late(shop: Shop, session: str) -> Json:
    """The server does it, and its answer does not come in time."""
    shop.touch("hold-charge-after")
    answer = await shop.a.decide(APPROVE, session)
    shop.touch("go")
    return answer


async def commits_and_is_killed(shop: Shop, session: str) -> Json:
    """The server does it, and dies by kill -9 before it answers."""
    assert shop.tools is not None
    shop.touch("hold-charge-after")
    sent = asyncio.create_task(shop.a.decide(APPROVE, session))
    await shop.there("at-charge-after")
    await shop.tools.kill()
    answer = await sent
    await shop.start_tools()
    await shop.a.ready()
    shop.touch("go")
    return answer


Fault = Callable[[Shop, str], Awaitable[Json]]
FAULTS = [commits_and_drops_the_connection, commits_and_answers_too_late, commits_and_is_killed]


async def in_doubt(shop: Shop, session: str, fault: Fault) -> Json:
    """A call that was made once, and whose outcome nobody knows."""
    await shop.whole()
    await shop.a.say("Charge A-1", session)
    waiting = await fault(shop, session)
    assert (state(waiting), asked(waiting)) == ("input-required", [(QUESTION, NAME)])
    assert shop.effects() == ["charge"]
    return waiting


async def accepted(send: Callable[[], Awaitable[Json]]) -> Json:
    """Sends a settlement until nobody can be sending the call any more."""

    async def attempt() -> Json | None:
        try:
            return await send()
        except Refused as refused:
            if refused.code != "paused":
                raise
            return None

    found: Json = await until(attempt, "the settlement is accepted")
    return found


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_call_that_was_sent_and_never_answered_is_asked_about_and_not_run_again_by_a_verdict_without_ids(
    shop: Shop, session: str, fault: Fault
) -> None:
    waiting = await in_doubt(shop, session, fault)
    (question,) = questions(waiting)
    assert question["args"]["tool"] == "charge"
    assert question["args"]["arguments"] == {"order": "A-1"}
    assert question["args"]["startedAt"].endswith("Z")
    assert (question["args"]["approve"], question["args"]["reject"]) == ("run it again", "leave it")
    assert "outcome unknown" in question["hint"]
    assert execution_of(await shop.call(session)) == "outcome_unknown"

    for decision in (APPROVE, by_id({"c1": "approve"}), by_id({"c1:outcome:2": "approve"})):
        with pytest.raises(Refused) as refused:
            await shop.a.decide(decision, session)
        assert refused.value.code in ("malformed_decision", "already_decided", "unknown_call")
    with pytest.raises(Refused) as refused:
        await shop.a.decide(APPROVE, session)
    assert (refused.value.code, refused.value.data["ids"]) == ("malformed_decision", [QUESTION])
    assert asked(await shop.a.task(waiting["id"])) == [(QUESTION, NAME)]
    assert shop.effects() == ["charge"]


@pytest.mark.parametrize("fault", FAULTS)
async def test_an_approval_that_names_the_outcome_runs_the_call_once_more(
    shop: Shop, session: str, fault: Fault
) -> None:
    waiting = await in_doubt(shop, session, fault)
    done = await accepted(lambda: shop.a.decide(by_id({QUESTION: "approve"}), session))
    assert (done["id"], state(done), reply(done)) == (waiting["id"], "completed", "Done.")
    assert "charge A-1: done" in await shop.told(session)
    assert shop.effects() == ["charge", "charge"]
    assert execution_of(await shop.call(session)) == "succeeded"


@pytest.mark.parametrize(
    "decision", [pytest.param(REJECT, id="without-ids"), pytest.param(by_id({QUESTION: "reject"}), id="by-id")]
)
async def test_a_rejection_leaves_it_and_the_model_hears_that_nobody_knows(
    shop: Shop, session: str, decision: Json
) -> None:
    await in_doubt(shop, session, commits_and_drops_the_connection)
    done = await accepted(lambda: shop.a.decide(decision, session))
    assert (state(done), reply(done)) == ("completed", "Done.")
    told = await shop.told(session)
    assert "Nobody knows whether this call ran" in told
    assert "alice" in told
    assert shop.effects() == ["charge"]


async def test_a_value_given_for_the_outcome_is_what_the_model_hears(shop: Shop, session: str) -> None:
    await in_doubt(shop, session, commits_and_drops_the_connection)

    async def give() -> Json:
        return a2a03.result(await shop.a.post(a2a03.value(QUESTION, {"charged": "A-1"}, session)))

    done = await accepted(give)
    assert (state(done), reply(done)) == ("completed", "Done.")
    assert '{"charged": "A-1"}' in await shop.told(session)
    assert shop.effects() == ["charge"]


async def test_a_call_that_is_run_again_can_be_in_doubt_again_under_a_name_of_its_own(shop: Shop, session: str) -> None:
    await in_doubt(shop, session, commits_and_drops_the_connection)
    shop.touch("drop")
    waiting = await accepted(lambda: shop.a.decide(by_id({QUESTION: "approve"}), session))
    (shop.held / "drop").unlink()
    assert asked(waiting) == [("c1:outcome:2", NAME)]
    assert shop.effects() == ["charge", "charge"]

    with pytest.raises(Refused) as refused:
        await shop.a.decide(by_id({QUESTION: "approve"}), session)
    assert refused.value.code == "already_decided"
    done = await accepted(lambda: shop.a.decide(by_id({"c1:outcome:2": "reject"}), session))
    assert state(done) == "completed"
    assert shop.effects() == ["charge", "charge"]


async def test_a_server_that_is_away_when_it_is_run_again_leaves_the_call_open_and_not_in_doubt(
    shop: Shop, session: str
) -> None:
    await in_doubt(shop, session, commits_and_drops_the_connection)
    assert shop.tools is not None
    await shop.tools.kill()
    open_again = await accepted(lambda: shop.a.decide(by_id({QUESTION: "approve"}), session))
    assert asked(open_again) == [("c1", "charge")]
    assert shop.effects() == ["charge"]

    await shop.start_tools()
    await shop.a.ready()
    done = await shop.a.decide(APPROVE, session)
    assert state(done) == "completed"
    assert shop.effects() == ["charge", "charge"]
