"""Logs: one JSON object a line for machines, one short line for people at a terminal.

`bind` names the run, session and call that the current task works on; every line of that task then carries them. What
a tool was called with belongs in the ledger, not in a log: `outline` says enough about arguments to recognise them.
Secrets given to `configure` are masked wherever they turn up, stack traces included.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

#: Longest message and longest stack trace that a line carries, in characters.
MAX_MESSAGE = 2_000
MAX_TRACE = 16_000
#: Secrets shorter than this are not masked: they would blot out ordinary words.
MIN_SECRET = 6

_bound: ContextVar[Mapping[str, str]] = ContextVar("sayso_log_ids", default={})  # noqa: B039  never changed in place
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def bind(**ids: str) -> None:
    """Adds ids (`run`, `session`, `call`) to every line that the current task logs from here on. An empty one is
    taken away."""
    merged = {**_bound.get(), **ids}
    _bound.set({key: value for key, value in merged.items() if value})


def bound() -> Mapping[str, str]:
    """The ids that lines carry now."""
    return _bound.get()


def outline(arguments: Mapping[str, Any]) -> str:
    """Arguments by name and size, never by value: `amount (2), order_id (5)`, sizes in characters of JSON."""
    sizes = (f"{name} ({len(json.dumps(value, default=str))})" for name, value in sorted(arguments.items()))
    return ", ".join(sizes) or "no arguments"


def configure(
    level: int = logging.INFO,
    *,
    stream: TextIO | None = None,
    secrets: Iterable[str] = (),
    human: bool | None = None,
) -> None:
    """Makes this the process' only log. `human` None: lines for people where `stream` (default: standard error) is a
    terminal."""
    target = stream if stream is not None else sys.stderr
    mask = Mask(secrets)
    for_people = target.isatty() if human is None else human
    handler = logging.StreamHandler(target)
    handler.setFormatter(HumanFormatter(mask) if for_people else JsonFormatter(mask))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    for noisy in ("httpx", "httpcore", "mcp", "uvicorn.error"):
        logging.getLogger(noisy).setLevel(max(level, logging.WARNING))
    # ADK warns of what is usual here: a model without token counts, delegations that wait for a person.
    logging.getLogger("google_adk").setLevel(max(level, logging.ERROR))


class Mask:
    """Takes secrets out of texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        # Longest first, so that a secret which begins with another one disappears whole.
        wanted = sorted({s for s in secrets if len(s) >= MIN_SECRET}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, wanted))) if wanted else None

    def __call__(self, text: str) -> str:
        return self._pattern.sub("***", text) if self._pattern else text


class JsonFormatter(logging.Formatter):
    """`{"time", "level", "logger", "message", run?, session?, call?, …extra, "error"?}` on one line."""

    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds")[:-6] + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _cut(record.getMessage(), MAX_MESSAGE),
            **bound(),
        }
        for key, value in vars(record).items():
            if key not in _STANDARD and key not in line:
                line[key] = value if isinstance(value, int | float | bool) else _extra(value)
        if record.exc_info:
            line["error"] = _cut(self.formatException(record.exc_info), MAX_TRACE)
        return self._mask(json.dumps(line, ensure_ascii=False, default=str))


class HumanFormatter(logging.Formatter):
    """`12:30:01 warning  message  (session s1, run r1)`; control characters of others do not reach the terminal."""

    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        message = _visible(_cut(record.getMessage(), MAX_MESSAGE))
        ids = ", ".join(f"{key} {_visible(value)}" for key, value in bound().items())
        line = f"{at} {record.levelname.lower():<8} {message}" + (f"  ({ids})" if ids else "")
        if record.exc_info:
            trace = _cut(self.formatException(record.exc_info), MAX_TRACE)
            line += "\n" + "\n".join("    " + _visible(part) for part in trace.split("\n"))
        return self._mask(line)


def _extra(value: Any) -> Any:
    """Extra fields are ids and short words; a structure is shown by its size."""
    if isinstance(value, str):
        return _cut(value, 200)
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return [_cut(item, 200) for item in value[:20]]
    if isinstance(value, Mapping):
        return outline({str(key): item for key, item in value.items()})
    return _cut(str(value), 200)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def _visible(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
