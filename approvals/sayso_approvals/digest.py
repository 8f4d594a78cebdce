"""Digests of calls: what was approved is what runs.

    NotCanonical            the value has no canonical JSON form
    └─ UnsafeNumber         a number whose digest would stand for several different numbers

The canonical form is RFC 8785, which writes 3 and 3.0 alike; that matters because some transports turn every integer
into a double.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import rfc8785

#: The largest integer that a double, and so JSON as most programs read it, holds without a neighbour.
LARGEST = 2**53 - 1


class NotCanonical(ValueError):  # noqa: N818  reads as a statement about the value
    """The value cannot be written as canonical JSON. `path` is where, such as `$.items[2]`."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path


class UnsafeNumber(NotCanonical):
    """An integer beyond ±(2^53−1), or not a finite number: distinct values would share one digest."""


def canonical(value: Any) -> str:
    """RFC 8785 text of a JSON value. Raises `UnsafeNumber` or `NotCanonical`, both naming the path."""
    try:
        _check(value, "$")
        return rfc8785.dumps(value).decode()
    except RecursionError:
        raise NotCanonical("$", "it is nested too deeply") from None
    except (rfc8785.CanonicalizationError, UnicodeError) as error:
        raise NotCanonical("$", f"it has no canonical JSON form ({error})") from None


def digest(server: str, endpoint: str, tool: str, arguments: Any) -> str:
    """`sha256:<hex>` over what runs: the tool server's key, its URL or command, its own tool name, the arguments."""
    what = {"arguments": arguments, "endpoint": endpoint, "server": server, "tool": tool}
    return "sha256:" + hashlib.sha256(canonical(what).encode()).hexdigest()


def loads_strict(text: str | bytes) -> Any:
    """JSON with no room for two readings: duplicate keys, NaN, infinities and overflowing numbers are refused.

    Raises `NotCanonical`.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except NotCanonical:
        raise
    except (ValueError, RecursionError) as error:
        raise NotCanonical("$", f"it is not JSON ({error})") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise NotCanonical("$", f"an object has the same key twice: {', '.join(twice)}")
    return found


def _no_constant(name: str) -> Any:
    raise UnsafeNumber("$", f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise UnsafeNumber("$", f"{text} is too large a number")
    return number


def _check(value: Any, path: str) -> None:
    match value:
        case None | bool() | str():
            return
        case int() if abs(value) > LARGEST:
            raise UnsafeNumber(path, f"{value} is beyond ±(2^53−1): send it as a string")
        case float() if not math.isfinite(value):
            raise UnsafeNumber(path, f"{value} is not a JSON number")
        case float() if abs(value) > LARGEST:
            # Every double this large is an integer, and stands for its neighbours too.
            raise UnsafeNumber(path, f"{value!r} is beyond ±(2^53−1): send it as a string")
        case int() | float():
            return
        case dict():
            for name, item in value.items():
                if not isinstance(name, str):
                    raise NotCanonical(path, f"the key {name!r} is not a string")
                _check(item, f"{path}.{name}")
        case list() | tuple():
            for number, item in enumerate(value):
                _check(item, f"{path}[{number}]")
        case _:
            raise NotCanonical(path, f"{type(value).__name__} is not a JSON type")
