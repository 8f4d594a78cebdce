"""Running the ledger's scripts, and saying plainly when Redis cannot.

Every error of Redis becomes `Refusal("store_unreachable")`, which names the server (never its password). Nothing is
tried a second time here: a script whose answer got lost may have run. Only NOSCRIPT, which proves that it did not, is
answered by loading the script and running it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeVar

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from sayso_approvals.refusals import Refusal

T = TypeVar("T")

SESSION_SCRIPTS = (
    "take", "renew", "release", "resolve", "commit", "decide", "expire", "claim", "begin", "finish", "doubt",
    "reopen", "settle",
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
        #: The longest that one command may wait for its answer; None: for ever.
        self.patience: float | None = options.get("socket_timeout")
        self._where = where(options)

    async def run(self, name: str, keys: Sequence[str], *arguments: str | int | float) -> Any:
        """The script's reply."""
        script = SCRIPTS[name]
        execute = self.redis.execute_command
        try:
            return await execute("EVALSHA", script.sha, len(keys), *keys, *arguments)
        except NoScriptError:
            return await self.ask(execute("EVAL", script.text, len(keys), *keys, *arguments))
        except (RedisError, OSError) as error:
            raise self.unreachable(error) from error

    async def ask(self, command: Awaitable[T]) -> T:
        """The answer of one plain command."""
        try:
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
