"""Where the ledger runs: a cluster (one hash tag for each script) and a master watched by Sentinel."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ledger.desk import Desk, completion, eventually, refused
from sayso_approvals.connect import connect
from sayso_approvals.records import Begin, Commit, TaskWrite
from sayso_approvals.refusals import Refusal
from sayso_approvals.scripting import SCRIPTS
from sayso_approvals.server import RedisServer, find_redis_servers, free_port


@pytest.fixture(params=find_redis_servers(), ids=str)
def binary(request: pytest.FixtureRequest) -> Path:
    """The redis-server to test with."""
    path: Path = request.param
    return path


@pytest.fixture
async def cluster(binary: Path, tmp_path: Path) -> AsyncIterator[RedisServer]:
    """A cluster of one node that has all slots: it refuses a script whose keys are in two."""
    while (port := free_port()) > 55_000:  # its bus listens ten thousand above
        pass
    server = RedisServer(tmp_path / "cluster", port=port, binary=binary, extra={"cluster-enabled": "yes"})
    await server.start()
    client = connect(server.url)
    await client.execute_command("CLUSTER", "ADDSLOTS", *range(16_384))

    async def ready() -> bool:
        return "cluster_state:ok" in str(await client.execute_command("CLUSTER", "INFO"))

    await eventually(ready)
    await client.aclose()
    yield server
    await server.stop()


async def test_every_script_keeps_to_one_slot_and_to_the_keys_it_is_given(cluster: RedisServer) -> None:
    client = connect(cluster.url)
    await client.config_resetstat()
    used = set()
    desk = Desk(client)
    ledger = desk.replica(lease=0.4)
    run = ledger._runner.run

    async def noted(name: str, *arguments: object) -> object:
        used.add(name)
        return await run(name, *arguments)  # type: ignore[arg-type]

    ledger._runner.run = ledger._watch._runner.run = noted  # type: ignore[method-assign, assignment]
    one, two, three = await desk.paused(
        ledger, desk.call("c1", timeout_seconds=0), desk.call("c2"), desk.call("c3"), seconds=30
    )
    await ledger.resolve("s1")
    for view in (one, two):
        await desk.decide(ledger, view)
    turn, (one, two) = await ledger.take_and_claim("s1", requester="ann")
    await ledger.renew(turn)
    await ledger.claim(turn)
    assert (await ledger.begin(turn, one))[0] is Begin.RUN
    await ledger.doubt(turn, one, "?")
    await ledger.begin(turn, two)
    await ledger.finish(turn, two, "1", is_error=False)
    pause = desk.pause(turn, desk.call("c4"), seconds=-1)
    commit = Commit(
        events=("{}",),
        pause=pause,
        completions=(completion(turn, two),),
        task=TaskWrite("t1", 0, "{}", "working"),
        answers={"m1": "{}"},
    )
    await ledger.commit(turn, commit)
    await desk.decide(ledger, three)
    (three,) = [view for view in await ledger.claim(turn) if view.call.call_id == "c3"]
    await ledger.begin(turn, three)
    await ledger.unsent(turn, three, "not sent")
    await desk.decide(ledger, three)
    (three,) = [view for view in await ledger.claim(turn) if view.call.call_id == "c3"]
    await ledger.reopen(turn, three, "again")
    await ledger.release(turn)
    assert await ledger.expire_due() == 1

    async def settled() -> bool:
        try:
            await ledger.settle(one.pause.pause_id, "c1", action="retry", result=None, by="b", reason="", attempt=1)
        except Refusal as refusal:
            if refusal.code != "paused":
                raise
            return False
        return True

    await eventually(settled)
    assert await ledger.wait_for_work("r1", 30) == ["s1"]
    assert await ledger.work() == ["s1"], "and what comes again is looked at more closely"
    assert used == set(SCRIPTS), "each script has run here"
    await client.aclose()


def test_no_script_makes_up_a_key() -> None:
    """Every key in a script is one of the names that its first lines take out of KEYS."""
    for name, script in SCRIPTS.items():
        taken = re.findall(r"local (.+?) =\s+unpack\(KEYS", script.text)
        assert len(taken) == (0 if name == "work" else 1)
        names = {one for line in taken for one in line.split(", ")}
        from_keys = set(re.findall(r"local at, (\w+) = [^\n]*, KEYS\[done_key \+ i\]", script.text))
        for command, key in re.findall(r"call\('([A-Z]+)', ([^,)]+)", script.text):
            fine = key in names | from_keys or key.startswith("KEYS[")
            assert fine, f"{name}: {command} {key}"
            assert not re.search(rf"local {key} = (?!unpack)", script.text) or key in from_keys


@pytest.fixture
async def watched(binary: Path, tmp_path: Path) -> AsyncIterator[tuple[str, RedisServer]]:
    """A master and one sentinel that watches it: the sentinel is the same program."""
    master = RedisServer(tmp_path / "master", port=free_port(), binary=binary)
    await master.start()
    sentinel = RedisServer(tmp_path / "sentinel", port=free_port(), binary=binary, sentinel=("orders", master.port))
    await sentinel.start()
    yield f"redis+sentinel://127.0.0.1:{sentinel.port}/orders/0", master
    await sentinel.stop()
    await master.stop()


async def test_the_ledger_finds_its_master_through_sentinel(watched: tuple[str, RedisServer]) -> None:
    url, master = watched
    client = connect(url)
    desk = Desk(client)
    turn, (view,) = await desk.claimed(desk.replica())
    assert (await desk.replica().begin(turn, view))[0] is Begin.RUN
    direct = connect(master.url)
    assert await direct.dbsize() > 0
    await direct.aclose()
    await client.aclose()


async def test_a_master_that_is_gone_is_named_as_its_sentinels_know_it(watched: tuple[str, RedisServer]) -> None:
    url, master = watched
    client = connect(url)
    desk = Desk(client)
    await desk.paused(desk.replica())
    await master.kill()
    assert "orders" in (await refused(desk.replica().resolve("s1"), "store_unreachable")).detail
    await master.start()
    assert len((await desk.replica().resolve("s1")).calls) == 1
    await client.aclose()
