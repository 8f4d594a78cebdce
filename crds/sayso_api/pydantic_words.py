"""Pydantic's errors in the words of a manifest: what was found, what was expected, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sayso_api.faults import did_you_mean, listing, quote

_EXPECTED = {
    "missing": "a value: the field is required",
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_BOUNDS = {
    "greater_than": ("gt", "a number above {}"),
    "greater_than_equal": ("ge", "a number not below {}"),
    "less_than": ("lt", "a number below {}"),
    "less_than_equal": ("le", "a number not above {}"),
    "too_short": ("min_length", "at least {} of them"),
    "too_long": ("max_length", "at most {} of them"),
}


def explain(kind: str, context: Mapping[str, Any], value: object) -> tuple[str, str, str]:
    """(found, expected, fix) for an error of type `kind` about `value`."""
    if kind == "missing":
        return "nothing", _EXPECTED[kind], ""
    if kind in ("literal_error", "enum"):
        words = [word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
        return quote(value), listing(words), did_you_mean(value, words) if isinstance(value, str) else ""
    if kind in _BOUNDS:
        key, sentence = _BOUNDS[kind]
        found = f"{context['actual_length']} of them" if "actual_length" in context else quote(value)
        if value in ((), []):
            found = "an empty list"
        return found, sentence.format(context[key]), ""
    expected = _EXPECTED.get(kind)
    if expected is None:
        return quote(value), f"something else ({kind.replace('_', ' ')})", ""
    return quote(value), expected, _fix(expected, value)


def _fix(expected: str, value: object) -> str:
    if expected == "text" and isinstance(value, bool | int | float):
        return "put it in quotes"
    if expected == "a list" and isinstance(value, str):
        return f"write [{quote(value)}]"
    if expected == "a list" and value is True:
        return 'write ["*"] for all'
    if expected in ("true or false", "a number", "a whole number") and isinstance(value, str):
        return "write it without quotes"
    return ""
