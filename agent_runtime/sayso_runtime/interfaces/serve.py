"""Serves an application on one port until the process is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import uvicorn

    from sayso_runtime.interfaces.asgi import App

_log = logging.getLogger(__name__)

_BACKLOG = 1024
#: Seconds that an idle connection is kept: longer than the keep-alive of usual proxies, so that they close first.
_IDLE_SECONDS = 75


async def serve(
    app: App,
    host: str,
    port: int,
    *,
    on_ready: Callable[[], Awaitable[None]] | None = None,
    on_stop: Callable[[], None] | None = None,
    drain_seconds: float = 15.0,
) -> None:
    """Serves `app` until SIGTERM, SIGINT or cancellation; a second signal does not wait for what still runs.

    `on_ready` is awaited once connections are taken, `on_stop` called at each signal. At the end no more are taken, and
    running requests get `drain_seconds` before they are cancelled. Raises `OSError`, naming the address, where it
    cannot be bound.
    """
    # The server is the slowest import of a door and of no use to those who only build the application.
    import uvicorn

    listener = _listen(host, port)
    config = uvicorn.Config(
        cast("Any", app),
        http="httptools",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=math.ceil(drain_seconds),
    )

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # uvicorn raises a signal again at its end, which would skip what the caller still has to close.
            with _stopped_by_signals(self, on_stop or (lambda: None)):
                yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            _log.info("listening on %s:%d", host, listener.getsockname()[1])
            if on_ready is not None:
                await on_ready()

    server = Server(config)
    with listener:
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            server.should_exit = True
            await serving
            raise


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, because asyncio sends small writes at once only on sockets that say they are TCP: without it each answer
    # waits 40 ms for the acknowledgement of its head.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listener


@contextlib.contextmanager
def _stopped_by_signals(server: uvicorn.Server, on_stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def stop(name: str) -> None:
        on_stop()
        if server.should_exit:
            server.force_exit = True
            return
        _log.info("%s: finishing what runs, taking nothing new", name)
        server.should_exit = True

    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, stop, number.name)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
