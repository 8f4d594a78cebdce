"""The load: sessions of a given depth for latencies, and a number of clients at once for throughput.

Both are bounded, in count and in time. With several replicas the approval always goes to another replica than the
one that paused, which is what a load balancer may do at any moment.
"""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks import client

#: No section of the measurement may take longer, in seconds.
SECTION_SECONDS = 300.0


@dataclass(slots=True)
class Latencies:
    """Milliseconds of single pauses and resumes."""

    pause: list[float] = field(default_factory=list)
    resume: list[float] = field(default_factory=list)

    def add(self, pause: Sequence[float], resume: Sequence[float]) -> None:
        """Joins another round's samples."""
        self.pause.extend(pause)
        self.resume.extend(resume)

    @property
    def cycle(self) -> list[float]:
        """Pause and resume together, sample by sample."""
        return [pause + resume for pause, resume in zip(self.pause, self.resume, strict=True)]


async def latencies(url: str, *, sessions: int, turns: int, sample: int) -> Latencies:
    """Pauses and resumes in the last `sample` turns of each of `sessions` sessions, one after the other."""
    taken = Latencies()
    async with asyncio.timeout(SECTION_SECONDS), client.connect() as http:
        for _ in range(sessions):
            context = uuid.uuid4().hex
            for turn in range(1, turns + 1):
                began = time.perf_counter()
                paused = await client.request(http, url, context)
                asked = time.perf_counter()
                await client.approve(http, url, paused)
                ended = time.perf_counter()
                await client.ask(http, url, context)
                if turn > turns - sample:
                    taken.add([(asked - began) * 1000], [(ended - asked) * 1000])
    return taken


@dataclass(frozen=True, slots=True)
class Throughput:
    """Cycles that ended, and the seconds and the load generator's CPU seconds that it took."""

    cycles: int
    seconds: float
    client_cpu: float

    @property
    def per_second(self) -> float:
        """Cycles a second."""
        return self.cycles / self.seconds


async def throughput(urls: Sequence[str], *, clients: int, seconds: float, limit: int) -> Throughput:
    """`clients` people at once, each beginning a session per cycle, for `seconds` or until `limit` cycles ended."""
    ended = 0
    deadline = time.monotonic() + seconds

    async def person(number: int) -> None:
        nonlocal ended
        turn = number
        while time.monotonic() < deadline and ended < limit:
            here, there = urls[turn % len(urls)], urls[(turn + 1) % len(urls)]
            paused = await client.request(http, here, uuid.uuid4().hex)
            await client.approve(http, there, paused)
            ended += 1
            turn += 1

    async with asyncio.timeout(seconds + 60.0), client.connect(clients) as http:
        began, cpu = time.perf_counter(), time.process_time()
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(person(number))
        return Throughput(ended, time.perf_counter() - began, time.process_time() - cpu)


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least `share` (0 to 1) of all samples do not exceed."""
    ordered = sorted(samples)
    return ordered[max(1, math.ceil(share * len(ordered))) - 1]
