"""The children's log files, shown on the terminal as lines that people can read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sayso_cli.output import one_line, safe

#: Levels below this are in the file only.
_SHOWN = {"INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
_MESSAGE_FIELDS = ("message", "msg", "event")
#: Fields that say nothing on a terminal that the line does not say already.
_LEFT_OUT = frozenset({"time", "timestamp", "ts", "level", "logger", "agent", "replica", "namespace", *_MESSAGE_FIELDS})
_EVERY = 0.2  # seconds between looks at a file
_LONGEST = 1 << 20  # bytes of one line; more is cut


def human(raw: str) -> tuple[str, str] | None:
    """A log line as (level, text), safe to show; None below INFO. A line that is not JSON comes as it is."""
    try:
        entry = json.loads(raw)
    except ValueError:
        return "INFO", safe(raw)
    if not isinstance(entry, dict):
        return "INFO", safe(raw)
    level = str(entry.get("level", "INFO")).upper()
    if level not in _SHOWN and level != "INFO":
        return None
    message = next((str(entry[name]) for name in _MESSAGE_FIELDS if name in entry), "")
    rest = " ".join(f"{safe(name)}={_value(value)}" for name, value in entry.items() if name not in _LEFT_OUT)
    return level, " ".join(part for part in (safe(message), rest) if part)


def _value(value: Any) -> str:
    """Bare where that is unmistakable, as JSON where it is not."""
    if isinstance(value, str) and value and not any(character in value for character in ' "=\n'):
        return safe(value)
    return one_line(value, 300)


async def follow(path: Path, emit: Callable[[str], None], stop: asyncio.Event, *, start: int = 0) -> None:
    """Calls `emit` with each whole line appended to `path` after byte `start`, until `stop`; then once more what is
    there. A file that is not there yet is waited for."""
    position, rest = start, b""
    while True:
        ending = stop.is_set()
        data = _read(path, position)
        position += len(data)
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _LONGEST:
            lines, rest = [*lines, rest[:_LONGEST]], b""
        for line in lines:
            if line.strip():
                emit(line.decode("utf-8", "replace"))
        if ending:
            if rest.strip():
                emit(rest.decode("utf-8", "replace"))
            return
        if not data:
            try:
                await asyncio.wait_for(stop.wait(), _EVERY)
            except TimeoutError:
                continue


def size(path: Path) -> int:
    """Bytes in `path`; 0 where it is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _read(path: Path, position: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(position)
            return file.read(_LONGEST)
    except FileNotFoundError:
        return b""
