"""The few of Kubernetes' own kinds that agents depend on, read as far as they matter here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field

from sayso_api.base import Part
from sayso_api.meta import DEFAULT_NAMESPACE, DnsName
from sayso_api.secretenv import variable


class CorePart(Part):
    """A part of an object whose full form is Kubernetes' to check: what is not needed here is passed over."""

    model_config = ConfigDict(extra="ignore")


class CoreMeta(CorePart):
    """The metadata that matters here."""

    name: DnsName
    namespace: DnsName = DEFAULT_NAMESPACE
    labels: dict[str, str] = Field(default_factory=dict)


class ConfigMap(CorePart):
    """Texts by key, for `instructionFrom`."""

    metadata: CoreMeta
    data: dict[str, str] = Field(default_factory=dict)

    @property
    def key(self) -> str:
        """`<namespace>/<name>`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class Namespace(CorePart):
    """A namespace's labels, for `allowedNamespaces`."""

    metadata: CoreMeta

    @property
    def key(self) -> str:
        """The name: namespaces are in none."""
        return self.metadata.name


def secret_advice(data: Mapping[str, Any]) -> str:
    """What to do instead of putting this Secret's values into a file, with the variables by name."""
    meta = data.get("metadata")
    name = str(meta.get("name", "")) if isinstance(meta, Mapping) else ""
    keys = [
        str(key)
        for part in ("stringData", "data")
        for key in (data[part] if isinstance(data.get(part), Mapping) else ())
    ]
    variables = ", ".join(dict.fromkeys(variable(name, key) for key in keys)) or "SAYSO_SECRET_<NAME>_<KEY>"
    return f"remove the document and set the environment: {variables}"
