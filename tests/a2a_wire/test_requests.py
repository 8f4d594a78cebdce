"""Requests as they come from outside: envelopes, ids, limits, and who is answered at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sayso_approvals.refusals import Refusal
from sayso_runtime.interfaces import asgi
from support.scripted_service import Turn

HELLO = {"message": {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "hello"}]}}
HELLO_10 = {"message": {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "hello"}]}}
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def door(lasting_door: Any) -> Any:
    """The module's server, with nothing left of the test before."""
    service = lasting_door.service
    for kept in (service.script, service.tasks, service.inbound, service.answered):
        kept.clear()
    return lasting_door


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("call_id", ["7", 7, 0, -1, 1.5, None, "", "Ω"])
@pytest.mark.parametrize(("method", "params"), [("message/send", HELLO), ("GetTask", {"id": "nope"}), ("nope", {})])
async def test_the_id_comes_back_as_it_was_sent(door: Any, call_id: Any, method: str, params: Any) -> None:
    door.service.on("hello", Turn(text="Hi."))
    body = (await door.rpc(method, params, id=call_id)).json()
    assert body["id"] == call_id
    assert type(body["id"]) is type(call_id)
    assert body["jsonrpc"] == "2.0"


async def test_no_id_comes_back_where_none_was_sent(door: Any) -> None:
    door.service.on("hello", Turn(text="Hi."))
    for method, params in (("message/send", HELLO), ("nope", {})):
        response = await door.http.post(door.url, json={"jsonrpc": "2.0", "method": method, "params": params})
        assert "id" not in response.json()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":NaN}', -32700),
        (b"[" * 100_000, -32700),
        (b"\xff", -32700),
        (b"null", -32600),
        (b"7", -32600),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"x"}}]', -32600),
        (b'{"id":1,"method":"message/send"}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"message/send"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"message/send"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"message/send"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"message/nope"}', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"message/send"}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tasks/resubscribe","params":{"id":"x"}}', -32004),
        (b'{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":"x"}}', -32004),
        (b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}', -32004),
        (b'{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set","params":{}}', -32003),
        (b'{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig","params":{}}', -32003),
        (b'{"jsonrpc":"2.0","id":1,"method":"agent/getAuthenticatedExtendedCard","params":{}}', -32007),
    ],
)
async def test_a_wrong_envelope_has_its_own_code_at_200(door: Any, body: bytes, code: int) -> None:
    response = await door.http.post(door.url, content=body, headers=JSON)
    assert response.status_code == 200
    assert response.json()["error"]["code"] == code
    assert door.service.inbound == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"message": None}, "params.message"),
        ({"message": "hello"}, "params.message"),
        ({"role": "agent"}, "params.message.role"),
        ({"role": ["user"]}, "params.message.role"),
        ({"messageId": None}, "params.message.messageId"),
        ({"messageId": ""}, "params.message.messageId"),
        ({"messageId": 7}, "params.message.messageId"),
        ({"contextId": "a\nb"}, "params.message.contextId"),
        ({"contextId": "x" * 257}, "params.message.contextId"),
        ({"contextId": {}}, "params.message.contextId"),
        ({"taskId": 1}, "params.message.taskId"),
        ({"metadata": []}, "params.message.metadata"),
        ({"parts": []}, "params.message.parts"),
        ({"parts": {}}, "params.message.parts"),
        ({"parts": ["hello"]}, "params.message.parts[0]"),
        ({"parts": [{"text": "hello"}]}, "params.message.parts[0].kind"),
        ({"parts": [{"kind": "text", "text": None}]}, "params.message.parts[0].text"),
        ({"parts": [{"kind": "data", "data": "approve"}]}, "params.message.parts[0].data"),
        ({"parts": [{"kind": "text", "text": "a", "metadata": 1}]}, "params.message.parts[0].metadata"),
        ({"configuration": {"blocking": "no"}}, "params.configuration.blocking"),
        ({"configuration": {"historyLength": 1.5}}, "params.configuration.historyLength"),
        ({"configuration": []}, "params.configuration"),
    ],
)
@pytest.mark.parametrize(("method", "status"), [("message/send", 200), ("message/stream", 400)])
async def test_wrong_params_are_named_by_their_path(
    door: Any, change: dict[str, Any], path: str, method: str, status: int
) -> None:
    outer = {key: value for key, value in change.items() if key in ("message", "configuration")}
    inner = {key: value for key, value in change.items() if key not in outer}
    params = {"message": HELLO["message"] | inner} | outer
    response = await door.rpc(method, params)
    assert response.status_code == status
    error = response.json()["error"]
    assert error["code"] == -32602
    assert error["message"].startswith(path + " ")
    assert door.service.inbound == []


@pytest.mark.parametrize(
    ("method", "part"),
    [
        ("message/send", {"kind": "file", "file": {"uri": "file:///etc/passwd"}}),
        ("SendMessage", {"raw": "AAAA"}),
        ("SendMessage", {"url": "http://x"}),
    ],
)
async def test_files_are_not_taken(door: Any, method: str, part: dict[str, Any]) -> None:
    base = HELLO if method == "message/send" else HELLO_10
    response = await door.rpc(method, {"message": base["message"] | {"parts": [part]}})
    assert response.json()["error"]["code"] == -32005


