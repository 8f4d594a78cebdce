"""JSON from outside, read so that nothing in it can mean two things.

    NotJson        the text is not JSON, or not JSON that may be believed (too deep, NaN, half a character)

Python's parser keeps the last of two equal keys. In a decision that would let one text say *reject* to whoever shows
it and *approve* to whoever runs it, so equal keys are reported and the caller refuses what they are part of.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

#: No honest message nests deeper; Python's own limit would end the process' stack instead of the request.
MAX_DEPTH = 64

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)


class NotJson(ValueError):  # noqa: N818  it describes the text
    """The text cannot be read as JSON that means one thing. The message says where and why."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A JSON value, and every key that some object in it had more than once."""

    value: Any
    duplicates: tuple[str, ...] = ()


def loads(source: bytes | str, *, max_depth: int = MAX_DEPTH) -> Parsed:
    """Reads one JSON text in UTF-8. Raises `NotJson`; never another error, whatever the bytes are."""
    duplicates: list[str] = []

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    duplicates.append(key)
                seen.add(key)
        return built

    try:
        text = source.decode("utf-8") if isinstance(source, bytes) else source
        value = json.loads(text, object_pairs_hook=build, parse_float=_finite, parse_constant=_refuse_constant)
        # Fewer brackets than the limit cannot nest beyond it: the walk is for suspicious texts only.
        if text.count("{") + text.count("[") > max_depth and _deeper_than(value, max_depth):
            raise NotJson(f"it nests deeper than {max_depth} levels")
        if _SURROGATE_ESCAPE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except NotJson:
        raise
    except UnicodeEncodeError as error:
        raise NotJson("it has half of a surrogate pair, which is no character") from error
    except RecursionError as error:
        raise NotJson(f"it nests deeper than {max_depth} levels") from error
    except ValueError as error:
        raise NotJson(str(error)) from error
    return Parsed(value, tuple(dict.fromkeys(duplicates)))


def dumps(value: Any) -> bytes:
    """Writes JSON as UTF-8. What JSON has no form for (a tool's NaN, a date) becomes a string instead of an error:
    an answer that exists must reach the client."""
    try:
        text = _ENCODER.encode(value)
    except ValueError:
        text = _ENCODER.encode(_speakable(value))
    # A lone surrogate has no UTF-8 form; its backslash form is exactly its JSON escape.
    return text.encode("utf-8", "backslashreplace")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotJson(f"the number {text[:40]} is beyond what a float holds")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is not a JSON value")


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        if not below:
            return False
        level = below
    return True


def _speakable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _speakable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_speakable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
