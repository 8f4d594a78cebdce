"""Lets an agent's process stop itself at a point where no tool could stop it.

With this folder on PYTHONPATH, and a file `stop-at-<point>` in $HELD_DIR, the process renames the file to
`stopped-at-<point>` and sends itself SIGSTOP, once, at

    claimed     the decided call is claimed, its start is not on record yet
    begun       its start is on record, and the last look at the lease before sending is still to come
    paused      a new pause is stored, and its client has not been told

Nothing else changes: after SIGCONT the process goes on in the very next line of its own code.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from sayso_approvals.ledger import Ledger
from sayso_runtime.engine.api import Scope

_begin, _check_call, _commit = Ledger.begin, Scope.check_call, Ledger.commit


def _stop(point: str) -> None:
    directory = Path(os.environ["HELD_DIR"])
    try:
        (directory / f"stop-at-{point}").rename(directory / f"stopped-at-{point}")
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGSTOP)


async def begin(self: Ledger, *arguments: Any) -> Any:
    _stop("claimed")
    return await _begin(self, *arguments)


def check_call(self: Scope, call: Any) -> None:
    _stop("begun")
    _check_call(self, call)


async def commit(self: Ledger, turn: Any, written: Any) -> None:
    await _commit(self, turn, written)
    if written.pause is not None:
        _stop("paused")


Ledger.begin = begin  # type: ignore[method-assign]
Ledger.commit = commit  # type: ignore[method-assign]
Scope.check_call = check_call  # type: ignore[method-assign]
