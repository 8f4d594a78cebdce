"""The little Markdown that the reference needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Text that fits into one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; every cell is Markdown already."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(cell(item) for item in row)} |" for row in rows]
    return "\n".join(lines)


def code(text: str) -> str:
    """Text in the type of code, also where it holds a backtick."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}" if text else ""
