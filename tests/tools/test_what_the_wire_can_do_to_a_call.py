"""A server that misbehaves on the wire: is the call a result, not sent, or of unknown outcome?"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sayso_runtime.tools.fence import FenceLost, fence
from sayso_runtime.tools.outcome import NotSent, OutcomeUnknown


@pytest.mark.parametrize("status", ["500 Internal Server Error", "502 Bad Gateway", "503 Busy", "504 Late", "408 Late"])
async def test_a_server_error_after_the_request_leaves_the_outcome_unknown(
    raw: Any, connect: Any, settings_of: Any, status: str
) -> None:
    async def on_call(message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await raw.reply(writer, status)

    raw.on_call = on_call
    connection = await connect(settings_of(raw))

    with pytest.raises(OutcomeUnknown, match=f"HTTP {status[:3]}"):
        await connection.call("refund", {"amount": 1})

    assert len(raw.calls) == 1


async def test_a_server_that_commits_and_then_drops_the_connection_leaves_the_outcome_unknown(
    raw: Any, connect: Any, settings_of: Any
) -> None:
    committed: list[dict[str, Any]] = []

    async def on_call(message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        committed.append(message["params"])
        writer.transport.abort()

    raw.on_call = on_call
    connection = await connect(settings_of(raw))

    with pytest.raises(OutcomeUnknown, match="after the request was sent"):
        await connection.call("refund", {"amount": 1})

    assert committed == [{"name": "refund", "arguments": {"amount": 1}}]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"content-type: application/json\r\ncontent-length: 900\r\n\r\n{", id="json-cut"),
        pytest.param(b"content-type: text/event-stream\r\ncontent-length: 900\r\n\r\nevent:", id="stream-cut"),
        pytest.param(b"content-type: application/json\r\ncontent-length: 2\r\n\r\n{}", id="not-json-rpc"),
        pytest.param(b"content-type: application/json\r\ncontent-length: 3\r\n\r\nno!", id="not-json"),
        pytest.param(b"content-type: text/html\r\ncontent-length: 5\r\n\r\n<html", id="a-web-page"),
        pytest.param(b"content-length: 0\r\n\r\n", id="nothing"),
        pytest.param(
            b"content-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}", id="compressed"
        ),
    ],
)
async def test_an_answer_that_cannot_be_read_leaves_the_outcome_unknown_and_the_session_usable(
    raw: Any, connect: Any, settings_of: Any, body: bytes
) -> None:
    async def on_call(message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + body)
        await writer.drain()

    raw.on_call = on_call
    connection = await connect(settings_of(raw))

    with pytest.raises(OutcomeUnknown):
        await connection.call("refund", {"amount": 1})

    raw.on_call = raw.answer_text
    assert (await connection.call("refund", {"amount": 1}))["content"][0]["text"] == "done"
    assert len(raw.calls) == 2


async def test_an_accepted_request_without_an_answer_leaves_the_outcome_unknown(
    raw: Any, connect: Any, settings_of: Any
) -> None:
    async def on_call(message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await raw.reply(writer, "202 Accepted")

    raw.on_call = on_call
    connection = await connect(settings_of(raw))

    with pytest.raises(OutcomeUnknown, match="HTTP 202"):
        await connection.call("refund", {"amount": 1})


@pytest.mark.parametrize("code", [-32602, -32603, -32000])
async def test_a_json_rpc_error_is_a_result(raw: Any, connect: Any, settings_of: Any, code: int) -> None:
    async def on_call(message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await raw.answer(writer, message, error={"code": code, "message": "no such order"})

    raw.on_call = on_call
    connection = await connect(settings_of(raw))

    answer = await connection.call("refund", {"amount": 1})

    assert answer == {"content": [{"type": "text", "text": "no such order"}], "isError": True}
    assert len(raw.calls) == 1


async def test_a_refusal_by_http_status_is_a_result_that_names_it(raw: Any, connect: Any, settings_of: Any) -> None:
    async def on_call(message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await raw.reply(writer, "403 Forbidden")

    raw.on_call = on_call
    connection = await connect(settings_of(raw))

    answer = await connection.call("refund", {"amount": 1})

    assert answer["isError"] is True
    assert "HTTP 403" in answer["content"][0]["text"]


async def test_a_forgotten_session_is_opened_again_and_the_call_sent_once_more_but_not_twice(
    raw: Any, connect: Any, settings_of: Any
) -> None:
    async def forget(message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await raw.reply(writer, "404 Not Found")

    async def forget_once(message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        raw.on_call = raw.answer_text
        await forget(message, writer)

    connection = await connect(settings_of(raw))
    raw.on_call = forget_once
    assert (await connection.call("refund", {"amount": 1}))["content"][0]["text"] == "done"
    assert len(raw.calls) == 2

    raw.on_call = forget
    with pytest.raises(NotSent, match="does not know this session"):
        await connection.call("refund", {"amount": 1})
    assert len(raw.calls) == 4


@pytest.mark.parametrize("status", ["301 Moved", "307 Temporary", "308 Permanent"])
async def test_a_redirect_to_another_server_is_not_followed_and_nothing_ran(
    raw: Any, connect: Any, settings_of: Any, status: str
) -> None:
    async def on_call(message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await raw.reply(writer, status, b"", "location: http://elsewhere.example/mcp?token=hidden")

    raw.on_call = on_call
    connection = await connect(settings_of(raw))

    with pytest.raises(NotSent, match=r"redirected to http://elsewhere.example/mcp") as refused:
        await connection.call("refund", {"amount": 1})

    assert "hidden" not in str(refused.value)


async def test_a_redirect_that_may_mean_done_leaves_the_outcome_unknown(
    raw: Any, connect: Any, settings_of: Any
) -> None:
    async def on_call(message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await raw.reply(writer, "303 See Other", b"", "location: /done")

    raw.on_call = on_call
    connection = await connect(settings_of(raw))

    with pytest.raises(OutcomeUnknown, match="HTTP 303"):
        await connection.call("refund", {"amount": 1})


async def test_a_silent_server_is_waited_for_only_as_long_as_its_time_out(
    raw: Any, connect: Any, settings_of: Any
) -> None:
    asked = asyncio.Event()

    async def on_call(message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await asked.wait()

    raw.on_call = on_call
    connection = await connect(settings_of(raw))

    with pytest.raises(OutcomeUnknown, match=r"no answer within 0\.2 s"):
        await connection.call("refund", {"amount": 1}, 0.2)
    asked.set()


async def test_a_body_without_end_is_cut_off_and_does_not_end_the_session(
    raw: Any, connect: Any, settings_of: Any
) -> None:
    async def on_call(message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
        while True:
            writer.write(b" " * 1_000_000)
            await writer.drain()

    raw.on_call = on_call
    connection = await connect(settings_of(raw))

    answer = await connection.call("refund", {"amount": 1})

    assert answer["isError"] is True
    assert "larger than" in answer["content"][0]["text"]
    raw.on_call = raw.answer_text
    assert (await connection.call("refund", {"amount": 1}))["content"][0]["text"] == "done"


async def test_a_lost_lease_stops_a_call_before_its_first_byte(raw: Any, connect: Any, settings_of: Any) -> None:
    connection = await connect(settings_of(raw))

    def over() -> None:
        raise RuntimeError("turn 7 is over")

    token = fence.set(over)
    try:
        with pytest.raises(FenceLost, match="turn 7 is over"):
            await connection.call("refund", {"amount": 1})
    finally:
        fence.reset(token)

    assert raw.calls == []
    assert "content" in await connection.call("refund", {"amount": 1})


async def test_the_lease_is_looked_at_after_the_connection_was_made(raw: Any, connect: Any, settings_of: Any) -> None:
    """Connecting can take long: a look before it would be worth nothing."""
    connection = await connect(settings_of(raw))
    seen: list[int] = []
    token = fence.set(lambda: seen.append(len(raw.calls)))
    try:
        await connection.call("refund", {"amount": 1})
    finally:
        fence.reset(token)

    assert seen == [0]


async def test_all_pages_of_a_list_are_read_and_one_without_end_is_refused(
    raw: Any, connect: Any, settings_of: Any
) -> None:
    raw.pages = [[{"name": f"tool_{n}", "inputSchema": {"type": "object"}}] for n in range(3)]
    connection = await connect(settings_of(raw))
    assert list(connection.tools) == ["tool_0", "tool_1", "tool_2"]

    raw.endless_pages = True
    endless = await connect(settings_of(raw, key="shop/endless"))
    assert "its list of tools has no end" in endless.status


async def test_headers_come_from_variables_and_stay_out_of_errors(raw: Any, connect: Any, settings_of: Any) -> None:
    headers = [{"name": "Authorization", "from_env": "ORDERS_TOKEN"}, {"name": "X-Shop", "value": "one"}]
    connection = await connect(settings_of(raw, headers=headers), {"ORDERS_TOKEN": "Bearer s3cret"})
    await connection.call("refund", {"amount": 1})
    assert raw.headers[0]["authorization"] == "Bearer s3cret"
    assert raw.headers[0]["x-shop"] == "one"

    await raw.stop()
    with pytest.raises(NotSent) as refused:
        await connection.call("refund", {"amount": 1})
    assert "s3cret" not in str(refused.value)


async def test_a_missing_variable_is_named(raw: Any, connect: Any, settings_of: Any) -> None:
    headers = [{"name": "Authorization", "from_env": "ORDERS_TOKEN"}]
    connection = await connect(settings_of(raw, headers=headers))

    assert "header Authorization needs the variable ORDERS_TOKEN, which is not set" in connection.status
