"""What is wrong with a manifest, said once and in one form: where, what was found, what was expected, what to do.

    SaysoError
    ├── ManifestError   files that cannot be read as manifests; raised by `sayso_api.manifests`
    └── CompileError    manifests that do not fit together; raised by `sayso_api.compile`

Both carry every fault that was found, not the first, and print as one text that a person can work through.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

Path = tuple[str | int, ...]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LONGEST_QUOTE = 80


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing to put right.

    `path` is the field, such as `spec.tools[1].mcpServer.name`, and empty when the whole document is meant.
    `file` is empty for objects that came from no file. `document` counts from 1 within its file, 0 when the
    file as a whole is meant; `line` counts from 1, None when unknown. `name` is `<namespace>/<name>`.
    """

    found: str
    expected: str
    fix: str = ""
    path: str = ""
    file: str = ""
    document: int = 0
    line: int | None = None
    kind: str = ""
    name: str = ""

    def __str__(self) -> str:
        place = self.file
        if self.line is not None:
            place += f":{self.line}"
        if self.document:
            place += f" (document {self.document})" if place else f"document {self.document}"
        thing = f"{self.kind} {self.name}".strip()
        head = ": ".join(part for part in (place, thing, self.path) if part)
        body = [("found", self.found), ("expected", self.expected), ("fix", self.fix)]
        return "\n".join([head, *(f"    {label + ':':<9} {text}" for label, text in body if text)])

    def as_dict(self) -> dict[str, Any]:
        """For `-o json`: every field by its name."""
        return asdict(self)


class SaysoError(Exception):
    """What every error of this package has in common: `faults`, at least one, in the order of the files."""

    headline = "not usable"

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__(report(self.headline, self.faults))


class ManifestError(SaysoError):
    """Files that cannot be read as manifests. Nothing of them was taken, faultless documents included."""

    headline = "in the manifests"


class CompileError(SaysoError):
    """Manifests that are well-formed each, but do not fit together; no configuration was made."""

    headline = "between the manifests"


def report(headline: str, faults: Sequence[Fault]) -> str:
    """All faults as one text, counted in its first line."""
    count = f"{len(faults)} fault{'' if len(faults) == 1 else 's'} {headline}"
    return "\n\n".join([count, *map(str, faults)])


def write_path(path: Path) -> str:
    """`("spec", "tools", 1, "mcpServer")` as `spec.tools[1].mcpServer`; odd keys stand quoted in brackets."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{quote(step)}]"
    return text


def quote(value: object) -> str:
    """`value` as a person wrote it, on one line and cut at a readable length; never more than that of a hostile one."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if not isinstance(value, str):
        return str(value)[:_LONGEST_QUOTE]
    cut = value if len(value) <= _LONGEST_QUOTE else value[: _LONGEST_QUOTE - 1] + "…"
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut) + '"'


def listing(values: Iterable[str], *, last: str = "or") -> str:
    """`a, b or c`."""
    words = list(values)
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else "".join(words)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion for a misspelt word, or nothing when no known one is near. Case and separators do not count."""
    by_form = {_form(name): name for name in known}
    near = difflib.get_close_matches(_form(word), by_form, n=1, cutoff=0.7)
    return f"did you mean {by_form[near[0]]}?" if near else ""


def _form(word: str) -> str:
    return word.replace("_", "").replace("-", "").lower()
