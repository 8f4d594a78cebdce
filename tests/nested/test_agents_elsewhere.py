"""Agents that are not ours, and agents that fail: their name is in what the model is told, and the session goes on."""

from __future__ import annotations

from typing import Any

import pytest
from redis.asyncio import Redis

from sayso_api.runtimeconfig import AgentBinding
from support import a2a03
from support.a2a03 import APPROVE, Json, batch, reply, state
from support.agents import call, calls
from support.family import Family, Member, family, inner
from support.odd_agent import events, odd_agent, page, question, result, task, text

ASK = calls(call("elsewhere", "p1", request="Tidy up"))
DEEP = b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 5000 + b"]" * 5000 + b"}"


async def _root(home: Family, url: str, seconds: float = 20.0) -> Member:
    other = AgentBinding(name="elsewhere", url=url, timeout_seconds=seconds)
    return await home.add("root", ASK, more=[other])


async def _still_usable(root: Member) -> None:
    """The next message of the session is answered."""
    assert state(await root.say("and now?")) == "completed"


async def test_an_answer_of_another_agent_is_the_result(redis: Redis) -> None:
    def answer(request: Json) -> bytes:
        assert request["method"] == "message/stream"
        ended = {"kind": "status-update", "taskId": "t1", "contextId": "c9", "final": True}
        piece = {"kind": "artifact-update", "taskId": "t1", "contextId": "c9"}
        return events(
            request,
            task("submitted"),
            piece | {"artifact": {"artifactId": "a", "parts": [text("Tidied ")]}},
            piece | {"artifact": {"artifactId": "a", "parts": [text("up.")]}, "append": True},
            ended | {"status": {"state": "completed"}},
        )

    async with family(redis) as home, odd_agent(answer) as other:
        root = await _root(home, other.url)
        done = await root.say()
        assert "Tidied up." in reply(done)
        (sent,) = other.heard
        message = sent["params"]["message"]
        assert (message["role"], message["parts"]) == ("user", [text("Tidy up")])
        assert message["metadata"] == {"sayso_requester": "ada", "sayso_path": ["shop/root"]}


async def test_an_agent_that_does_not_stream_is_asked_without(redis: Redis) -> None:
    def answer(request: Json) -> bytes:
        if request["method"] == "message/stream":
            return page(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"no streaming"}}')
        return result(request, {"kind": "message", "role": "agent", "messageId": "m", "parts": [text("Just so.")]})

    async with family(redis) as home, odd_agent(answer) as other:
        root = await _root(home, other.url)
        assert "Just so." in reply(await root.say())


async def test_a_pause_of_a_kagent_agent_is_shown_and_its_decision_sent_in_its_form(redis: Redis) -> None:
    def answer(request: Json) -> bytes:
        if "taskId" not in request["params"].get("message", {}):
            asked = question("d1", "delete_file", path="/tmp/x"), question("d2", "delete_file", path="/tmp/y")
            return result(request, task("input-required", *asked))
        return result(request, task("completed", artifacts=[{"artifactId": "a", "parts": [text("Gone.")]}]))

    async with family(redis) as home, odd_agent(answer) as other:
        root = await _root(home, other.url)
        paused = await root.say()
        assert inner(paused) == [("d1", "delete_file"), ("d2", "delete_file")]
        said: Json = {"decision_type": "batch", "decisions": {"d1": "approve", "d2": "reject"}}
        done = await root.decide(said | {"rejection_reasons": {"d2": "mine"}})
        assert "Gone." in reply(done)
        message = next(r["params"]["message"] for r in other.heard if "taskId" in r["params"].get("message", {}))
        assert (message["taskId"], message["contextId"]) == ("t1", "c9")
        assert message["parts"][0]["data"] == said | {"rejection_reasons": {"d2": "mine"}}


