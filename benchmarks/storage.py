"""What the disk and Redis cost by themselves, to read the other numbers by."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from redis.asyncio import Redis


def fsync_milliseconds(folder: Path, samples: int) -> list[float]:
    """Appending 512 bytes to a file and syncing it, `samples` times."""
    taken: list[float] = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(samples):
            began = time.perf_counter()
            file.write(b"x" * 512)
            file.flush()
            os.fsync(file.fileno())
            taken.append((time.perf_counter() - began) * 1000)
    return taken


async def redis_milliseconds(url: str, samples: int) -> dict[str, list[float]]:
    """Round trips of `PING`, and of a 512 byte `SET` that Redis syncs before it answers."""
    redis = Redis.from_url(url)
    try:
        taken: dict[str, list[float]] = {"ping": [], "write": []}
        for index in range(samples):
            began = time.perf_counter()
            await redis.ping()
            pinged = time.perf_counter()
            await redis.set(f"bench:{index % 8}", b"x" * 512)
            taken["ping"].append((pinged - began) * 1000)
            taken["write"].append((time.perf_counter() - pinged) * 1000)
        return taken
    finally:
        await redis.aclose()


async def redis_facts(url: str) -> dict[str, str]:
    """Which Redis this is, and how it keeps its promises."""
    redis = Redis.from_url(url, decode_responses=True)
    try:
        info = await redis.info("server")
        sync = await redis.config_get("appendfsync")
        return {"redis": str(info["redis_version"]), "appendfsync": str(sync["appendfsync"])}
    finally:
        await redis.aclose()
