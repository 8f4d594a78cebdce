"""Commands of many tasks, sent together: what comes while one batch is under way goes out as the next one.

A process that serves many sessions asks Redis for many small things at once. Each write to a socket costs more than
the command itself, so they share writes, and with them the server's fsync. Order is kept: a command that was given
first is run first. Blocking commands must not come here.
"""

from __future__ import annotations

import asyncio
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

PATIENCE = 10.0  # seconds for one batch: no script takes a hundredth of that


class Batches:
    """Sends packed commands over one connection of a pool at a time, and hands each reply to who waits for it."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._next: list[tuple[bytes, asyncio.Future[Any]]] = []
        self._sending: asyncio.Task[None] | None = None

    async def send(self, packed: bytes) -> Any:
        """The command's reply. Raises the server's error, or `ConnectionError` (of redis-py) when the connection went,
        in which case nobody knows whether the command was run."""
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._next.append((packed, reply))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())
        return await reply

    async def _send_all(self) -> None:
        while self._next:
            # Who has stopped waiting before anything was sent wants nothing any more: least of all a turn.
            batch, self._next = [one for one in self._next if not one[1].done()], []
            try:
                connection = await self._pool.get_connection()
                try:
                    await self._exchange(connection, batch)
                finally:
                    await self._pool.release(connection)
            except BaseException as error:
                for _, reply in batch:
                    if not reply.done():
                        reply.set_exception(_told(error))
                if not isinstance(error, Exception):
                    raise

    @staticmethod
    async def _exchange(connection: Any, batch: list[tuple[bytes, asyncio.Future[Any]]]) -> None:
        try:
            # A server that has vanished without a word must not hold up everybody who comes later.
            async with asyncio.timeout(PATIENCE):
                await connection.send_packed_command([packed for packed, _ in batch], check_health=False)
                for _, reply in batch:
                    try:
                        answer = await connection.read_response()
                    except ResponseError as error:
                        if not reply.done():
                            reply.set_exception(error)
                    else:
                        if not reply.done():  # who asked may have stopped waiting; the reply is read all the same
                            reply.set_result(answer)
        except BaseException:
            # replies that are still on their way must not be taken for those of the next batch
            await connection.disconnect(nowait=True)
            raise


def _told(error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    return RedisConnectionError("the connection was closed while the command was under way")
