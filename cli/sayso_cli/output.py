"""Everything that is printed: tables, JSON, YAML, and text that nobody can use to move the cursor.

Arguments, hints and answers are written by models and tools. On a terminal, a control character in them could hide
a call or paint another one over it, so every piece of such text goes through `safe` before it is shown.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TextIO

from sayso_cli.errors import USAGE, CliError

#: Unicode categories that a terminal acts on or does not show: controls, format (bidi, zero width), surrogates,
#: private use, unassigned, and the two separators that some terminals take for line ends.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

_STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


class Format(StrEnum):
    """The values of `-o`. `TABLE` is what people get without it."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


def parse_format(text: str, allowed: Sequence[Format] = tuple(Format)) -> Format:
    """`text` as a format. CliError (usage) that lists the ones allowed."""
    if text in {one.value for one in allowed}:
        return Format(text)
    raise CliError(f"unknown output format {safe(text)!r}: use one of {', '.join(allowed)}", USAGE)


def safe(text: str, *, lines: bool = False) -> str:
    """`text` with everything that could act on a terminal written as an escape. `lines` keeps line feeds and tabs."""
    kept = "\n\t" if lines else ""
    return "".join(
        character if character in kept or unicodedata.category(character) not in _UNSAFE else _escape(character)
        for character in text
    )


def _escape(character: str) -> str:
    """The JSON spelling, so that escaped JSON text is still the same JSON."""
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def pretty(value: Any, indent: int = 0) -> str:
    """`value` as indented JSON, safe to show; `indent` spaces in front of every line."""
    text = safe(json.dumps(value, indent=2, ensure_ascii=False), lines=True)
    return "\n".join(" " * indent + line for line in text.split("\n"))


def one_line(value: Any, limit: int = 0) -> str:
    """`value` as JSON on one line, safe to show, cut to `limit` characters where it is above 0."""
    text = safe(json.dumps(value, ensure_ascii=False))
    return text if not limit or len(text) <= limit else text[: limit - 1] + "…"


def timestamp(seconds: float | None) -> str | None:
    """Seconds since the epoch as RFC 3339 in UTC, to the millisecond; None for None or 0 (never happened)."""
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def span(seconds: float) -> str:
    """A length of time as people say it: `45s`, `12m`, `3h`, `2d`. Negative lengths count as none."""
    left = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if left >= 2 * size:
            return f"{left // size}{unit}"
    return f"{left}s"


def coloured(stream: TextIO) -> bool:
    """Colours only on a terminal, and never where NO_COLOR is set or the terminal is dumb."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painter(stream: TextIO | None = None) -> Callable[[str, str], str]:
    """A function `(text, style words) -> text` that colours, or leaves alone, as `stream` allows."""
    if not coloured(stream or sys.stdout):
        return lambda text, style: text

    def paint(text: str, style: str) -> str:
        codes = ";".join(_STYLES[word] for word in style.split())
        return f"\x1b[{codes}m{text}\x1b[0m"

    return paint


def document(value: Any, form: Format) -> str:
    """`value` (mappings, lists, scalars) as JSON or YAML text that ends in a line feed."""
    if form is Format.YAML:
        import yaml

        return yaml.safe_dump(value, sort_keys=False, allow_unicode=False, default_flow_style=False)
    return safe(json.dumps(value, indent=2, ensure_ascii=False), lines=True) + "\n"


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    styles: Mapping[str, Callable[[str], str]] | None = None,
    stream: TextIO | None = None,
) -> str:
    """Columns for people. `styles` maps a header to a function from a cell to a style for it ("" for none).

    On a terminal, cells are folded to its width. Elsewhere every row is one line, however long, for `grep` and `awk`.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    target = stream or sys.stdout
    terminal = target.isatty()
    grid = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for header in headers:
        # Where a row is one line, nothing may be folded; on a terminal a cell may be, but never cut.
        grid.add_column(header, overflow="fold", no_wrap=not terminal)
    for row in rows:
        cells = []
        for header, cell in zip(headers, row, strict=True):
            style = styles[header](cell) if styles and header in styles else ""
            # Text, never a string: square brackets in a cell are not markup.
            cells.append(Text(safe(cell), style=style))
        grid.add_row(*cells)
    console = Console(
        file=target,
        no_color=not coloured(target),
        force_terminal=coloured(target),
        width=None if terminal else 100_000,
        highlight=False,
        emoji=False,
    )
    with console.capture() as captured:
        console.print(grid)
    return "\n".join(line.rstrip() for line in captured.get().split("\n"))
