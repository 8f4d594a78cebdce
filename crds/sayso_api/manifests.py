"""Files to objects: what `sayso validate` and `sayso dev` are given, read whole or refused whole.

`load` collects every fault of every file into one ManifestError; what comes out of it is well-formed, but whether the
objects fit together is for `sayso_api.compile` to say. `from_objects` does the same for what an API server returned.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from sayso_api.agent import Agent
from sayso_api.core_kinds import ConfigMap, Namespace
from sayso_api.documents import Document, read
from sayso_api.faults import Fault, ManifestError, listing, write_path
from sayso_api.faults import Path as FieldPath
from sayso_api.mcpserver import MCPServer
from sayso_api.modelconfig import ModelConfig
from sayso_api.objects import KINDS, Object, Origin, RefusedError, name_of, parse, unpack

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
LARGEST_FILE = 16 * 1024 * 1024
"""Characters; an API server takes objects of 1.5 MiB, and nobody writes more than a few by hand."""


@dataclass(frozen=True, slots=True)
class Manifests:
    """Objects by `<namespace>/<name>`, in the order of the files. `namespaces` goes by name alone.

    `skipped` names what was passed over because it is of no kind that Sayso reads: `<kind> <namespace>/<name>`.
    `origins` goes by (kind, key).
    """

    agents: dict[str, Agent] = field(default_factory=dict)
    model_configs: dict[str, ModelConfig] = field(default_factory=dict)
    mcp_servers: dict[str, MCPServer] = field(default_factory=dict)
    config_maps: dict[str, ConfigMap] = field(default_factory=dict)
    namespaces: dict[str, Namespace] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    origins: dict[tuple[str, str], Origin] = field(default_factory=dict)

    def fault(self, kind: str, key: str, path: FieldPath, found: str, expected: str, fix: str = "") -> Fault:
        """A fault of the object `kind` `key` at `path`, with file and line where the object came from one."""
        origin = self.origins.get((kind, key))
        if origin is not None:
            return origin.fault(kind, key, path, found, expected, fix)
        return Fault(found, expected, fix, write_path(path), kind=kind, name=key)

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a namespace: those of its object, if there is one, and the one that Kubernetes always sets."""
        known = self.namespaces.get(name)
        return {**(known.metadata.labels if known else {}), "kubernetes.io/metadata.name": name}


def load(paths: Sequence[Path | str], *, stdin: TextIO | None = None) -> Manifests:
    """The objects of files, directories (their files directly inside, by name) and `-` for standard input.

    Raises ManifestError with every fault of all of them.
    """
    faults: list[Fault] = []
    documents: list[Document] = []
    files: list[str] = []
    for name, text in _texts(paths, stdin or sys.stdin, faults):
        files.append(name)
        read_documents, unreadable = read(name, text)
        documents.extend(read_documents)
        faults.extend(_named(unreadable, read_documents))
    manifests = _collect(documents, faults)
    if not faults and not manifests.origins:
        where = ", ".join(str(path) for path in paths)
        found = f"only {listing(manifests.skipped, last='and')}" if manifests.skipped else "no object"
        faults.append(Fault(found, f"at least one {listing(KINDS)}", "name the files with your agents", file=where))
    if faults:
        order = {name: index for index, name in enumerate(files)}
        faults.sort(key=lambda fault: (order.get(fault.file, -1), fault.document, fault.line or 0))
        raise ManifestError(faults)
    return manifests


def from_objects(objects: Iterable[Mapping[str, Any]]) -> Manifests:
    """The same for objects as an API server returns them. Raises ManifestError with every fault."""
    faults: list[Fault] = []
    manifests = _collect([Document("", 0, dict(data)) for data in objects], faults)
    if faults:
        raise ManifestError(faults)
    return manifests


def _texts(paths: Sequence[Path | str], stdin: TextIO, faults: list[Fault]) -> Iterator[tuple[str, str]]:
    """Name and text of each file, each once; what cannot be read becomes a fault."""
    seen: set[Path] = set()
    for path in paths:
        try:
            files = [Path(path)] if str(path) == STDIN else _files(Path(path))
        except (OSError, ValueError) as error:
            faults.append(_unreadable(str(path), error))
            continue
        for file in files:
            if file.resolve() in seen:
                continue
            seen.add(file.resolve())
            name = "<stdin>" if str(file) == STDIN else str(file)
            try:
                yield name, _text(file, stdin)
            except (OSError, ValueError) as error:
                faults.append(_unreadable(name, error))


def _unreadable(name: str, error: OSError | ValueError) -> Fault:
    found = getattr(error, "strerror", None) or str(error)
    return Fault(found, "a readable file or directory with manifests", "check the path", file=name)


def _text(file: Path, stdin: TextIO) -> str:
    """The whole text, or ValueError: half a manifest could be one without its gates."""
    try:
        if str(file) == STDIN:
            text = stdin.read(LARGEST_FILE + 1)
        else:
            with file.open(encoding="utf-8-sig") as opened:
                text = opened.read(LARGEST_FILE + 1)
    except UnicodeDecodeError as error:
        raise ValueError(f"something that is not UTF-8 text, from byte {error.start} on") from None
    if len(text) > LARGEST_FILE:
        raise ValueError(f"more than {LARGEST_FILE} characters")
    return text


def _named(faults: Iterable[Fault], documents: Iterable[Document]) -> Iterator[Fault]:
    """The faults of unreadable fields with the kind and name of the object that they are in."""
    objects = {document.number: document.data for document in documents if isinstance(document.data, dict)}
    for fault in faults:
        data = objects.get(fault.document, {})
        yield replace(fault, kind=str(data.get("kind") or ""), name=name_of(data))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES and file.is_file())
    if not files:
        raise ValueError(f"a directory without {listing(f'*{suffix}' for suffix in SUFFIXES)}")
    return files


def _collect(documents: Iterable[Document], faults: list[Fault]) -> Manifests:
    """The objects of all documents; `faults` grows by what is wrong with them."""
    manifests = Manifests()
    skipped: list[str] = []
    for document in documents:
        for data, origin in unpack(document, document.data, ()):
            try:
                found = parse(data, origin)
            except RefusedError as refused:
                faults.extend(refused.faults)
                continue
            if isinstance(found, str):
                skipped.append(found)
            else:
                _add(manifests, found, origin, faults)
    return replace(manifests, skipped=tuple(skipped))


def _add(manifests: Manifests, found: Object, origin: Origin, faults: list[Fault]) -> None:
    kind = type(found).__name__
    first = manifests.origins.setdefault((kind, found.key), origin)
    if first is not origin:
        place = f"{first.document.file or 'the same list'}, document {first.document.number}"
        fix = "remove one of the two, or give it another name or namespace"
        faults.append(origin.fault(kind, found.key, (), f"a second one; the first is in {place}", "one", fix))
    elif isinstance(found, Agent):
        manifests.agents[found.key] = found
    elif isinstance(found, ModelConfig):
        manifests.model_configs[found.key] = found
    elif isinstance(found, MCPServer):
        manifests.mcp_servers[found.key] = found
    elif isinstance(found, ConfigMap):
        manifests.config_maps[found.key] = found
    else:
        manifests.namespaces[found.key] = found
