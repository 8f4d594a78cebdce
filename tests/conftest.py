"""What tests share: a real Redis, durable, one process per session of tests and per version to test with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from sayso_approvals.connect import connect
from sayso_approvals.server import RedisServer, find_redis_servers, free_port


def run_apart(work: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine to its end from a fixture that is not one, away from the tests' own event loops."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


@pytest.fixture(scope="session", params=find_redis_servers(), ids=lambda path: path.name)
def redis_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A running redis-server with appendfsync always; one for each path in SAYSO_TEST_REDIS_SERVERS."""
    binary: Path = request.param
    server = RedisServer(tmp_path_factory.mktemp("redis"), port=free_port(), binary=binary)
    run_apart(server.start())
    yield server
    run_apart(server.stop())


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The URL of an empty Redis."""

    async def empty() -> None:
        client = connect(redis_server.url)
        await client.flushall()
        await client.aclose()

    run_apart(empty())
    return redis_server.url


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    """A client of an empty Redis, as the ledger wants it."""
    client = connect(redis_url)
    yield client
    await client.aclose()
