"""Runs a module and samples where its main thread spends CPU time: `sampler.py OUT -m MODULE ARGS…`.

A timer that counts the process' CPU time interrupts it every few milliseconds (the kernel's clock decides how many);
the handler notes to which library the running code belongs. The CPU time that passed is noted too, and shared out by
samples. That disturbs far less than a tracing profiler, which makes many small calls look expensive. A sample
belongs to the innermost frame of a library that `GROUPS` names, so that what the standard library does is charged to
whoever asked for it. SIGUSR1 forgets all samples (what came before was start and warm-up).
"""

from __future__ import annotations

import json
import runpy
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType

INTERVAL_SECONDS = 0.002

#: Part of a source file's path -> the group it belongs to; the first that fits.
GROUPS: tuple[tuple[str, str], ...] = (
    ("/google/adk/", "ADK"),
    ("/google/genai/", "google-genai types"),
    ("/a2a/", "a2a-sdk"),
    ("/mcp/", "mcp"),
    ("/opentelemetry/", "OpenTelemetry"),
    ("/redis/", "redis client"),
    ("/hiredis/", "redis client"),
    ("/pydantic", "pydantic"),
    ("/json/", "JSON"),
    ("/rfc8785", "JSON"),
    ("/starlette/", "HTTP"),
    ("/uvicorn/", "HTTP"),
    ("/httpx", "HTTP"),
    ("/httpcore", "HTTP"),
    ("/anyio/", "HTTP"),
    ("/prometheus_client/", "metrics"),
    ("/logging/", "logging"),
    ("/copy.py", "copying"),
    ("/sayso_runtime/", "Sayso"),
    ("/sayso_approvals/", "Sayso"),
    ("/sayso_api/", "Sayso"),
    ("/asyncio/", "event loop"),
)

samples: Counter[str] = Counter()
began = 0.0
_groups: dict[str, str | None] = {}


def group_of(filename: str) -> str | None:
    """The group of a source file; None where its caller is to be charged."""
    if filename not in _groups:
        _groups[filename] = next((group for part, group in GROUPS if part in filename), None)
    return _groups[filename]


def take(_: int, frame: FrameType | None) -> None:
    """Notes one sample."""
    while frame is not None:
        group = group_of(frame.f_code.co_filename)
        if group is not None:
            samples[group] += 1
            return
        frame = frame.f_back
    samples["event loop"] += 1


def forget(_: int, __: FrameType | None) -> None:
    """Begins anew."""
    global began
    samples.clear()
    began = time.process_time()


def main() -> None:
    """Runs the module and writes the samples, as JSON, when it ends."""
    out = Path(sys.argv[1])
    if sys.argv[2] != "-m":
        raise SystemExit("usage: sampler.py OUT -m MODULE ARGS…")
    module, sys.argv = sys.argv[3], sys.argv[3:]
    signal.signal(signal.SIGPROF, take)
    signal.signal(signal.SIGUSR1, forget)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL_SECONDS, INTERVAL_SECONDS)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        out.write_text(json.dumps({"cpu_seconds": time.process_time() - began, "samples": dict(samples)}))


if __name__ == "__main__":
    main()
