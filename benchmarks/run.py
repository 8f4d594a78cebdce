"""One measurement: every system, in alternating rounds, so that what else the machine does touches all alike."""

from __future__ import annotations

import platform
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from benchmarks import client, measure, processes, storage
from benchmarks.processes import Server

BARE, TO_A2A, SAYSO, SAYSO_MCP, SAYSO_TWO = (
    "bare ADK",
    "to_a2a",
    "Sayso",
    "Sayso, MCP tool",
    "Sayso, 2 replicas",
)
DEEP = 60


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured. `deep_sample` turns are sampled at the end of each session of `DEEP` turns."""

    rounds: int = 3
    sessions: int = 20
    deep_sample: int = 5
    load_seconds: float = 8.0
    load_limit: int = 4000
    starts: int = 3
    probes: int = 300


QUICK = Size(rounds=1, sessions=5, deep_sample=2, load_seconds=3.0, starts=1, probes=50)

Say = Callable[[str], None]


async def run(size: Size, say: Say) -> dict[str, Any]:
    """Measures everything and returns what the report and the results file hold. Takes minutes."""
    taken_at = datetime.now(UTC).isoformat(timespec="seconds")
    about = machine()
    with _folder() as folder:
        async with processes.redis(folder) as redis_url:
            about |= await storage.redis_facts(redis_url)
            say("disk and Redis alone")
            disk = await probes(folder, redis_url, size.probes)
            start = {}
            for name, launch in _launchers(folder, redis_url).items():
                say(f"start and memory: {name}")
                start[name] = await starts(launch, size.starts)
            served = await serving(size, folder, redis_url, say)
    about["load_after"] = round(psutil.getloadavg()[0], 2)
    return {"taken_at": taken_at, "machine": about, "disk": disk, "start": start, **served}


async def probes(folder: Path, redis_url: str, samples: int) -> dict[str, dict[str, float]]:
    """ "ping", "write", "fsync" -> milliseconds."""
    found = await storage.redis_milliseconds(redis_url, samples)
    found["fsync"] = storage.fsync_milliseconds(folder, samples)
    return {name: summary(taken) for name, taken in found.items()}


async def serving(size: Size, folder: Path, redis_url: str, say: Say) -> dict[str, Any]:
    """Latency and throughput, with every server up at once."""
    with ExitStack() as stack:
        mcp = stack.enter_context(processes.mcp_server(folder))
        servers = {
            TO_A2A: stack.enter_context(processes.to_a2a(folder)),
            SAYSO: stack.enter_context(processes.sayso(folder, redis_url, turns=DEEP)),
            SAYSO_MCP: stack.enter_context(processes.sayso(folder, redis_url, turns=DEEP, mcp_url=mcp.url + "mcp")),
        }
        bare = stack.enter_context(processes.Bare(folder))
        taken = await latency(size, bare, servers, say)
        second = stack.enter_context(processes.sayso(folder, redis_url, turns=DEEP))
        await measure.latencies(second.url, sessions=3, turns=3, sample=1)
        groups = {
            TO_A2A: [servers[TO_A2A]],
            SAYSO: [servers[SAYSO]],
            SAYSO_TWO: [servers[SAYSO], second],
        }
        return {"latency": taken, "throughput": await throughput(size, groups, say)}


async def latency(
    size: Size, bare: processes.Bare, servers: dict[str, Server], say: Say
) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """system -> turn ("1", "60") -> pause, resume, cycle -> p50, p95 in milliseconds, n."""
    taken = {(name, turn): measure.Latencies() for name in (BARE, *servers) for turn in (1, DEEP)}
    bare.measure(sessions=3, turns=3, sample=1)
    for server in servers.values():
        await measure.latencies(server.url, sessions=3, turns=3, sample=1)
    for number in range(1, size.rounds + 1):
        for turn, sessions, sample in ((1, size.sessions, 1), (DEEP, 1, size.deep_sample)):
            say(f"turn {turn}, round {number} of {size.rounds}")
            taken[BARE, turn].add(**bare.measure(sessions=sessions, turns=turn, sample=sample))
            for name, server in servers.items():
                found = await measure.latencies(server.url, sessions=sessions, turns=turn, sample=sample)
                taken[name, turn].add(found.pause, found.resume)
    return {
        name: {
            str(turn): {
                "pause": summary(taken[name, turn].pause),
                "resume": summary(taken[name, turn].resume),
                "cycle": summary(taken[name, turn].cycle),
            }
            for turn in (1, DEEP)
        }
        for name in (BARE, *servers)
    }


async def throughput(
    size: Size, groups: dict[str, list[Server]], say: Say
) -> dict[str, dict[str, dict[str, float | int]]]:
    """system -> clients ("1", "16") -> cycles a second, the server's CPU per cycle, the load generator's cores."""
    total: dict[tuple[str, int], list[measure.Throughput]] = {}
    spent: dict[tuple[str, int], float] = {}
    for number in range(1, size.rounds + 1):
        for clients in (1, 16):
            for name, group in groups.items():
                say(f"{clients} clients, {name}, round {number} of {size.rounds}")
                urls, before = [server.url for server in group], sum(server.cpu_seconds() for server in group)
                found = await measure.throughput(
                    urls, clients=clients, seconds=size.load_seconds, limit=size.load_limit
                )
                total.setdefault((name, clients), []).append(found)
                after = sum(server.cpu_seconds() for server in group)
                spent[name, clients] = spent.get((name, clients), 0.0) + after - before
    return {name: {str(n): _joined(total[name, n], spent[name, n]) for n in (1, 16)} for name in groups}


def _joined(parts: Sequence[measure.Throughput], cpu: float) -> dict[str, float | int]:
    cycles, seconds = sum(p.cycles for p in parts), sum(p.seconds for p in parts)
    return {
        "cycles_per_second": cycles / seconds,
        "cycles": cycles,
        "server_cpu_ms": cpu * 1000 / cycles,
        "client_cores": sum(p.client_cpu for p in parts) / seconds,
    }


async def starts(launch: Callable[[], AbstractContextManager[Server]], count: int) -> dict[str, float]:
    """Medians over `count` starts: until ready, and after a first cycle in the fresh process."""
    rows: list[dict[str, float]] = []
    for _ in range(count):
        with launch() as server:
            async with client.connect() as http:
                began = time.perf_counter()
                paused = await client.request(http, server.url, uuid.uuid4().hex)
                await client.approve(http, server.url, paused)
            rows.append(
                {
                    "ready_wall": server.start.wall,
                    "ready_cpu": server.start.cpu,
                    "first_cycle_wall": time.perf_counter() - began,
                    "first_cycle_cpu": server.cpu_seconds(),
                    "resident_mib": server.resident_mib(),
                }
            )
    return {key: measure.percentile([row[key] for row in rows], 0.5) for key in rows[0]}


def _launchers(folder: Path, redis_url: str) -> dict[str, Callable[[], AbstractContextManager[Server]]]:
    return {
        TO_A2A: lambda: processes.to_a2a(folder),
        SAYSO: lambda: processes.sayso(folder, redis_url, turns=DEEP),
    }


def summary(samples: Sequence[float]) -> dict[str, float]:
    """p50 and p95 and how many samples they stand on."""
    return {
        "p50": measure.percentile(samples, 0.5),
        "p95": measure.percentile(samples, 0.95),
        "n": len(samples),
    }


def machine() -> dict[str, Any]:
    """What the numbers were taken on."""
    return {
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "google_adk": version("google-adk"),
        "load_before": round(psutil.getloadavg()[0], 2),
    }


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder on the disk of the checkout (a temporary file system would make every sync look free)."""
    build = processes.ROOT / "build"
    build.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=build))
    try:
        yield folder
    except BaseException:
        print(f"the logs are kept in {folder.relative_to(processes.ROOT)}")
        raise
    else:
        shutil.rmtree(folder)
