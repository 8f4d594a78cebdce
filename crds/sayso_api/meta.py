"""The vocabulary that all kinds share: names, references, metadata, conditions, and who may refer to whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    StrictBool,
    StrictInt,
    Tag,
    WithJsonSchema,
)

from sayso_api import durations
from sayso_api.base import Part, Rule, Text, Violation, exactly_one, peek, refusal
from sayso_api.faults import did_you_mean, listing, quote

GROUP = "sayso.dev"
API_VERSION = f"{GROUP}/v1alpha1"
DEFAULT_NAMESPACE = "default"

DnsLabel = Annotated[
    str,
    Text(63, "a DNS label: lower-case letters, digits and -, no - at either end", r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", 1),
]
DnsName = Annotated[
    str,
    Text(253, "a DNS name: lower-case letters, digits, - and .", r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", 1),
]
DataKey = Annotated[str, Text(253, "a key: letters, digits, -, _ and .", r"[-._a-zA-Z0-9]+", 1)]
ToolGlob = Annotated[
    str,
    Text(
        128,
        "a tool's name, or a glob with * and ? only (no spaces, brackets or control characters)",
        r"[!-Z\\^-~]+",
        1,
    ),
]
HttpUrl = Annotated[str, Text(2048, "a URL that begins with http:// or https://", r"https?://[^\s/?#]+[^\s]*", 1)]
LabelText = Annotated[str, Text(317)]
ShortText = Annotated[str, Text(1024)]
LongText = Annotated[str, Text(4096)]


def _to_duration(value: object) -> object:
    if isinstance(value, timedelta):
        value = durations.write(value)
    if not isinstance(value, str):
        fix = f"say the unit: {value}s, {value}m or {value}h" if isinstance(value, int) and value else ""
        raise refusal(quote(value), durations.EXPECTED, fix)
    try:
        return durations.parse(value)
    except ValueError:
        raise refusal(quote(value), durations.EXPECTED) from None


Duration = Annotated[
    timedelta,
    BeforeValidator(_to_duration),
    PlainSerializer(durations.write, return_type=str),
    WithJsonSchema({"type": "string", "pattern": durations.PATTERN, "minLength": 2, "maxLength": 21}),
]


class SecretKeyRef(Part):
    """One value of a Secret in the same namespace."""

    name: DnsName = Field(description="The Secret's name. Required.")
    key: DataKey = Field(description="The key within its data. Required.")


class ConfigMapKeyRef(Part):
    """One value of a ConfigMap in the same namespace."""

    name: DnsName = Field(description="The ConfigMap's name. Required.")
    key: DataKey = Field(description="The key within its data. Required.")


class ValueSource(Part):
    """Where a value is kept when it is not written out."""

    secret_key_ref: SecretKeyRef = Field(description="The value of a Secret. Required.")


class EnvVar(Part):
    """An environment variable."""

    rules = (exactly_one("value", "valueFrom"),)

    name: Annotated[
        str, Text(253, "a variable's name: letters, digits and _, no digit first", r"[A-Za-z_][A-Za-z0-9_]*", 1)
    ] = Field(description="The variable's name. Required.")
    value: Annotated[str, Text(32_768)] | None = Field(
        None, description="The value, written out. Left out: valueFrom gives it."
    )
    value_from: ValueSource | None = Field(None, description="Where the value is kept. Left out: value gives it.")


class Header(Part):
    """An HTTP header."""

    rules = (exactly_one("value", "valueFrom"),)

    name: Annotated[str, Text(256, "the name of an HTTP header", r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", 1)] = Field(
        description="The header's name; case does not matter. Required."
    )
    value: Annotated[str, Text(8192, "a header's value on one line", r"[ -~\t]*")] | None = Field(
        None, description="The value, written out. Left out: valueFrom gives it."
    )
    value_from: ValueSource | None = Field(None, description="Where the value is kept. Left out: value gives it.")


class LabelRequirement(Part):
    """A condition on one label, as in Kubernetes."""

    @staticmethod
    def _values(data: Mapping[str, Any]) -> Iterator[Violation]:
        operator, values = peek(data, "operator"), peek(data, "values")
        if operator in ("In", "NotIn") and not values:
            yield Violation(("values",), "no values", f"at least one value for {operator}")
        if operator in ("Exists", "DoesNotExist") and values:
            yield Violation(("values",), "values", f"none for {operator}", "leave values out")

    # No CEL: selectors stand where a structural schema has no type, so an API server does not look into them.
    rules = (Rule(_values),)

    key: Annotated[str, Text(317, "a label's key", shortest=1)] = Field(description="The label. Required.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(description="The comparison. Required.")
    values: tuple[LabelText, ...] = Field(
        (), max_length=64, description="What In and NotIn compare with. Left out: none, for Exists and DoesNotExist."
    )

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels meets the condition."""
        value = labels.get(self.key)
        if self.operator == "In":
            return value in self.values
        if self.operator == "NotIn":
            return value not in self.values
        return (value is not None) == (self.operator == "Exists")


