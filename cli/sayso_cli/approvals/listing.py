"""`list`, `show` and `--watch`: what waits, and what became of it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from sayso_cli.approvals.rows import PENDING_STATES, Row, expiry
from sayso_cli.output import Format, coloured, document, one_line, painter, pretty, safe, span, table

EVERY = 0.5  # seconds between looks with --watch

_STATE_STYLES = {
    "pending": "yellow",
    "approved": "green",
    "rejected": "red",
    "integrity": "bold red",
    "orphaned": "magenta",
}


def listed(rows: Sequence[Row], form: Format, now: float) -> str:
    """The listing in `form`; `now` is in seconds since the epoch."""
    if form in (Format.JSON, Format.YAML):
        return document([row.document() for row in rows], form)
    if not rows:
        return "Nothing waits for a decision.\n"
    wide = form is Format.WIDE
    headers = ["ID", "AGENT", "TOOL", "ARGUMENTS", "STATE", "EXECUTION", "AGE", "EXPIRES"]
    if wide:
        headers += ["SERVER", "SESSION", "CALL", "KIND", "BY", "REQUIRED BY", "DIGEST"]
    return table(headers, [_cells(row, wide, now) for row in rows], {"STATE": style_of, "EXECUTION": style_of})


def _cells(row: Row, wide: bool, now: float) -> list[str]:
    shown = row.document()
    pause, until = row.view.pause, expiry(row.view)
    left = span(until - now) if row.state in PENDING_STATES and until is not None else "-"
    cells = [
        row.short,
        str(row.agent),
        str(shown["tool"]),
        one_line(shown["arguments"], 0 if wide else 60),
        row.state,
        str(shown["execution"]),
        span(now - pause.opened_at),
        left,
    ]
    if wide:
        requirements = ", ".join(shown["requirements"])
        cells += [shown["server"], shown["session"], shown["call"], shown["kind"], shown["by"] or "-"]
        cells += [requirements or "-", shown["digest"]]
    return cells


def style_of(cell: str) -> str:
    """The colour of a state or execution."""
    return "bold red" if cell == "outcome_unknown" else _STATE_STYLES.get(cell, "")


def shown(row: Row, form: Format) -> str:
    """One call with everything that helps to decide about it."""
    details = row.details()
    if form in (Format.JSON, Format.YAML):
        return document(details, form)
    paint = painter()
    lines = [f"{paint(safe(details['tool']), 'bold')}  on {safe(details['server'])}  {paint(row.state, 'bold')}", ""]
    lines += _fields(details, ("id", "agent", "session", "run", "call", "kind", "requester", "path", "requirements"))
    lines += ["  arguments", pretty(details["arguments"], 4)]
    if details["hint"]:
        lines += ["  hint", *(f"    {safe(line)}" for line in str(details["hint"]).splitlines())]
    lines += _fields(details, ("openedAt", "expiresAt", "execution", "by", "via", "decidedAt", "reason"))
    lines += _fields(details, ("attempt", "startedAt", "finishedAt", "note", "endpoint", "digest"))
    if details["result"] is not None:
        lines += ["  result", pretty(details["result"], 4)]
    lines += ["", *advice(row)]
    return "\n".join(lines).rstrip() + "\n"


def advice(row: Row) -> list[str]:
    """What can be done about the call now, as commands."""
    if row.doubtful:
        options = ("--retry", "--result JSON", "--abandon")
        return [f"  sayso approvals settle {row.short} {option}" for option in options]
    if not row.view.intact:
        return [f"  sayso approvals cancel {row.short}"]
    if row.state in PENDING_STATES:
        return [f"  sayso approvals {verb} {row.short}" for verb in ("approve", "reject", "cancel")]
    return []


def _fields(details: dict[str, Any], names: Sequence[str]) -> list[str]:
    lines = []
    for name in names:
        value = details[name]
        if value in (None, "", [], ()):
            continue
        text = ", ".join(str(part) for part in value) if isinstance(value, list) else str(value)
        lines.append(f"  {name:<13} {safe(text)}")
    return lines


async def watch(read: Callable[[], Awaitable[Sequence[Row]]], form: Format) -> None:
    """Shows the listing again whenever it has changed, until interrupted.

    On a terminal the old one is wiped; elsewhere, and with JSON or YAML, each new one follows the last.
    """
    last: object = None
    redraw = sys.stdout.isatty() and form in (Format.TABLE, Format.WIDE)
    while True:
        rows = await read()
        content = [row.document() for row in rows]
        if content != last or redraw:
            text = listed(rows, form, time.time())
            if redraw:
                text = "\x1b[H\x1b[2J\x1b[3J" + _heading() + text
            elif form is Format.YAML:
                text = "---\n" + text
            sys.stdout.write(text)
            sys.stdout.flush()
        last = content
        await asyncio.sleep(EVERY if not redraw else max(EVERY, 1.0))


def _heading() -> str:
    stamp = time.strftime("%H:%M:%S")
    text = f"sayso approvals list --watch    {stamp}    Ctrl-C ends it"
    return (painter()(text, "dim") if coloured(sys.stdout) else text) + "\n\n"
