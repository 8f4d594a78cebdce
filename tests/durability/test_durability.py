"""A Redis that would forget is named, once for each way in which it would."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from sayso_approvals.connect import connect
from sayso_approvals.durability import check
from sayso_approvals.server import RedisServer, find_redis_servers, free_port


@pytest.fixture(params=find_redis_servers(), ids=str)
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RedisServer]:
    """A Redis whose settings a test may change."""
    own = RedisServer(tmp_path / "redis", port=free_port(), binary=request.param)
    await own.start()
    yield own
    await own.stop()


@pytest.fixture
async def client(server: RedisServer) -> AsyncIterator[Redis]:
    """A client of it."""
    client = connect(server.url)
    yield client
    await client.aclose()


async def names(client: Redis) -> list[str]:
    """The names of what it warns of."""
    return [warning.name for warning in await check(client)]


async def test_a_redis_that_forgets_nothing_is_not_warned_of(client: Redis) -> None:
    assert await check(client) == []


@pytest.mark.parametrize("fsync", ["everysec", "no"])
async def test_writing_to_disk_later_is_warned_of(client: Redis, fsync: str) -> None:
    await client.config_set("appendfsync", fsync)
    (warning,) = await check(client)
    assert warning.name == "FsyncNotAlways"
    assert fsync in warning.detail
    assert "appendfsync always" in warning.remedy


async def test_keeping_nothing_is_warned_of_alone(client: Redis) -> None:
    await client.config_set("appendonly", "no")
    await client.config_set("appendfsync", "no")
    assert await names(client) == ["AppendOnlyOff"]


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl", "allkeys-random"])
async def test_dropping_keys_is_warned_of(client: Redis, policy: str) -> None:
    await client.config_set("maxmemory-policy", policy)
    (warning,) = await check(client)
    assert warning.name == "Evicts"
    assert policy in warning.detail


async def test_replicas_that_nobody_waits_for_are_warned_of(client: Redis, server: RedisServer, tmp_path: Path) -> None:
    extra = {"replicaof": f"127.0.0.1 {server.port}"}
    replica = RedisServer(tmp_path / "replica", port=free_port(), binary=server.binary, extra=extra)
    await replica.start()
    while (await client.info("replication"))["connected_slaves"] == 0:
        pass
    assert await names(client) == ["ReplicasNotAwaited"]
    await replica.kill()  # it will not end in order while it writes its first append-only file


async def test_all_of_it_at_once_is_all_named(client: Redis) -> None:
    await client.config_set("appendfsync", "everysec")
    await client.config_set("maxmemory-policy", "allkeys-lru")
    assert await names(client) == ["FsyncNotAlways", "Evicts"]


async def test_settings_that_may_not_be_read_are_unknown_and_said_so(client: Redis, server: RedisServer) -> None:
    await client.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-config")
    app = connect(f"redis://app:pw@127.0.0.1:{server.port}/0")
    (warning,) = await check(app)
    assert warning.name == "Unknown"
    assert "CONFIG GET" in warning.remedy
    await app.aclose()
