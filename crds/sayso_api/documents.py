"""Text to documents: YAML and JSON as Kubernetes' own tools read them, with the line of every field.

Kept apart from what the documents mean. Nothing is guessed: a key that stands twice, a key that is not text, a tag,
a number that JSON cannot write, are each a fault with its line. What differs from PyYAML's own loader: dates and
`12:30` are text, as they are to kubectl; aliases may not make a small file into a huge one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from sayso_api.faults import Fault, Path, quote, write_path

LARGEST_DOCUMENT = 200_000
"""Values in one document, aliases counted each time they are used."""
DEEPEST = 64
"""Mappings and lists inside each other."""

_FIX_SYNTAX = "correct the line; every text with : # or a leading * & ! belongs in quotes"


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file. `number` counts from 1; `lines` has the line, from 1, of the fields that have one."""

    file: str
    number: int
    data: Any
    lines: dict[Path, int] = field(default_factory=dict)

    def line(self, path: Path) -> int | None:
        """The line of `path`, or of the nearest thing around it."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None


class _Loader(yaml.SafeLoader):
    """Composes nodes only; which scalars are more than text is decided by the patterns below."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 — PyYAML's own class attribute


_NULL, _BOOL, _INT, _FLOAT, _MERGE, _STR, _MAP, _SEQ = (
    f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "merge", "str", "map", "seq")
)
_TRUE = frozenset({"true", "yes", "on"})
for _tag, _pattern, _first in (
    (_NULL, r"(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
    (_BOOL, r"(?:true|True|TRUE|false|False|FALSE|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)", list("tTfFyYnNoO")),
    (_INT, r"[-+]?(?:0x[0-9a-fA-F_]+|0o?[0-7_]+|0b[01_]+|0|[1-9][0-9_]*)", list("-+0123456789")),
    (_FLOAT, r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?", list("-+0123456789.")),
    (_FLOAT, r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", list("-+.")),
    (_MERGE, r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(_tag, re.compile(rf"(?:{_pattern})\Z", re.ASCII), _first)


class _RefusedError(Exception):
    """A document that cannot be taken at all: too large or too deep, or an alias inside itself."""


def read(file: str, text: str) -> tuple[list[Document], list[Fault]]:
    """The documents of a text, empty ones left out, and what is wrong with it as YAML or JSON."""
    if file.endswith(".json") or text.lstrip().startswith("{"):
        documents, faults = _read_json(file, text)
        # In a `.yaml` file or on stdin, a brace may also open one of YAML's own mappings.
        if not faults or file.endswith(".json"):
            return documents, faults
    return _read_yaml(file, text)


def _read_json(file: str, text: str) -> tuple[list[Document], list[Fault]]:
    doubled: list[str] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in found:
            if key in seen:
                doubled.append(key)
            seen[key] = value
        return seen

    def number(word: str) -> float:
        value = float(word)
        if not math.isfinite(value):
            raise ValueError(f"{word} is not a number that can be written")
        return value

    try:
        data = json.loads(text, object_pairs_hook=pairs, parse_constant=number, parse_float=number)
        # Half a surrogate pair can be escaped in JSON, but never be written out again.
        json.dumps(data, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        found = f"{error.msg}, column {error.colno}"
        return [], [Fault(found, "JSON", "correct the line", file=file, document=1, line=error.lineno)]
    except (ValueError, RecursionError) as error:
        return [], [Fault(quote(str(error)), "JSON of ordinary numbers and depth", file=file, document=1)]
    faults = [
        Fault(f"the key {quote(key)} twice in one mapping", "each key once", "remove one", file=file, document=1)
        for key in doubled
    ]
    return [Document(file, 1, data)], faults


def _read_yaml(file: str, text: str) -> tuple[list[Document], list[Fault]]:
    documents: list[Document] = []
    faults: list[Fault] = []
    number = 0
    try:
        for number, node in enumerate(_compose(text), start=1):
            reader = _Reader(file, number)
            try:
                data = reader.value(node, ())
            except _RefusedError as refused:
                reader.fault(node, (), str(refused), "a document of ordinary size and depth")
            else:
                if data is not None:
                    documents.append(Document(file, number, data, reader.lines))
            faults.extend(reader.faults)
    except yaml.YAMLError as error:
        faults.append(_syntax(file, number + 1, error))
    except RecursionError:
        faults.append(Fault("too many levels", f"at most {DEEPEST} levels", file=file, document=number + 1))
    return documents, faults


def _compose(text: str) -> Iterator[yaml.Node]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            yield node
    finally:
        loader.dispose()


def _syntax(file: str, number: int, error: yaml.YAMLError) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    words = [getattr(error, "context", None), getattr(error, "problem", None) or getattr(error, "reason", None)]
    found = ", ".join(str(word) for word in words if word) or "unreadable text"
    line = mark.line + 1 if mark is not None else None
    return Fault(found, "YAML", _FIX_SYNTAX, file=file, document=number, line=line)


class _Reader:
    """Turns the nodes of one document into plain data, noting lines and faults on the way."""

    def __init__(self, file: str, number: int) -> None:
        self.file, self.number = file, number
        self.lines: dict[Path, int] = {}
        self.faults: list[Fault] = []
        self._count = 0

    def fault(self, node: yaml.Node, path: Path, found: str, expected: str, fix: str = "") -> None:
        """Note a fault at `node`."""
        line = node.start_mark.line + 1
        place = write_path(path)
        self.faults.append(Fault(found, expected, fix, place, self.file, self.number, line))

    def value(self, node: yaml.Node, path: Path) -> Any:
        """The plain data of `node`, which stands at `path`."""
        self._count += 1
        if self._count > LARGEST_DOCUMENT:
            raise _RefusedError(f"more than {LARGEST_DOCUMENT} values")
        if len(path) > DEEPEST:
            raise _RefusedError(f"more than {DEEPEST} levels, or an alias inside itself")
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode) and node.tag == _MAP:
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQ:
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        self.fault(node, path, f"the tag {quote(node.tag)}", "plain mappings, lists and values", "remove the tag")
        return None

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                self._merge(value_node, path, merged)
                continue
            key = self._key(key_node, path)
            if key is None:
                continue
            at = (*path, key)
            if key in own:
                found = f"the key {quote(key)} a second time; first in line {self.lines[at]}"
                self.fault(key_node, at, found, "each key once in a mapping", "remove one of the two")
                continue
            self.lines[at] = key_node.start_mark.line + 1
            own[key] = self.value(value_node, at)
        return {**merged, **own}

    def _key(self, node: yaml.Node, path: Path) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.tag in (_STR, _BOOL, _INT, _FLOAT):
            # `on: x` and `8080: x` are text to Kubernetes, too: JSON has no other keys.
            return str(node.value)
        self.fault(node, path, "a key that is not text", "text as a key", "put it in quotes")
        return None

    def _merge(self, node: yaml.Node, path: Path, merged: dict[str, Any]) -> None:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in sources:
            if isinstance(source, yaml.MappingNode) and source.tag == _MAP:
                for key, value in self._mapping(source, path).items():
                    merged.setdefault(key, value)
            else:
                self.fault(source, path, "<< with something else", "<< with a mapping", "merge a mapping, or none")

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        text = str(node.value)
        if node.tag == _STR:
            if any("\ud800" <= character <= "\udfff" for character in text):
                self.fault(node, path, "half a surrogate pair", "whole characters", "write the character itself")
            return text
        if node.tag == _NULL:
            return None
        if node.tag == _BOOL:
            return text.lower() in _TRUE
        try:
            if node.tag == _INT:
                return _integer(text)
            if node.tag == _FLOAT:
                number = float(text.replace("_", ""))
                if math.isfinite(number):
                    return number
        except ValueError:
            pass
        if node.tag in (_INT, _FLOAT):
            self.fault(node, path, quote(text), "a number that JSON can write", "put it in quotes, if it is text")
        else:
            self.fault(node, path, f"the tag {quote(node.tag)}", "a plain value", "remove the tag")
        return None


def _integer(text: str) -> int:
    """YAML 1.1's whole numbers as kubectl reads them: 0x1f, 0b1, 017 and 0o17 (both octal), 1_000."""
    digits = text.replace("_", "")
    body = digits.lstrip("+-")
    if len(body) > 1 and body[0] == "0" and body[1].isdigit():
        digits = digits.replace("0", "0o", 1)
    return int(digits, 0)