class LabelSelector(Part):
    """A choice by labels, as in Kubernetes. All conditions must hold; the empty one chooses everything."""

    match_labels: dict[str, LabelText] = Field(
        default_factory=dict,
        max_length=64,
        description="Labels with exactly these values. Left out: no such condition.",
    )
    match_expressions: tuple[LabelRequirement, ...] = Field(
        (), max_length=64, description="Further conditions. Left out: none."
    )

    def chooses(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is chosen."""
        exact = all(labels.get(key) == value for key, value in self.match_labels.items())
        return exact and all(condition.holds(labels) for condition in self.match_expressions)


class NamespaceSelector(Part):
    """The namespaces whose labels match."""

    selector: LabelSelector = Field(description="Which labels a namespace has. Required.")


WORD_OR_SELECTOR = ("<word>", "<selector>")
"""Steps that pydantic puts into the place of a fault in `allowedNamespaces`, and that no manifest has."""


def _shape(value: object) -> str:
    return "<selector>" if isinstance(value, Mapping | NamespaceSelector) else "<word>"


AllowedNamespaces = Annotated[
    Annotated[Literal["Same", "All"], Tag("<word>")] | Annotated[NamespaceSelector, Tag("<selector>")],
    Discriminator(_shape),
    # A word or a mapping: a structural schema has no type for that. The pattern binds words, `required` mappings.
    WithJsonSchema(
        {
            "x-kubernetes-preserve-unknown-fields": True,
            "pattern": "^(Same|All)$",
            "required": ["selector"],
        }
    ),
]


class ObjectMeta(Part):
    """Kubernetes' metadata. Fields that Kubernetes itself writes are taken as they are."""

    model_config = ConfigDict(extra="allow")
    # fmt: off
    written_by_kubernetes: ClassVar[frozenset[str]] = frozenset({
        "generateName", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
        "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers",
        "managedFields", "clusterName",
    })
    # fmt: on

    @staticmethod
    def _misspelt(data: Mapping[str, Any]) -> Iterator[Violation]:
        own = ["name", "namespace", "labels", "annotations"]
        for word in data:
            near = did_you_mean(str(word), own)
            if word not in own and word not in ObjectMeta.written_by_kubernetes and near:
                yield Violation((str(word),), f"unknown field {quote(word)}", listing(own), near)

    rules = (Rule(_misspelt),)

    name: DnsLabel = Field(description="The object's name. Required.")
    namespace: DnsLabel = Field(DEFAULT_NAMESPACE, description="Its namespace. Left out: default.")
    labels: dict[str, LabelText] = Field(default_factory=dict, description="Labels to choose it by. Left out: none.")
    annotations: dict[str, str] = Field(default_factory=dict, description="Notes for tools. Left out: none.")

    @property
    def uid(self) -> str:
        """What the API server calls this very object; empty for a manifest that has not been there."""
        return str((self.__pydantic_extra__ or {}).get("uid") or "")

    @property
    def generation(self) -> int:
        """The version of the spec that the API server counted; 0 for a manifest that has not been there."""
        value = (self.__pydantic_extra__ or {}).get("generation")
        return value if isinstance(value, int) else 0


class StatusPart(Part):
    """A status is written by an operator that may be newer than its reader, so unknown fields are passed over."""

    model_config = ConfigDict(extra="ignore")


class Condition(StatusPart):
    """One fact about an object, as Kubernetes writes them."""

    type: Annotated[str, Text(316)] = Field(description="What the condition is about. Required.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds. Required.")
    reason: ShortText = Field("", description="Why, in one word. Left out: no reason is given.")
    message: Annotated[str, Text(32_768)] = Field("", description="Why, for people. Left out: no message.")
    last_transition_time: Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})] | None = Field(
        None, description="Since when the status has been as it is (RFC 3339). Left out: unknown."
    )
    observed_generation: StrictInt | None = Field(
        None, ge=0, description="The generation that it speaks of. Left out: unknown."
    )


Conditions = Annotated[
    tuple[Condition, ...],
    Field(
        max_length=32,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
]


class ObjectStatus(StatusPart):
    """What is known of an object."""

    observed_generation: StrictInt | None = Field(
        None, ge=0, description="The generation that the status speaks of. Left out: none has been seen yet."
    )
    conditions: Conditions = Field((), description="Facts about the object. Left out: nothing is known yet.")


class Resource(Part):
    """An object with Kubernetes' outer shape. `kind` and `spec` come from the kinds themselves."""

    api_version: Literal["sayso.dev/v1alpha1"] = Field(
        "sayso.dev/v1alpha1", description="The group and version, sayso.dev/v1alpha1. Required in manifests."
    )
    metadata: ObjectMeta = Field(description="Name, namespace and labels. Required.")

    @property
    def key(self) -> str:
        """`<namespace>/<name>`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


Flag = StrictBool
