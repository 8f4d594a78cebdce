"""Calls to real MCP servers, over each transport, and what happens to them when servers come and go."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sayso_runtime.tools.outcome import NotSent, OutcomeUnknown

TRANSPORTS = ["http", "sse", "stdio"]
REFUND = {"order_id": "A-1", "amount": 20}


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_call_runs_once_and_its_answer_is_what_the_server_said(
    counting: Any, connect: Any, transport: str
) -> None:
    server = counting(transport)
    connection = await connect(server.settings())

    answer = await connection.call("refund", REFUND)

    assert answer["content"] == [{"type": "text", "text": "refunded 20 for A-1"}]
    assert answer["isError"] is False
    assert [(line["tool"], line["args"]) for line in server.executions()] == [("refund", REFUND)]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_error_of_the_tool_is_a_result(counting: Any, connect: Any, transport: str) -> None:
    server = counting(transport)
    connection = await connect(server.settings())

    failed = await connection.call("broken", {"order_id": "A-1"})
    unknown = await connection.call("no_such_tool", {})

    assert failed["isError"] is True
    assert unknown["isError"] is True
    assert "no_such_tool" in unknown["content"][0]["text"]
    assert len(server.executions()) == 1


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_many_calls_share_one_session(counting: Any, connect: Any, transport: str) -> None:
    server = counting(transport)
    connection = await connect(server.settings())

    answers = await asyncio.gather(*(connection.call("get_order", {"order_id": str(n)}) for n in range(20)))

    assert [answer["structuredContent"]["order_id"] for answer in answers] == [str(n) for n in range(20)]
    assert len(server.executions()) == 20


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_no_answer_in_time_leaves_the_outcome_unknown_and_the_session_usable(
    counting: Any, connect: Any, transport: str
) -> None:
    server = counting(transport)
    connection = await connect(server.settings())

    with pytest.raises(OutcomeUnknown, match=r"slow on shop/orders.*no answer within 0.3 s"):
        await connection.call("slow", {"seconds": 60}, 0.3)

    assert [line["tool"] for line in server.executions()] == ["slow"]
    assert (await connection.call("get_order", {"order_id": "A-1"}))["isError"] is False


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_server_killed_in_the_middle_of_a_call_leaves_its_outcome_unknown(
    counting: Any, connect: Any, wait_until: Any, transport: str
) -> None:
    server = counting(transport)
    connection = await connect(server.settings())
    call = asyncio.create_task(connection.call("slow", {"seconds": 60}))
    await wait_until(lambda: bool(server.executions()))

    server.kill()

    with pytest.raises(OutcomeUnknown, match="after the request was sent"):
        await call


async def test_a_server_process_killed_in_the_middle_of_a_call_leaves_its_outcome_unknown_and_is_started_again(
    counting: Any, connect: Any, wait_until: Any
) -> None:
    import os
    import signal

    server = counting("stdio")
    connection = await connect(server.settings())
    call = asyncio.create_task(connection.call("slow", {"seconds": 60}))
    await wait_until(lambda: bool(server.executions()))

    os.kill(server.executions()[0]["pid"], signal.SIGKILL)

    with pytest.raises(OutcomeUnknown, match="after the request was sent"):
        await call
    assert (await connection.call("refund", REFUND))["isError"] is False
    assert [line["tool"] for line in server.executions()] == ["slow", "refund"]


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_server_restarted_between_calls_is_called_again_and_runs_each_call_once(
    counting: Any, connect: Any, transport: str
) -> None:
    server = counting(transport)
    connection = await connect(server.settings())
    await connection.call("refund", REFUND)

    server.kill()
    server.start()
    again = await connection.call("refund", REFUND)

    assert again["isError"] is False
    assert len(server.executions()) == 2


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_call_to_a_server_that_is_down_is_not_sent_and_the_error_says_where_and_what_to_do(
    counting: Any, connect: Any, wait_until: Any, transport: str
) -> None:
    server = counting(transport)
    connection = await connect(server.settings())
    server.kill()

    with pytest.raises(NotSent, match=rf"shop/orders .http://127.0.0.1:{server.port}/.*Check that the server runs"):
        await connection.call("refund", REFUND)

    assert connection.status != "connected"
    server.start()
    await wait_until(lambda: connection.connected)
    assert server.executions() == []


async def test_a_server_that_was_never_there_does_not_stop_the_start(connect: Any, counting: Any) -> None:
    server = counting("stdio")  # only for its settings
    connection = await connect(server.settings().model_copy(update={"command": ("/no/such/program",)}))

    assert not connection.connected
    assert "there is no program '/no/such/program'" in connection.status
    with pytest.raises(NotSent, match="there is no program"):
        await connection.call("refund", REFUND)


async def test_a_tool_that_comes_later_is_seen(counting: Any, connect: Any, wait_until: Any) -> None:
    server = counting("http")
    connection = await connect(server.settings())
    assert "later" not in connection.tools

    await connection.call("reveal", {"name": "later"})

    await wait_until(lambda: "later" in connection.tools)
    assert (await connection.call("later", {"order_id": "A-1"}))["isError"] is False


async def test_a_server_gone_while_nothing_is_called_is_noticed_and_found_again(
    counting: Any, connect: Any, wait_until: Any
) -> None:
    server = counting("http")
    connection = await connect(server.settings())

    server.kill()
    await wait_until(lambda: not connection.connected)
    server.start()
    await wait_until(lambda: connection.connected)

    assert connection.status == "connected"


async def test_the_hints_of_a_server_are_kept(counting: Any, connect: Any) -> None:
    connection = await connect(counting("http").settings())

    assert connection.tools["get_order"].annotations == {"readOnlyHint": True}
    assert connection.tools["refund"].input_schema["required"] == ["order_id", "amount"]


async def test_closing_ends_a_call_under_way_with_an_unknown_outcome(
    counting: Any, connect: Any, wait_until: Any
) -> None:
    server = counting("http")
    connection = await connect(server.settings())
    call = asyncio.create_task(connection.call("slow", {"seconds": 60}))
    await wait_until(lambda: bool(server.executions()))

    await connection.close()

    with pytest.raises(OutcomeUnknown):
        await call
    with pytest.raises(NotSent, match="shutting down"):
        await connection.call("refund", REFUND)


async def test_a_cancelled_call_stays_cancelled_and_does_not_hurt_the_session(
    counting: Any, connect: Any, wait_until: Any
) -> None:
    server = counting("http")
    connection = await connect(server.settings())
    call = asyncio.create_task(connection.call("slow", {"seconds": 60}))
    await wait_until(lambda: bool(server.executions()))

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await connection.call("get_order", {"order_id": "A-1"}))["isError"] is False


async def test_an_answer_larger_than_ten_mebibytes_is_dropped_and_said_to_have_run(counting: Any, connect: Any) -> None:
    server = counting("http")
    connection = await connect(server.settings())

    answer = await connection.call("large", {"size": 11 * 1024 * 1024})

    assert answer["isError"] is True
    assert "The tool ran" in answer["content"][0]["text"]
    assert (await connection.call("large", {"size": 1024 * 1024}))["isError"] is False
