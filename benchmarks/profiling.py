"""Where Sayso's CPU time goes while it pauses and resumes; the table of docs/performance.md is written from here."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import measure, processes
from benchmarks.run import DEEP

PAGE = processes.ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- profile: begin -->", "<!-- profile: end -->"
SHALLOW_SESSIONS = 300
DEEP_SESSIONS = 4


async def run(say: Callable[[str], None]) -> str:
    """Samples a replica at turn 1 and in sessions of `DEEP` turns, rewrites the page's table, and returns it."""
    build = processes.ROOT / "build"
    build.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="profile-", dir=build))
    async with processes.redis(folder) as redis_url:
        say("sessions of one turn")
        first = await sample(folder, redis_url, sessions=SHALLOW_SESSIONS, turns=1)
        say(f"sessions of {DEEP} turns")
        deep = await sample(folder, redis_url, sessions=DEEP_SESSIONS, turns=DEEP)
    shutil.rmtree(folder)
    text = render(first, deep)
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    PAGE.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}")
    return text


async def sample(folder: Path, redis_url: str, *, sessions: int, turns: int) -> dict[str, float]:
    """CPU milliseconds per turn, by library, without start and warm-up."""
    out = folder / f"samples-{turns}.json"
    sampler = str(Path(__file__).with_name("sampler.py"))
    with processes.sayso(folder, redis_url, turns=DEEP, before=[sampler, str(out)]) as server:
        await measure.latencies(server.url, sessions=20, turns=1, sample=1)
        os.kill(server.process.pid, signal.SIGUSR1)
        await measure.latencies(server.url, sessions=sessions, turns=turns, sample=turns)
    found = json.loads(out.read_text())
    each = found["cpu_seconds"] * 1000 / sum(found["samples"].values()) / (sessions * turns)
    return {group: count * each for group, count in found["samples"].items()}


def render(first: dict[str, float], deep: dict[str, float]) -> str:
    """A Markdown table, the most expensive library of the deep sessions first."""
    groups = sorted(first.keys() | deep.keys(), key=lambda group: -deep.get(group, 0.0))
    lines = [
        f"Sampled on {time.strftime('%Y-%m-%d')}, CPU milliseconds per turn (message, pause, approval, "
        "answer, one plain question):",
        "",
        f"| where | one-turn sessions | | {DEEP}-turn sessions | |",
        "|---|---:|---:|---:|---:|",
    ]
    totals = sum(first.values()), sum(deep.values())
    for group in [*groups, "all"]:
        cells = [totals[i] if group == "all" else part.get(group, 0.0) for i, part in enumerate((first, deep))]
        shares = [f"{cell:.2f} | {cell / total:.0%}" for cell, total in zip(cells, totals, strict=True)]
        lines.append(f"| {group} | {' | '.join(shares)} |")
    return "\n".join(lines)
