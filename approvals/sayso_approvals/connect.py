"""From a URL to a Redis client that is fit for the ledger.

    redis://[user:password@]host:port/db        rediss:// for TLS, unix:///path for a socket
    redis+sentinel://[user:password@]host:port,host:port/master/db        rediss+sentinel:// for TLS

The client never repeats a command by itself: a command whose answer got lost may have been carried out.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from redis.asyncio import Redis, Sentinel, SentinelConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

CONNECT_SECONDS = 5.0


class BadUrl(ValueError):  # noqa: N818
    """The URL names no Redis that this can connect to. The message never repeats a password."""


def options() -> dict[str, Any]:
    """What every connection of the ledger needs."""
    return {
        "decode_responses": True,
        "encoding_errors": "surrogateescape",  # bytes that are no text are a record changed by somebody: show it
        "protocol": 2,
        "socket_timeout": None,  # `scripting.Runner` has its own, at a fifth of the cost of one for each write
        "socket_connect_timeout": CONNECT_SECONDS,
        "retry": Retry(NoBackoff(), 0),
    }


def connect(url: str) -> Redis:
    """A client for `url`; connects when first used. Raises `BadUrl`."""
    scheme = url.partition("://")[0]
    try:
        match scheme:
            case "redis" | "rediss" | "unix":
                client: Redis = Redis.from_url(url, **options())
                return client
            case "redis+sentinel" | "rediss+sentinel":
                return _sentinel(url, tls=scheme.startswith("rediss"))
    except ValueError as error:
        raise BadUrl(f"this {scheme}:// URL cannot be read: {error}") from None
    raise BadUrl(f"{scheme!r} is not one of redis, rediss, unix, redis+sentinel, rediss+sentinel")


class _Watched(Redis):
    """A client of a master that sentinels name; closing it closes the connections to them too."""

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Closes all of them."""
        await super().aclose(close_connection_pool)
        pool = self.connection_pool
        assert isinstance(pool, SentinelConnectionPool)
        for sentinel in pool.sentinel_manager.sentinels:
            await sentinel.aclose()


def _sentinel(url: str, *, tls: bool) -> Redis:
    parts = urlsplit(url)
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    master, _, db = parts.path.lstrip("/").partition("/")
    if not master:
        raise ValueError("the path must begin with the name of the master, as in redis+sentinel://host/mymaster/0")
    settings = options() | {"db": int(db or 0)}
    if password:
        settings |= {"username": unquote(user) or None, "password": unquote(password)}
    if tls:
        settings["ssl"] = True
    sentinels = [_address(one) for one in hosts.split(",") if one]
    if not sentinels:
        raise ValueError("it names no sentinel")
    watchers = {"socket_timeout": CONNECT_SECONDS, "socket_connect_timeout": CONNECT_SECONDS, "ssl": tls}
    sentinel = Sentinel(sentinels, sentinel_kwargs=watchers, **settings)  # type: ignore[no-untyped-call]
    client: Redis = sentinel.master_for(master, redis_class=_Watched, connection_pool_class=SentinelConnectionPool)
    return client


def _address(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError("a sentinel has no host name")
    return parts.hostname, parts.port or 26379