async def test_questions_of_another_agent_pass_up_and_the_answers_down(redis: Redis) -> None:
    questions = [{"question": "Which?", "choices": ["A", "B"], "multiple": False}]

    def answer(request: Json) -> bytes:
        if "taskId" not in request["params"].get("message", {}):
            return result(request, task("input-required", question("u1", "ask_user", questions=questions)))
        return result(request, task("completed", artifacts=[{"artifactId": "a", "parts": [text("B it is.")]}]))

    async with family(redis) as home, odd_agent(answer) as other:
        root = await _root(home, other.url)
        paused = await root.say()
        assert inner(paused) == [("u1", "ask_user")]
        with pytest.raises(a2a03.Refused) as refused:
            await root.decide(APPROVE)
        assert refused.value.code == "malformed_decision"
        said: Json = {"decision_type": "approve", "ask_user_answers": [{"answer": ["B"]}]}
        done = await root.decide(said)
        assert "B it is." in reply(done)
        assert other.heard[-1]["params"]["message"]["parts"][0]["data"] == said


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(page(b"<html>oops</html>", "text/html"), id="a page"),
        pytest.param(page(b"<html>no</html>", "text/html", "404 Not Found"), id="another server"),
        pytest.param(page(b"{", "application/json"), id="half a document"),
        pytest.param(page(DEEP), id="depth"),
        pytest.param(page(b'{"jsonrpc":"2.0","id":1,"result":{"kind":"party"}}'), id="another kind"),
        pytest.param(page(b'{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":7}}'), id="an id of another type"),
        pytest.param(
            page(b'{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":null,"data":[]}}'), id="an odd error"
        ),
        pytest.param(page(b"data: [1]\n\n", "text/event-stream"), id="events of another kind"),
        pytest.param(page(b'{"jsonrpc":"2.0","id":1,"result":NaN}'), id="NaN"),
    ],
)
async def test_garbage_is_a_tool_error_that_names_the_agent(redis: Redis, said: bytes) -> None:
    async with family(redis) as home, odd_agent(lambda request: said) as other:
        root = await _root(home, other.url)
        done = await root.say()
        assert state(done) == "completed"
        assert "elsewhere gave no answer" in reply(done)
        await _still_usable(root)


@pytest.mark.parametrize(
    "broken", [{"args": {}}, {"id": 7}, {"args": {"originalFunctionCall": {"id": "x", "name": "y", "args": []}}}]
)
async def test_a_pause_that_cannot_be_decided_is_garbage(redis: Redis, broken: Json) -> None:
    part: dict[str, Any] = question("d1", "delete_file")
    part["data"] |= broken

    async with family(redis) as home, odd_agent(lambda request: result(request, task("input-required", part))) as other:
        root = await _root(home, other.url)
        assert "elsewhere gave no answer" in reply(await root.say())


@pytest.mark.parametrize("how", ["failed", "rejected", "canceled", "auth-required", "strange"])
async def test_an_agent_that_fails_is_named_with_what_it_said(redis: Redis, how: str) -> None:
    async with family(redis) as home, odd_agent(lambda request: result(request, task(how, text("no luck")))) as other:
        root = await _root(home, other.url)
        said = reply(await root.say())
        assert "The agent elsewhere" in said
        assert "no luck" in said


async def test_an_agent_that_nobody_answers_for_is_named(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sayso_runtime.tools.agent_talk.COMES_BACK", 0.0)
    async with family(redis) as home:
        root = await _root(home, "http://127.0.0.1:9/")
        done = await root.say()
        assert (state(done), "elsewhere" in reply(done)) == ("completed", True)
        await _still_usable(root)


async def test_an_agent_that_never_answers_is_given_up_and_its_outcome_is_unknown(redis: Redis) -> None:
    async with family(redis) as home, odd_agent(lambda request: None) as other:
        root = await _root(home, other.url, seconds=0.2)
        done = await root.say()
        assert "The outcome of elsewhere on agent is unknown: no sign of life for 0.2 s" in reply(done)
        assert len(other.heard) == 1
        await _still_usable(root)


async def test_a_decision_that_may_have_arrived_elsewhere_is_not_sent_again(redis: Redis) -> None:
    def answer(request: Json) -> bytes:
        if "taskId" in request["params"].get("message", {}):
            return b""  # the connection ends
        return result(request, task("input-required", question("d1", "delete_file", path="/tmp/x")))

    async with family(redis) as home, odd_agent(answer) as other:
        root = await _root(home, other.url)
        await root.say()
        doubtful = await root.decide(batch(d1="approve"))
        assert [name for _, name in a2a03.asked(doubtful)] == ["sayso_outcome_unknown"]
        decisions = [r for r in other.heard if "taskId" in r["params"].get("message", {})]
        assert len(decisions) == 1
