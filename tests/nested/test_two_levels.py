"""An agent calls another one, which pauses; the pause is seen and decided at the first."""

from __future__ import annotations

from redis.asyncio import Redis

from support import a2a03
from support.a2a03 import APPROVE, batch, reply, state
from support.agents import call, calls, says
from support.family import family, payloads

ASK_CHILD = calls(call("shop__NS__child", "p1", request="Refund A-1"))
REFUND = calls(call("refund", "k1", order="A-1"))


async def test_the_pause_of_a_called_agent_is_shown_whole_and_an_approval_reaches_it(redis: Redis) -> None:
    async with family(redis) as home:
        await home.add("child", REFUND, says("All done."))
        root = await home.add("root", ASK_CHILD, children=["child"])
        paused = await root.say()
        assert state(paused) == "input-required"
        assert a2a03.asked(paused) == [("p1", "shop__NS__child")]
        (payload,) = payloads(paused)
        (part,) = payload["hitl_parts"]
        assert part["name"] == "adk_request_confirmation"
        assert part["originalFunctionCall"] == {"name": "refund", "args": {"order": "A-1"}, "id": "k1"}
        assert payload["subagent_name"] == "child"
        assert payload["context_id"] == payload["subagent_session_id"]
        assert home.ran == []
        done = await root.decide(batch(k1="approve"))
        assert (state(done), home.ran) == ("completed", [("refund", "A-1")])
        assert "All done." in reply(done)


async def test_a_verdict_without_ids_means_what_the_called_agent_waits_for(redis: Redis) -> None:
    async with family(redis) as home:
        await home.add("child", REFUND, says("All done."))
        root = await home.add("root", ASK_CHILD, children=["child"])
        await root.say()
        done = await root.decide(APPROVE)
        assert (state(done), home.ran) == ("completed", [("refund", "A-1")])


async def test_a_reason_passes_down_word_for_word(redis: Redis) -> None:
    async with family(redis) as home:
        await home.add("child", REFUND)
        root = await home.add("root", ASK_CHILD, children=["child"])
        await root.say()
        no = {"decision_type": "batch", "decisions": {"k1": "reject"}, "rejection_reasons": {"k1": "not ünder 10 €"}}
        done = await root.decide(no)
        assert (state(done), home.ran) == ("completed", [])
        assert "Rejected by ada: not ünder 10 €" in reply(done)
