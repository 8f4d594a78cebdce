"""The command line in the test's own process: what it prints, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sayso_cli import main


@dataclass(frozen=True, slots=True)
class Result:
    """Exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


def sayso(*arguments: str) -> Result:
    """Runs a command to its end, with neither of its streams a terminal."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), own_interrupts():
            try:
                main.run(list(arguments))
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            else:
                code = 0
        out.seek(0)
        err.seek(0)
        return Result(code, out.read(), err.read())


@contextlib.contextmanager
def own_interrupts() -> Iterator[None]:
    """Ctrl-C means the test run again afterwards."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


async def sayso_beside(*arguments: str) -> Result:
    """The same from a test that has an event loop of its own."""
    return await asyncio.to_thread(sayso, *arguments)


def sayso_apart(*arguments: str) -> Result:
    """The same in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "sayso_cli.main", *arguments], capture_output=True, text=True)
    return Result(done.returncode, done.stdout, done.stderr)
