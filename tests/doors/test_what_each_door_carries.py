"""The table of docs/doors.md: one test for each row, asked of every door."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from redis.asyncio import Redis

from sayso_runtime.tools.ask_user import AskUserTool
from sayso_runtime.tools.outcome import OutcomeUnknown
from support.agents import call, calls, fails, says
from support.desks import Desk, serving
from support.door_clients import A2A, Agui, Rest, Speaker

DOORS: dict[str, Callable[[Desk], Any]] = {
    "A2A 0.3": lambda desk: A2A(desk, "0.3"),
    "A2A 1.0": lambda desk: A2A(desk, "1.0"),
    "REST": Rest,
    "REST stream": lambda desk: Rest(desk, stream=True),
    "AG-UI": Agui,
}
#: What a door's protocol has no word for; everything else is carried by every door.
CANNOT: dict[str, set[str]] = {
    "test_some_calls_are_decided_now_and_others_later": {"AG-UI"},
    "test_one_call_is_cancelled_and_the_model_hears_that_nobody_decided": {"A2A 0.3", "A2A 1.0"},
    "test_the_result_of_an_unknown_outcome_is_given": {"A2A 0.3", "A2A 1.0"},
    "test_one_word_decides_everything_that_waits": {"REST", "REST stream", "AG-UI"},
}
TWO = calls(call("refund", "c1", order="A"), call("cancel", "c2", order="B"))
ONE = calls(call("refund", "c1", order="A"))

door = pytest.mark.parametrize("door", DOORS)


def can(test: str) -> Any:
    """The doors that carry it."""
    return pytest.mark.parametrize("door", [name for name in DOORS if name not in CANNOT[test]])


def cannot(test: str) -> Any:
    """The doors that do not."""
    return pytest.mark.parametrize("door", sorted(CANNOT[test]))


def speaker(name: str, desk: Desk) -> Speaker:
    made: Speaker = DOORS[name](desk)
    return made


@door
async def test_several_calls_wait_and_each_gets_its_own_verdict_with_its_reason(redis: Redis, door: str) -> None:
    async with serving(Desk(redis, [TWO])) as desk:
        client = speaker(door, desk)
        paused = await client.say("go")
        assert (paused.state, paused.open) == ("paused", {"c1": "refund", "c2": "cancel"})
        done = await client.decide({"c1": ("approve", ""), "c2": ("reject", "keep it, she called")})
        assert done.state == "done"
        assert "Rejected by ada: keep it, she called" in done.text
        assert desk.seen.runs == [("refund", {"order": "A"})]


@can("test_some_calls_are_decided_now_and_others_later")
async def test_some_calls_are_decided_now_and_others_later(redis: Redis, door: str) -> None:
    async with serving(Desk(redis, [TWO, says("Done.")])) as desk:
        client = speaker(door, desk)
        await client.say("go")
        assert list((await client.decide({"c2": ("approve", "")})).open) == ["c1"]
        assert desk.ran() == ["cancel"]
        assert (await client.decide({"c1": ("approve", "")})).text == "Done."


@cannot("test_some_calls_are_decided_now_and_others_later")
async def test_where_all_is_answered_at_once_a_part_is_refused_whole(redis: Redis, door: str) -> None:
    async with serving(Desk(redis, [TWO, says("Done.")])) as desk:
        client = speaker(door, desk)
        await client.say("go")
        part = await client.decide({"c2": ("approve", "")})
        assert (part.state, part.code, "c1" in part.text) == ("refused", "malformed_decision", True)
        assert desk.ran() == []


@can("test_one_call_is_cancelled_and_the_model_hears_that_nobody_decided")
async def test_one_call_is_cancelled_and_the_model_hears_that_nobody_decided(redis: Redis, door: str) -> None:
    async with serving(Desk(redis, [TWO])) as desk:
        client = speaker(door, desk)
        await client.say("go")
        done = await client.decide({"c1": ("cancel", ""), "c2": ("approve", "")})
        assert "Nobody decided" in done.text
        assert "Rejected" not in done.text
        assert desk.ran() == ["cancel"]


@can("test_one_word_decides_everything_that_waits")
async def test_one_word_decides_everything_that_waits(redis: Redis, door: str) -> None:
    async with serving(Desk(redis, [TWO, says("Done.")])) as desk:
        client = DOORS[door](desk)
        await client.say("go")
        assert (await client.uniform("approve")).text == "Done."
        assert sorted(desk.ran()) == ["cancel", "refund"]


@door
async def test_a_value_that_is_wanted_reaches_the_model(redis: Redis, door: str) -> None:
    def colour() -> None:
        """Asks for a colour."""

    script = [calls(call("colour", "q1"))]
    async with serving(Desk(redis, script, tools=[LongRunningFunctionTool(colour)])) as desk:
        client = speaker(door, desk)
        assert (await client.say("go")).open == {"q1": "colour"}
        done = await client.decide({"q1": ("value", {"colour": "red"})})
        assert (done.state, "red" in done.text) == ("done", True)


@door
async def test_a_question_of_the_agent_is_answered(redis: Redis, door: str) -> None:
    script = [calls(call("ask_user", "q1", questions=[{"question": "Which?", "choices": ["A", "B"]}]))]
    async with serving(Desk(redis, script, tools=[AskUserTool()])) as desk:
        client = speaker(door, desk)
        assert (await client.say("go")).open == {"q1": "ask_user"}
        both = await client.decide({"q1": ("value", {"ask_user_answers": [{"answer": ["A", "B"]}]})})
        assert (both.state, both.code, "Which?" in both.text) == ("refused", "malformed_decision", True)
        done = await client.decide({"q1": ("value", {"ask_user_answers": [{"answer": ["neither"]}]})})
        assert '{"question": "Which?", "answer": ["neither"]}' in done.text


@door
async def test_a_message_while_paused_calls_no_model_and_says_what_waits(redis: Redis, door: str) -> None:
    async with serving(Desk(redis, [TWO, says("Done.")])) as desk:
        client = speaker(door, desk)
        await client.say("go")
        heard = await client.say("Approved, all of it")
        if door.startswith("A2A"):
            assert (heard.state, list(heard.open)) == ("paused", ["c1", "c2"])
        else:
            assert (heard.state, heard.code) == ("refused", "paused")
            assert all(word in heard.text for word in ("refund", "cancel"))
        assert (desk.seen.models, desk.ran()) == (1, [])


@door
async def test_a_late_decision_hears_what_became_of_the_call(redis: Redis, door: str) -> None:
    async with serving(Desk(redis, [ONE, says("Done.")])) as desk:
        client = speaker(door, desk)
        await client.say("go")
        await client.decide({"c1": ("reject", "no")})
        late = await client.decide({"c1": ("approve", "")})
        assert (late.state, late.code) == ("refused", "already_decided")
        assert all(word in late.text for word in ("rejected", "ada", "no"))
        assert desk.ran() == []


@door
async def test_an_unknown_id_refuses_all_of_a_decision(redis: Redis, door: str) -> None:
    async with serving(Desk(redis, [ONE, says("Done.")])) as desk:
        client = speaker(door, desk)
        await client.say("go")
        wrong = await client.decide({"c1": ("approve", ""), "c9": ("approve", "")})
        assert (wrong.state, wrong.code) == ("refused", "unknown_call")
        assert desk.ran() == []


@door
async def test_what_is_sent_again_under_its_id_gets_the_first_answer(redis: Redis, door: str) -> None:
    async with serving(Desk(redis, [ONE, says("Done."), says("Again.")])) as desk:
        client = speaker(door, desk)
        await client.say("go")
        answers = [await client.decide({"c1": ("approve", "")}, key="same") for _ in range(3)]
        assert [answer.text for answer in answers] == ["Done."] * 3
        assert (desk.ran(), desk.seen.models) == (["refund"], 2)


@door
async def test_after_the_model_failed_the_same_decision_goes_on(redis: Redis, door: str) -> None:
    async with serving(Desk(redis, [TWO, fails(text="Recovered.")])) as desk:
        client = speaker(door, desk)
        await client.say("go")
        verdicts = {"c1": ("approve", ""), "c2": ("reject", "no")}
        failed = await client.decide(verdicts)
        assert (failed.state, len(failed.open)) == ("paused", 1)
        assert (await client.decide(verdicts)).text == "Recovered."
        assert desk.ran() == ["refund"]


def doubtful(redis: Redis) -> Desk:
    """A desk whose refund is sent, and never heard of again the first time."""
    desk = Desk(redis, [ONE], lease=3.0)

    def refund(order: str) -> dict[str, str]:
        """Refunds an order."""
        desk.seen.ran("refund", order=order)
        if len(desk.seen.runs) == 1:
            raise OutcomeUnknown("refund", "function", "the line went dead")
        return {"done": order}

    tool = desk.replica.engine._runner.app.root_agent.tools[1]
    tool.func = refund
    tool.server, tool.endpoint, tool.tool, tool.timeout_seconds = "function", "function:shop:refund", "refund", 0.01
    return desk


async def settle(client: Speaker, verdict: tuple[str, Any]) -> Any:
    """Until nobody can be sending it any more, settling is refused."""
    await client.say("go")
    heard = await client.decide({"c1": ("approve", "")})
    (name,) = heard.open
    assert name == "c1:outcome:1"
    while (heard := await client.decide({name: verdict})).code == "paused":
        assert "may still be under way" in heard.text
    return heard


@door
async def test_an_unknown_outcome_is_run_again_only_by_its_name(redis: Redis, door: str) -> None:
    async with serving(doubtful(redis)) as desk:
        client = speaker(door, desk)
        done = await settle(client, ("approve", ""))
        assert done.state == "done"
        assert desk.ran() == ["refund", "refund"]


@can("test_the_result_of_an_unknown_outcome_is_given")
async def test_the_result_of_an_unknown_outcome_is_given(redis: Redis, door: str) -> None:
    async with serving(doubtful(redis)) as desk:
        client = speaker(door, desk)
        done = await settle(client, ("result", {"done": "the bank says so"}))
        assert (done.state, "the bank says so" in done.text) == ("done", True)
        assert desk.ran() == ["refund"]


def test_the_table_in_the_documentation_says_what_the_tests_say() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "doors.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    (columns,) = [row[1:-1] for row in rows if row[-1] == "test"]
    rows = [row for row in rows if row[-1].startswith("`test_")]
    assert columns == [name for name in DOORS if name != "REST stream"]
    tests = {name for name in globals() if name.startswith("test_")}
    told = {}
    for row in rows:
        name = row[-1].strip("`")
        assert name in tests
        told[name] = {column for column, cell in zip(columns, row[1:-1], strict=True) if re.match(r"no\b", cell)}
    assert told == {name: CANNOT.get(name, set()) - {"REST stream"} for name in told}
    helpers = {
        "test_the_table_in_the_documentation_says_what_the_tests_say",
        "test_where_all_is_answered_at_once_a_part_is_refused_whole",
    }
    assert set(told) == tests - helpers
