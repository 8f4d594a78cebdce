"""Redis that is gone, restarting, full or forbidding: one refusal that names it, nothing half done, no second try."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

import pytest
from redis.asyncio import Redis

from ledger.desk import Desk, choice, completion, refused
from sayso_approvals.connect import connect
from sayso_approvals.ledger import Ledger
from sayso_approvals.records import AgentId, Begin, Commit, Journal
from sayso_approvals.refusals import Refusal
from sayso_approvals.seal import new_key
from sayso_approvals.server import RedisServer, find_redis_servers, free_port


@pytest.fixture(params=find_redis_servers(), ids=str)
async def own(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RedisServer]:
    """A Redis that a test may end."""
    server = RedisServer(tmp_path / "redis", port=free_port(), binary=request.param)
    await server.start()
    yield server
    await server.stop()


async def test_every_step_says_which_redis_is_gone_and_never_its_password(own: RedisServer) -> None:
    client = connect(f"redis://ann:s3cret@127.0.0.1:{own.port}/0")
    await own.stop()
    ledger = Ledger(client, AgentId("shop", "desk"), new_key())
    for step in (
        ledger.resolve("s1"),
        ledger.take("s1", requester="ann"),
        ledger.events("s1"),
        ledger.task("t1"),
        ledger.answer_to("s1", "m1"),
        ledger.answered("s1", "d1"),
        ledger.open_count(),
        ledger.calls(),
        ledger.view("p1"),
        ledger.work(),
        ledger.wait_for_work("r1", 1),
        ledger.expire_due(),
        ledger.happened(),
        ledger.settle("p1", "c1", action="retry", result=None, by="b", reason="", attempt=1),
    ):
        refusal = await refused(step, "store_unreachable")
        assert f"127.0.0.1:{own.port}" in refusal.detail
        assert "s3cret" not in refusal.detail
    await client.aclose()


async def test_what_was_confirmed_is_there_after_redis_was_killed(own: RedisServer) -> None:
    client = connect(own.url)
    desk = Desk(client)
    ledger = desk.replica()
    turn, (view,) = await desk.claimed(ledger)
    assert (await ledger.begin(turn, view))[0] is Begin.RUN
    await own.kill()
    await refused(ledger.finish(turn, view, "1", is_error=False), "store_unreachable")
    await own.start()
    (after,) = await ledger.view(view.pause.pause_id)
    assert after.intact
    assert after.state.journal is Journal.STARTED
    assert await ledger.finish(turn, view, "1", is_error=False), "the scripts are loaded anew, the start still counts"
    await ledger.commit(turn, Commit(completions=(completion(turn, view),), release=True))
    await client.aclose()


async def test_a_step_whose_answer_got_lost_is_not_tried_again(own: RedisServer) -> None:
    """Begin twice would find its own start, and a call that never ran would be in doubt; so once is once."""
    inner = connect(own.url)
    desk = Desk(inner)
    turn, (view,) = await desk.claimed(desk.replica())
    requests: list[bytes] = []

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes everything on, but loses the answer to the first script and with it the connection."""
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", own.port)
        while data := await reader.read(65536):
            up_writer.write(data)
            answer = await up_reader.read(65536)
            if b"EVAL" in data and b"NOSCRIPT" not in answer:
                requests.append(data)
                break
            writer.write(answer)
        for one in (writer, up_writer):
            one.close()

    proxy = await asyncio.start_server(cut, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    outer = connect(f"redis://127.0.0.1:{port}/0")
    await refused(Ledger(outer, desk.agent, desk.key).begin(turn, view), "store_unreachable")
    assert len(requests) == 1
    (after,) = await desk.replica().view(view.pause.pause_id)
    assert after.state.journal is Journal.STARTED
    await outer.aclose()
    await inner.aclose()
    proxy.close()
    await proxy.wait_closed()


async def test_a_redis_that_was_told_to_forget_its_scripts_is_told_them_again(desk: Desk, ledger: Ledger) -> None:
    (view,) = await desk.paused(ledger)
    await desk.redis.script_flush()
    await ledger.decide([choice(view)], by="ann", via="chat", decision_id="d1")


async def test_a_full_redis_refuses_and_changes_nothing(own: RedisServer) -> None:
    client = connect(own.url)
    desk = Desk(client)
    (view,) = await desk.paused(desk.replica())
    await client.config_set("maxmemory", "1")
    refusal = await refused(desk.decide(desk.replica(), view), "store_unreachable")
    assert "memory" in refusal.detail
    await client.config_set("maxmemory", "0")
    assert (await desk.replica().view(view.pause.pause_id))[0].open
    await client.aclose()


async def test_a_replica_of_a_redis_refuses_and_says_why(own: RedisServer) -> None:
    client = connect(own.url)
    await client.replicaof("127.0.0.1", "1")
    ledger = Ledger(client, AgentId("shop", "desk"), new_key())
    refusal = await refused(ledger.take("s1", requester="ann"), "store_unreachable")
    assert "replica" in refusal.detail
    await client.aclose()


async def test_a_redis_user_held_to_one_agent_can_do_all_of_it_and_nothing_else(own: RedisServer) -> None:
    admin = connect(own.url)
    desk = Desk(admin)
    prefix, wake = desk.replica()._keys.prefix, desk.replica()._keys.wake
    await admin.execute_command("ACL", "SETUSER", "desk", "on", ">pw", f"~{prefix}*", f"~{wake}", "+@all", "-@admin")
    mine = connect(f"redis://desk:pw@127.0.0.1:{own.port}/0")
    desk.redis = mine
    turn, (view,) = await desk.claimed(desk.replica())
    assert (await desk.replica().begin(turn, view))[0] is Begin.RUN
    other = Ledger(mine, AgentId("shop", "other"), new_key())
    assert "refused" in (await refused(other.take("s1", requester="ann"), "store_unreachable")).detail
    await mine.aclose()
    await admin.aclose()


async def test_a_client_that_does_not_decode_is_a_mistake(redis_url: str) -> None:
    raw = Redis.from_url(redis_url)
    with pytest.raises(ValueError, match="decodes"):
        Ledger(raw, AgentId("shop", "desk"), new_key())
    await raw.aclose()


class Swallowing:
    """Stands before a Redis; connections made while `deaf` pass nothing on, as when a machine vanishes."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.deaf = False
        self.heard = 0
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        for writer in self._writers:
            writer.close()
        self._server.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, up_writer]
        while data := await reader.read(65536):
            if self.deaf:
                self.heard += 1
                continue
            up_writer.write(data)
            writer.write(await up_reader.read(65536))
        up_writer.close()
        writer.close()


async def test_a_redis_that_vanished_without_a_word_holds_up_nobody_once_it_is_back(
    own: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sayso_approvals.batching.PATIENCE", 0.2)
    async with Swallowing(own.port) as proxy:
        client = connect(proxy.url)
        ledger = Ledger(client, AgentId("shop", "desk"), new_key())
        await ledger.ping()
        proxy.deaf = True
        await asyncio.gather(*(refused(ledger.resolve(f"s{n}"), "store_unreachable") for n in range(5)))
        proxy.deaf = False
        await ledger.resolve("s1")
        await client.aclose()


async def test_who_stopped_waiting_before_anything_was_sent_gets_no_turn(own: RedisServer) -> None:
    async with Swallowing(own.port) as proxy:
        client = connect(proxy.url)
        ledger = Ledger(client, AgentId("shop", "desk"), new_key())
        await ledger.ping()
        proxy.deaf = True
        first = asyncio.create_task(ledger.ping())
        while not proxy.heard:
            await asyncio.sleep(0)
        second = asyncio.create_task(ledger.take("s1", requester="ann"))
        await asyncio.sleep(0)
        for task in (second, first):
            task.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        proxy.deaf = False
        await client.connection_pool.disconnect(inuse_connections=True)
        assert (await ledger.resolve("s1")).requester is None
        await client.aclose()


async def test_one_refused_command_of_many_spoils_no_other(desk: Desk, ledger: Ledger) -> None:
    await desk.redis.set(ledger._session("broken")[0], "not a hash")
    results = await asyncio.gather(
        *(ledger.take(name, requester="ann") for name in ("s1", "broken", "s2")), return_exceptions=True
    )
    assert [getattr(result, "session_id", None) for result in results] == ["s1", None, "s2"]
    assert isinstance(results[1], Refusal)