@pytest.mark.parametrize(
    "part", [{}, {"text": "a", "data": {"decision_type": "approve"}}, {"text": 1}, {"data": 1, "metadata": 1}]
)
async def test_a_1_0_part_has_exactly_one_content(door: Any, part: dict[str, Any]) -> None:
    response = await door.rpc("SendMessage", {"message": HELLO_10["message"] | {"parts": [part]}})
    assert response.json()["error"]["code"] == -32602
    assert door.service.inbound == []


@pytest.mark.parametrize(
    ("method", "version", "taken"),
    [
        ("SendMessage", None, True),
        ("SendMessage", "1.0", True),
        ("SendMessage", "1.2.3", True),
        ("SendMessage", "0.3", True),
        ("SendMessage", "2.0", False),
        ("SendMessage", "latest", False),
        ("message/send", "1.0", True),
        ("message/send", "0.3.0", True),
        ("message/send", "", True),
        ("message/send", "3", False),
    ],
)
async def test_the_method_tells_the_generation_and_the_header_only_has_to_be_known(
    door: Any, method: str, version: str | None, taken: bool
) -> None:
    door.service.on("hello", Turn(text="Hi."))
    params = HELLO if method == "message/send" else HELLO_10
    headers = {} if version is None else {"A2A-Version": version}
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    body = (await door.http.post(door.url, json=request, headers=headers)).json()
    assert ("result" in body) is taken
    if not taken:
        assert body["error"]["code"] == -32009


async def test_a_body_beyond_the_limit_is_413_announced_or_not(door: Any) -> None:
    async def drip() -> Any:
        for _ in range(11):
            yield b" " * 1024 * 1024

    announced = await door.http.post(door.url, content=b" " * (asgi.MAX_BODY + 1), headers=JSON)
    chunked = await door.http.post(door.url, content=drip(), headers=JSON)
    for response in (announced, chunked):
        assert response.status_code == 413
        assert response.json()["error"]["code"] == -32600


async def test_a_body_that_does_not_come_is_408(door: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    monkeypatch.setattr(asgi, "BODY_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
    assert (await reader.readline()).startswith(b"HTTP/1.1 408")
    writer.close()
    await writer.wait_closed()


async def test_large_messages_within_the_limit_are_taken_whole(door: Any) -> None:
    words = "ä" * 2_000_000
    door.service.on(words, Turn(text="long"))
    params = {"message": HELLO["message"] | {"parts": [{"kind": "text", "text": words}]}}
    assert (await door.rpc("message/send", params)).json()["result"]["status"]["state"] == "completed"


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_what_a_foreign_page_can_post_without_asking_is_refused(door: Any, content_type: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": HELLO})
    response = await door.http.post(door.url, content=body, headers={"content-type": content_type})
    assert response.status_code == 415
    assert door.service.inbound == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://localhost:3000"}, 200),
        ({"origin": "http://127.0.0.1"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://localhost.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example:80"}, 403),
        ({"host": "evil.example@127.0.0.1"}, 200),
        ({"host": "localhost:1"}, 200),
        ({"host": "[::1]:1"}, 200),
    ],
)
async def test_the_person_at_this_machine_is_told_from_pages_of_other_sites(
    door: Any, headers: dict[str, str], status: int
) -> None:
    door.service.on("hello", Turn(text="Hi."))
    request = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": HELLO}
    response = await door.http.post(door.url, json=request, headers=headers)
    assert response.status_code == status
    assert len(door.service.inbound) == (1 if status == 200 else 0)


@pytest.mark.parametrize("client", [("10.0.0.7", 1), ("::ffff:10.0.0.7", 1), None, ("", 0)])
async def test_nobody_from_another_machine_is_the_person_at_this_one(client: Any) -> None:
    from sayso_runtime.interfaces.identity import NotIdentified, loopback_user

    identify = loopback_user("ada")
    assert identify({"client": ("::ffff:127.0.0.1", 1), "headers": [(b"host", b"localhost")]}) == "ada"
    with pytest.raises(NotIdentified):
        identify({"client": client, "headers": [(b"host", b"localhost")]})


async def test_identity_is_never_taken_from_the_message(door: Any) -> None:
    door.service.on("hello", Turn(text="Hi."))
    message = HELLO["message"] | {"metadata": {"requester": "root", "user": "root"}}
    await door.rpc("message/send", {"message": message, "requester": "root"})
    assert door.service.inbound[-1].requester == "ada"


async def test_two_hundred_requests_on_one_connection_leave_nothing_behind(door: Any) -> None:
    import asyncio

    door.service.on("hello", Turn(text="Hi."))
    door.service.on("no", Turn(refuses=Refusal("busy", "later")))
    before = len(asyncio.all_tasks())
    for number in range(200):
        method = "message/stream" if number % 2 else "message/send"
        await door.rpc(method, HELLO)
    assert len(door.service.answered) == 200
    assert len(asyncio.all_tasks()) <= before + 1
