"""How an agent's pods are run: the `deployment` part of an `Agent`. Locally it is read and has no effect."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StrictInt, WithJsonSchema

from sayso_api.base import Part, Text, refusal, unique
from sayso_api.faults import quote
from sayso_api.meta import DnsName, EnvVar, LabelText

_QUANTITY = r"[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)(([KMGTPE]i)|[munkMGTPE]|[eE][+-]?[0-9]+)?"


def _quantity(value: object) -> object:
    """A plain number is a quantity too; it is kept as text."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise refusal(quote(value), "a quantity such as 500m, 2 or 512Mi")
    return str(value)


Quantity = Annotated[
    str,
    Text(32, "a quantity such as 500m, 2 or 512Mi", _QUANTITY, 1),
    BeforeValidator(_quantity),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
]


class Resources(Part):
    """What a pod may use."""

    requests: dict[str, Quantity] = Field(
        default_factory=lambda: {"cpu": "50m", "memory": "128Mi"},
        max_length=16,
        description="What is kept free for it. Left out: cpu 50m, memory 128Mi.",
    )
    limits: dict[str, Quantity] = Field(
        default_factory=lambda: {"memory": "512Mi"},
        max_length=16,
        description="What it may use at most. Left out: memory 512Mi, no limit on cpu.",
    )


class Toleration(Part):
    """A node taint that the pods put up with, as in Kubernetes."""

    key: LabelText = Field("", description="The taint's key. Left out: every key, with operator Exists.")
    operator: Literal["Equal", "Exists"] = Field("Equal", description="How value compares. Left out: Equal.")
    value: LabelText = Field("", description="The taint's value. Left out: the empty one.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="The taint's effect. Left out: every effect."
    )
    toleration_seconds: StrictInt | None = Field(
        None, ge=0, description="How long NoExecute is put up with, in seconds. Left out: for ever."
    )


class LocalReference(Part):
    """An object in the same namespace."""

    name: DnsName = Field(description="Its name. Required.")


class DeploymentSpec(Part):
    """How the agent's pods are run."""

    rules = (unique("env", "name"),)

    replicas: StrictInt | None = Field(
        None, ge=0, le=1000, description="How many pods. Left out: one at first, then an autoscaler's to own."
    )
    image: Annotated[str, Text(1024, "an image", r"\S+", 1)] | None = Field(
        None,
        description="An image built on the runtime's, with the functions that tools name. Left out: the runtime's.",
    )
    resources: Resources = Field(
        default_factory=Resources, description="What a pod may use. Left out: each one's default."
    )
    env: tuple[EnvVar, ...] = Field(
        (),
        max_length=100,
        description="Further environment variables. Left out: none.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    node_selector: dict[str, LabelText] = Field(
        default_factory=dict, max_length=64, description="Labels of the nodes to run on. Left out: any node."
    )
    tolerations: tuple[Toleration, ...] = Field(
        (), max_length=64, description="Node taints to put up with. Left out: none."
    )
    service_account_name: DnsName | None = Field(
        None, description="The service account of the pods. Left out: one of the agent's own, without rights."
    )
    labels: dict[str, LabelText] = Field(
        default_factory=dict, max_length=64, description="Further labels on the pods. Left out: none."
    )
    annotations: dict[str, Annotated[str, Text(32_768)]] = Field(
        default_factory=dict, max_length=64, description="Further annotations on the pods. Left out: none."
    )
    image_pull_secrets: tuple[LocalReference, ...] = Field(
        (), max_length=16, description="Secrets to pull the image with. Left out: the service account's."
    )
