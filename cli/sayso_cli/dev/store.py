"""The store of local mode: a Redis of our own that is kept alive, or one that runs already."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from redis.exceptions import RedisError

from sayso_approvals.connect import BadUrl, connect
from sayso_approvals.durability import check
from sayso_approvals.server import NoRedisServer, RedisServer, ServerFailed, find_redis_server
from sayso_cli.dev import tether
from sayso_cli.dev.children import STEADY, backoff
from sayso_cli.errors import USAGE, CliError

_LOOK_EVERY = 0.2  # seconds


@dataclass(slots=True)
class KeptRedis:
    """A Redis in `directory` on `port`; one that dies comes back with all it had confirmed."""

    directory: Path
    port: int
    say: Callable[[str], None]
    _server: RedisServer = field(init=False)
    _task: asyncio.Task[None] | None = None
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        """Where it answers."""
        return self._server.url

    async def start(self) -> None:
        """Returns once it answers. CliError where it cannot be started."""
        try:
            self._server = RedisServer(self.directory, port=self.port, binary=tied(find_redis_server(), self.directory))
            await self._server.start()
        except NoRedisServer as error:
            raise CliError(str(error), USAGE) from error
        except (ServerFailed, OSError) as error:
            raise CliError(f"the store cannot be started: {error}") from error
        self._task = asyncio.create_task(self._keep(), name="keep redis")

    async def stop(self) -> None:
        """Ends it in order."""
        self._stopping.set()
        if self._task is not None:
            await self._task
            await self._server.stop()

    async def _keep(self) -> None:
        deaths, began = 0, time.monotonic()
        while not await self._told_to_stop(_LOOK_EVERY):
            if self._server.pid is not None:
                continue
            deaths = 1 if time.monotonic() - began > STEADY else deaths + 1
            pause = backoff(deaths)
            self.say(f"redis died; it is started again in {pause:g} s, with everything that it had confirmed")
            if await self._told_to_stop(pause):
                return
            began = time.monotonic()
            try:
                await self._server.start()
            except (ServerFailed, OSError) as error:
                self.say(f"redis cannot be started: {error}")
            else:
                self.say("redis is started again")

    async def _told_to_stop(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True


def tied(program: Path, directory: Path) -> Path:
    """A program that runs `program` and ends with this process, even where that is killed."""
    script = directory / "redis-server.sh"
    command = [sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), str(program)]
    script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    return script


async def warnings(url: str) -> list[str]:
    """Every way in which the store behind `url` would forget. CliError where it does not answer."""
    try:
        client = connect(url)
    except BadUrl as error:
        raise CliError(f"--redis-url: {error}", USAGE) from error
    try:
        await client.ping()
        return [str(warning) for warning in await check(client)]
    except (RedisError, OSError) as error:
        raise CliError(f"the store of --redis-url does not answer: {error}") from error
    finally:
        await client.aclose()
