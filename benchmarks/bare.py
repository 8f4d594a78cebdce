"""Bare ADK, in process and in memory: the floor that no server can go below.

Runs in a process of its own and measures itself there, on demand: each line on stdin is a JSON object
`{"sessions": n, "turns": n, "sample": n}` and is answered by one line with the milliseconds of the last `sample`
turns of each session, `{"pause": [...], "resume": [...]}`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from typing import Any

from google.adk.events.event import Event
from google.adk.runners import Runner
from google.genai import types

from benchmarks import scenario
from benchmarks.adk_agent import agent, runner

CONFIRMATION = "adk_request_confirmation"


async def run(bench: Runner, session_id: str, part: types.Part) -> list[Event]:
    """One `run_async` to its end."""
    message = types.Content(role="user", parts=[part])
    return [event async for event in bench.run_async(user_id="bench", session_id=session_id, new_message=message)]


async def measure(bench: Runner, *, sessions: int, turns: int, sample: int) -> dict[str, list[float]]:
    """Milliseconds of each pause and each resume in the last `sample` turns of each session."""
    taken: dict[str, list[float]] = {"pause": [], "resume": []}
    for _ in range(sessions):
        session = await bench.session_service.create_session(app_name=scenario.AGENT, user_id="bench")
        for turn in range(1, turns + 1):
            began = time.perf_counter()
            events = await run(bench, session.id, types.Part(text=scenario.REQUEST))
            paused = time.perf_counter()
            question = next(c for e in events for c in e.get_function_calls() if c.name == CONFIRMATION)
            yes = types.FunctionResponse(name=CONFIRMATION, id=question.id, response={"confirmed": True})
            resumed = time.perf_counter()
            events = await run(bench, session.id, types.Part(function_response=yes))
            ended = time.perf_counter()
            if not any(scenario.ANSWER in (p.text or "") for e in events for p in parts_of(e)):
                raise SystemExit(f"bare ADK did not finish turn {turn}: {events[-1]}")
            await run(bench, session.id, types.Part(text=scenario.QUESTION))
            if turn > turns - sample:
                taken["pause"].append((paused - began) * 1000)
                taken["resume"].append((ended - resumed) * 1000)
    return taken


def parts_of(event: Event) -> list[types.Part]:
    """An event's parts; none where it has no content."""
    return (event.content and event.content.parts) or []


async def serve() -> None:
    """Answers commands until stdin ends."""
    bench = runner(agent())
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command: dict[str, Any] = json.loads(line)
        print(json.dumps(await measure(bench, **command)), flush=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    asyncio.run(serve())
