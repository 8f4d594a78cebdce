"""Documents to objects: which kind a document is, whether it is one of ours, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from sayso_api.agent import Agent
from sayso_api.base import FROM_MANIFEST
from sayso_api.core_kinds import ConfigMap, Namespace, secret_advice
from sayso_api.documents import Document
from sayso_api.faults import Fault, Path, did_you_mean, listing, quote, write_path
from sayso_api.mcpserver import MCPServer
from sayso_api.meta import API_VERSION, DEFAULT_NAMESPACE, GROUP, WORD_OR_SELECTOR
from sayso_api.modelconfig import ModelConfig

KINDS: Mapping[str, type[Agent | ModelConfig | MCPServer]] = {
    "Agent": Agent,
    "ModelConfig": ModelConfig,
    "MCPServer": MCPServer,
}
"""The kinds of this version."""


CORE_KINDS: Mapping[str, type[ConfigMap | Namespace]] = {"ConfigMap": ConfigMap, "Namespace": Namespace}
"""Kinds of Kubernetes' `v1` that are read."""

Object = Agent | ModelConfig | MCPServer | ConfigMap | Namespace


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an object was read: its document, and its place in it (within a List; else empty)."""

    document: Document
    at: Path = ()

    def fault(self, kind: str, name: str, path: Path, found: str, expected: str, fix: str = "") -> Fault:
        """A fault of this object at `path`, with file, document and line."""
        full = (*self.at, *path)
        line = self.document.line(full)
        return Fault(found, expected, fix, write_path(full), self.document.file, self.document.number, line, kind, name)


def unpack(document: Document, data: Any, at: Path) -> Iterator[tuple[Any, Origin]]:
    """The object of a document, or those of a List such as `kubectl get -o yaml` writes."""
    if isinstance(data, dict) and str(data.get("kind")).endswith("List") and isinstance(data.get("items"), list):
        for index, item in enumerate(data["items"]):
            yield from unpack(document, item, (*at, "items", index))
    else:
        yield data, Origin(document, at)


class RefusedError(Exception):
    """A document that is no usable object; `faults` says why."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*map(str, faults))
        self.faults = faults


def parse(data: Any, origin: Origin) -> Object | str:
    """The object; or, for one of a kind that is not read here, `<kind> <namespace>/<name>`. Raises RefusedError."""
    if not isinstance(data, dict):
        expected = "an object with apiVersion, kind, metadata and spec"
        raise RefusedError(origin.fault("", "", (), quote(data), expected))
    version, kind = _word(data, "apiVersion", origin), _word(data, "kind", origin)
    name = name_of(data)
    if version == "v1" and kind == "Secret" and (data.get("data") or data.get("stringData")):
        expected = "no secret values in files"
        raise RefusedError(origin.fault(kind, name, (), "a Secret with values", expected, secret_advice(data)))
    model = _model(version, kind, name, origin)
    if model is None:
        return f"{kind} {name}"
    try:
        return model.model_validate(data, context=FROM_MANIFEST, by_alias=True, by_name=False)
    except ValidationError as error:
        raise RefusedError(*_in_place(error, kind, name, origin)) from None


def _word(data: Mapping[str, Any], name: str, origin: Origin) -> str:
    value = data.get(name)
    if isinstance(value, str) and value:
        return value
    found = quote(value) if name in data else "nothing"
    expected = API_VERSION if name == "apiVersion" else listing(KINDS)
    near = next((word for word in data if isinstance(word, str) and did_you_mean(word, [name])), "")
    fix = f"{near} should be {name}" if near and near != name else ""
    raise RefusedError(origin.fault(str(data.get("kind") or ""), name_of(data), (name,), found, expected, fix))


def _model(version: str, kind: str, name: str, origin: Origin) -> type[Object] | None:
    """The model for a kind; None for a kind that is none of Sayso's business."""
    if version == API_VERSION and kind in KINDS:
        return KINDS[kind]
    if version == "v1" and kind in CORE_KINDS:
        return CORE_KINDS[kind]
    group = version.rpartition("/")[0]
    if version == API_VERSION:
        found = f"{quote(kind)}, which this version does not know"
        raise RefusedError(origin.fault(kind, name, ("kind",), found, listing(KINDS), did_you_mean(kind, KINDS)))
    if group == GROUP or kind in KINDS:
        expected = f"{API_VERSION} for kind {kind}"
        raise RefusedError(origin.fault(kind, name, ("apiVersion",), quote(version), expected))
    return None


def _in_place(error: ValidationError, kind: str, name: str, origin: Origin) -> Iterator[Fault]:
    for detail in error.errors(include_url=False):
        path = tuple(step for step in detail["loc"] if step not in WORD_OR_SELECTOR)
        words = detail["ctx"]
        yield origin.fault(kind, name, path, words["found"], words["expected"], words["fix"])


def name_of(data: Mapping[str, Any]) -> str:
    """`<namespace>/<name>` as far as an unchecked object has them."""
    meta = data.get("metadata")
    if not isinstance(meta, Mapping) or not isinstance(meta.get("name"), str):
        return ""
    namespace = meta.get("namespace")
    return f"{namespace if isinstance(namespace, str) else DEFAULT_NAMESPACE}/{meta['name']}"
