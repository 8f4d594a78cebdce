"""Lengths of time as manifests write them: `24h`, `30m`, `90s`, `1h30m`.

Whole hours, minutes and seconds, in that order, each at most once and with at most six digits, and below
1000000h in all. A number without a
unit is refused: nobody should have to guess whether a time limit of `30` meant seconds or minutes.
"""

from __future__ import annotations

import re
from datetime import timedelta

PATTERN = r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$"
LIMIT = timedelta(hours=1_000_000)
EXPECTED = "a length of time above zero such as 24h, 30m, 90s or 1h30m"

_PARTS = re.compile(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?", re.ASCII)


def parse(text: str) -> timedelta:
    """The time that `text` names. ValueError for anything but a length above zero in the form above."""
    found = _PARTS.fullmatch(text)
    if found is None:
        raise ValueError(f"expected {EXPECTED}, found {text!r}")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    length = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if not timedelta(0) < length < LIMIT:
        raise ValueError(f"expected {EXPECTED}, found {text!r}")
    return length


def write(length: timedelta) -> str:
    """`length` in the form above, shortest first: `parse(write(x)) == x`. ValueError for what it cannot say."""
    total = length // timedelta(seconds=1)
    if length != timedelta(seconds=total) or not timedelta(0) < length < LIMIT:
        raise ValueError(f"expected whole seconds, above zero and below 1000000h, found {length}")
    hours, rest = divmod(total, 3600)
    minutes, seconds = divmod(rest, 60)
    return "".join(f"{value}{unit}" for value, unit in ((hours, "h"), (minutes, "m"), (seconds, "s")) if value)
