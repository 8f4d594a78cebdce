"""Starting and stopping what is measured, each in a process of its own, on loopback.

Nothing is pinned to a core, and every wait has an end. A process that does not come up is an error that quotes the
end of its log.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from benchmarks import scenario, shipped
from sayso_approvals.seal import load_or_create_key
from sayso_approvals.server import RedisServer, free_port

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 60.0
STOP_SECONDS = 15.0


class NotStartedError(Exception):
    """A process did not become ready; the text has the end of its log."""


@dataclass(frozen=True, slots=True)
class Start:
    """What it took until a server was ready. Seconds; `cpu` is user and system time of the process."""

    wall: float
    cpu: float


@dataclass(slots=True)
class Server:
    """A running server."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    start: Start

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    def resident_mib(self) -> float:
        """Resident memory, in MiB."""
        return float(psutil.Process(self.process.pid).memory_info().rss) / 2**20


@contextmanager
def running(command: Sequence[str], *, url: str, ready: str, log: Path) -> Iterator[Server]:
    """Runs `command` until the block ends; `ready` is the path that answers 200 once it is ready."""
    began = time.perf_counter()
    with log.open("wb") as out:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=log.parent, env=environment)
        try:
            _wait_ready(process, url.rstrip("/") + ready, log)
            wall = time.perf_counter() - began
            server = Server(url, process, log, Start(wall, 0.0))
            server.start = Start(wall, server.cpu_seconds())
            yield server
        finally:
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Asks the process to end, and ends it if it does not."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    with httpx.Client(timeout=5.0, trust_env=False) as http:
        while time.monotonic() < deadline:
            if process.poll() is not None:
                break
            try:
                if http.get(url).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.02)
    tail = log.read_text(errors="replace")[-2000:]
    raise NotStartedError(f"{' '.join(map(str, process.args))} did not become ready at {url}; its log ends:\n{tail}")  # type: ignore[arg-type]


@contextmanager
def to_a2a(folder: Path) -> Iterator[Server]:
    """ADK's own A2A server, everything in memory."""
    port = free_port()
    command = [str(shipped.python(shipped.A2A_SDK)), "-W", "ignore", "-m", "benchmarks.a2a_server", str(port)]
    with running(
        command, url=f"http://127.0.0.1:{port}/", ready="/.well-known/agent-card.json", log=folder / f"a2a-{port}.log"
    ) as server:
        yield server


@contextmanager
def mcp_server(folder: Path) -> Iterator[Server]:
    """The tool as an MCP server over streamable HTTP."""
    port = free_port()
    command = [str(shipped.python()), "-m", "benchmarks.mcp_server", str(port)]
    with running(command, url=f"http://127.0.0.1:{port}/", ready="/healthz", log=folder / f"mcp-{port}.log") as server:
        yield server


@contextmanager
def sayso(
    folder: Path,
    redis_url: str,
    *,
    turns: int,
    mcp_url: str | None = None,
    before: Sequence[str] = (),
) -> Iterator[Server]:
    """One replica of Sayso's agent process. Replicas on one Redis share `folder`, and so the key.

    `before` stands between the interpreter and `-m sayso_runtime`: a sampler, for example.
    """
    port = free_port()
    key = folder / "agent.key"
    load_or_create_key(key)
    config = folder / f"config-{port}.json"
    config.write_text(scenario.runtime_config(turns=turns, mcp_url=mcp_url).model_dump_json())
    command = [str(shipped.python()), *before, "-m", "sayso_runtime", "--config", str(config)]
    command += ["--redis-url", redis_url, "--key-file", str(key), "--port", str(port), "--replica", str(port)]
    with running(command, url=f"http://127.0.0.1:{port}/", ready="/readyz", log=folder / f"sayso-{port}.log") as server:
        yield server


@asynccontextmanager
async def redis(folder: Path) -> AsyncIterator[str]:
    """A Redis that syncs every write to the disk under `folder` (`appendfsync always`); gives its URL."""
    server = RedisServer(folder / "redis", port=free_port())
    await server.start()
    try:
        yield server.url
    finally:
        await server.stop()


class Bare:
    """Bare ADK in its own process, which measures itself on demand."""

    def __init__(self, folder: Path) -> None:
        command = [str(shipped.python()), "-W", "ignore", "-m", "benchmarks.bare"]
        with (folder / "bare.log").open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=ROOT
            )

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *_: object) -> None:
        stop(self.process)

    def measure(self, *, sessions: int, turns: int, sample: int) -> dict[str, list[float]]:
        """Milliseconds of the last `sample` turns of each session; see `benchmarks.bare`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        command = json.dumps({"sessions": sessions, "turns": turns, "sample": sample})
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise NotStartedError("bare ADK ended instead of measuring; see bare.log")
        taken: dict[str, Any] = json.loads(line)
        return taken
