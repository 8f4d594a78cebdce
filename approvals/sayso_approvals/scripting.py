"""Running the ledger's scripts, and saying plainly when Redis cannot.

Every error of Redis becomes `Refusal("store_unreachable")`, which names the server (never its password). Nothing is
tried a second time here: a script whose answer got lost may have run. Only NOSCRIPT, which proves that it did not, is
answered by loading the script and running it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeVar

from hiredis import pack_command
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from sayso_approvals.batching import PATIENCE, Batches
from sayso_approvals.refusals import Refusal

T = TypeVar("T")


SESSION_SCRIPTS = (
    "take", "renew", "release", "resolve", "commit", "decide", "expire", "claim", "begin", "finish", "doubt",
    "reopen",
    "unsent", "settle", "tidy",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Script:
    """A script's whole text and its SHA-1, by which Redis knows it."""

    text: str
    sha: str


def load() -> dict[str, Script]:
    """All scripts by name; those about a session with what they share in front."""
    folder = files("sayso_approvals") / "scripts"
    common = (folder / "common.lua").read_text("utf-8")
    texts = {name: common + (folder / f"{name}.lua").read_text("utf-8") for name in SESSION_SCRIPTS}
    texts["work"] = (folder / "work.lua").read_text("utf-8")
    return {name: Script(text, hashlib.sha1(text.encode()).hexdigest()) for name, text in texts.items()}  # noqa: S324


SCRIPTS = load()


class Runner:
    """Runs scripts and commands on one Redis client (`connect.connect`)."""

    def __init__(self, redis: Any) -> None:
        options = redis.connection_pool.connection_kwargs
        if not options.get("decode_responses"):
            raise ValueError("the ledger needs a client that decodes responses: use sayso_approvals.connect")
        self.redis = redis
        self._batches = Batches(redis.connection_pool)
        self._where = where(options)

    async def run(self, name: str, keys: Sequence[str], *arguments: str | int | float) -> Any:
        """The script's reply."""
        script = SCRIPTS[name]
        try:
            async with asyncio.timeout(PATIENCE):
                try:
                    return await self._send("EVALSHA", script.sha, len(keys), *keys, *arguments)
                except NoScriptError:
                    return await self._send("EVAL", script.text, len(keys), *keys, *arguments)
        except (RedisError, OSError) as error:
            raise self.unreachable(error) from error

    async def command(self, *command: str | int | float) -> Any:
        """The answer of one plain command that does not block, at the cost of a script's."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._send(*command)
        except (RedisError, OSError) as error:
            raise self.unreachable(error) from error

    async def _send(self, *command: str | int | float) -> Any:
        # The client's own execute_command packs in Python and takes twice the time of everything else together.
        return await self._batches.send(pack_command(command))  # type: ignore[arg-type]  # its stub means tuple[…, ...]

    async def ask(self, command: Awaitable[T], seconds: float = PATIENCE) -> T:
        """The answer of one plain command, which may take `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                return await command
        except (RedisError, OSError) as error:
            raise self.unreachable(error) from error

    def unreachable(self, error: Exception) -> Refusal:
        """How an error of Redis is told to whoever asked."""
        if isinstance(error, RedisConnectionError | RedisTimeoutError | OSError):
            what = f"Redis at {self._where} does not answer ({type(error).__name__})"
            advice = "See that it runs and can be reached; nothing that it has confirmed is lost"
        else:
            what = f"Redis at {self._where} refused ({error})"
            advice = "See its log and its memory, disk, role and access rules"
        return Refusal("store_unreachable", f"{what}. {advice}.")


def where(options: dict[str, Any]) -> str:
    """A server's place for people, from a client's connection options: never a user name or password."""
    if "path" in options:
        return f"unix:{options['path']}"
    if "host" in options:
        return f"{options['host']}:{options.get('port', 6379)}"
    pool = options.get("connection_pool")
    return f"Sentinel's {pool.service_name!r}" if pool is not None else "localhost:6379"
