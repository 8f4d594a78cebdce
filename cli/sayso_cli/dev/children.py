"""Processes that are kept: started, watched, started again when they die, and ended in order.

A child's output goes straight into its log file, never through a pipe of ours: a terminal that nobody reads cannot
hold an agent up, and the last words of a process that dies are on disk. `tail.py` shows them from there.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sayso_cli.errors import CliError

Say = Callable[[str], None]

FIRST_BACKOFF = 0.5  # seconds before the first restart; doubled for each further death
LONGEST_BACKOFF = 10.0
STEADY = 30.0  # seconds after which a process counts as having run well, and the backoff begins anew

NEVER = 2  # the exit code of an agent's process that cannot work with its configuration

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start. `name` is what people read, `log` the file that its output is appended to."""

    name: str
    argv: tuple[str, ...]
    log: Path
    env: Mapping[str, str]


def backoff(deaths: int) -> float:
    """Seconds to wait before the start after the `deaths`-th death in a row (from 1)."""
    return float(min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** min(deaths - 1, 10)))


def how_it_ended(code: int) -> str:
    """An exit code as asyncio gives it (negative: a signal) in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


@dataclass(slots=True)
class Child:
    """One kept process. `say` is told of every death in one line.

    `hopeless` is called instead of a restart where the very first start ends with `NEVER`: what it was given cannot
    work, and will not work the next time either.
    """

    launch: Launch
    say: Say
    hopeless: Callable[[str], None]
    process: asyncio.subprocess.Process | None = None
    starts: int = 0
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts the process and, from then on, keeps it. CliError where it cannot be started at all."""
        await self._spawn()
        self._task = asyncio.create_task(self._keep(), name=f"keep {self.launch.name}")

    async def stop(self, grace: float) -> None:
        """SIGTERM, at most `grace` seconds of waiting, then SIGKILL. Returns when the process is gone."""
        self._stopping.set()
        process = self.process
        if process is not None and process.returncode is None:
            _signal(process, signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), grace)
            except TimeoutError:
                self.say(f"{self.launch.name} did not end within {grace:g} s and is killed")
                _signal(process, signal.SIGKILL)
                await process.wait()
        if self._task is not None:
            await self._task

    def kill(self) -> None:
        """SIGKILL, at once: for somebody who asks a second time."""
        self._stopping.set()
        if self.process is not None and self.process.returncode is None:
            _signal(self.process, signal.SIGKILL)

    async def _spawn(self) -> None:
        parent = os.getpid()
        prctl = _prctl()

        def die_with_parent() -> None:
            # Runs between fork and exec. A kill -9 of the parent must not leave agents behind that nobody sees.
            if prctl is not None:
                prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

        log = os.open(self.launch.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self.process = await asyncio.create_subprocess_exec(
                *self.launch.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(self.launch.env),
                # A session of its own: Ctrl-C reaches the parent only, which then ends its children in order.
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        except OSError as error:
            raise CliError(f"{self.launch.argv[0]} cannot be started: {error.strerror}") from error
        finally:
            os.close(log)
        self.starts += 1

    async def _keep(self) -> None:
        deaths = 0
        while not self._stopping.is_set():
            assert self.process is not None
            began = time.monotonic()
            code = await self.process.wait()
            if self._stopping.is_set():
                return
            if code == NEVER and self.starts == 1:
                self.hopeless(self.launch.name)
                return
            deaths = 1 if time.monotonic() - began > STEADY else deaths + 1
            pause = backoff(deaths)
            self.say(f"{self.launch.name} died ({how_it_ended(code)}); it is started again in {pause:g} s")
            if not await self._wait(pause):
                return
            try:
                await self._spawn()
            except CliError as error:
                self.say(error.message)
                continue
            self.say(f"{self.launch.name} is started again")

    async def _wait(self, seconds: float) -> bool:
        """False when the child is to stop before the time is over."""
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return True
        return False


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except ProcessLookupError:
        return


def _prctl() -> Callable[..., int] | None:
    """Linux' prctl, looked up before the fork: after it, only async-signal-safe work is allowed."""
    if sys.platform != "linux":
        return None
    function: Callable[..., int] = ctypes.CDLL(None, use_errno=True).prctl
    return function
