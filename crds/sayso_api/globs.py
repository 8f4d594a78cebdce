"""The one definition of a glob in Sayso: what a `toolNames`, `requireApproval` or `idempotentTools` entry matches.

`*` stands for any run of characters, the empty one included; `?` for exactly one character; everything else,
`[` included, stands for itself. Matching is case-sensitive and covers the whole name. Character classes are left
out on purpose: a gate has to be readable at a glance, and whether two entries can meet stays decidable.

Pure functions over strings, without regular expressions: an entry is written by people, and a hostile one must
not be able to make a match take exponential time.
"""

from __future__ import annotations

from collections.abc import Iterable

WILDCARDS = frozenset("*?")


def is_glob(entry: str) -> bool:
    """Whether `entry` holds a wildcard, and so may stand for more names than one."""
    return not WILDCARDS.isdisjoint(entry)


def matches(entry: str, name: str) -> bool:
    """Whether the whole of `name` is covered by `entry`. At most len(entry) × len(name) steps."""
    at = star = resume = 0
    seen_star = False
    position = 0
    while position < len(name):
        if at < len(entry) and entry[at] == "*":
            seen_star, star, resume = True, at, position
            at += 1
        elif at < len(entry) and entry[at] in ("?", name[position]):
            at += 1
            position += 1
        elif seen_star:
            # The last `*` takes one character more; earlier ones never need to be revisited.
            resume += 1
            at, position = star + 1, resume
        else:
            return False
    return all(character == "*" for character in entry[at:])


def first_match(entries: Iterable[str], name: str) -> str | None:
    """The first of `entries` that covers `name`; None when none does."""
    return next((entry for entry in entries if matches(entry, name)), None)


def intersects(one: str, other: str) -> bool:
    """Whether any name at all is covered by both entries: what makes a gate entry meaningful beside `toolNames`.

    For an entry without wildcards this is the same as `matches`.
    """
    # met[j]: some text is covered by what has been read of `one` together with other[:j]. A `*` on either side may
    # end here (look up or left) or swallow the other side's next character (look left or up): the same two cells.
    met = [True]
    for right in other:
        met.append(met[-1] and right == "*")
    for left in one:
        above, met = met, [met[0] and left == "*"]
        for j, right in enumerate(other):
            if "*" in (left, right):
                met.append(above[j + 1] or met[j])
            else:
                met.append(above[j] and (left == right or "?" in (left, right)))
    return met[-1]
