"""What a replica does unasked: carries out decisions that came another way, lets pauses expire, ends dead turns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sayso_approvals.ledger import Ledger
from sayso_approvals.refusals import Refusal

log = logging.getLogger(__name__)

#: How often a replica looks for pauses whose time is over, in seconds.
EXPIRY_INTERVAL = 1.0
#: A session that could not go on (a tool server is away) is looked at again after this many seconds, doubling.
FIRST_RETRY, LAST_RETRY = 1.0, 30.0


class Worker:
    """Background work of one replica. `go_on` carries a session forward and may be called at any time."""

    def __init__(self, ledger: Ledger, go_on: Callable[[str], Awaitable[None]], replica: str, *, lease: float) -> None:
        self._ledger = ledger
        self._go_on = go_on
        self._replica = replica
        self._lease = lease
        self._busy: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled. What it has begun by then goes on: see `finish`."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            group.create_task(self._expire())

    async def finish(self, seconds: float) -> None:
        """Waits for what was begun, at most `seconds`, and cancels the rest. What could not go on yet is left alone."""
        self._stopping.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in self._tasks:
            task.cancel()

    async def _listen(self) -> None:
        pause = FIRST_RETRY
        while True:
            try:
                sessions = await self._ledger.wait_for_work(self._replica, timeout_seconds=self._lease / 2)
            except Exception as error:  # noqa: BLE001  one bad look must not end all further ones
                _say(error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LAST_RETRY)
                continue
            pause = FIRST_RETRY
            for session_id in sessions:
                if session_id not in self._busy:
                    self._busy.add(session_id)
                    task = asyncio.create_task(self._carry(session_id))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    async def _carry(self, session_id: str) -> None:
        pause = FIRST_RETRY
        try:
            while True:
                try:
                    await self._go_on(session_id)
                    return
                except Refusal as error:
                    log.warning("session %s cannot go on yet: %s", session_id, error.detail)
                    if error.code not in ("tool_server_unreachable", "store_unreachable", "busy"):
                        return
                except Exception:
                    log.exception("session %s could not go on", session_id)
                    return
                if await self._stops_within(pause):
                    return
                pause = min(pause * 2, LAST_RETRY)
        finally:
            self._busy.discard(session_id)

    async def _stops_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True

    async def _expire(self) -> None:
        while True:
            try:
                while await self._ledger.expire_due():
                    pass
            except Exception as error:  # noqa: BLE001  as above
                _say(error)
            await asyncio.sleep(EXPIRY_INTERVAL)


def _say(error: Exception) -> None:
    if isinstance(error, Refusal):
        log.warning("%s", error.detail)
    else:
        log.error("looking after the agent's sessions failed; it is tried again", exc_info=error)
