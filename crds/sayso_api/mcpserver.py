"""`MCPServer`: where a tool server is, and who may refer to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from sayso_api.base import Part, Rule, Text, Violation, exactly_one, only_with, peek, unique
from sayso_api.meta import (
    AllowedNamespaces,
    EnvVar,
    Flag,
    Header,
    HttpUrl,
    ObjectStatus,
    Resource,
    SecretKeyRef,
    ToolGlob,
)
from sayso_api.modelconfig import Number


class Tls(Part):
    """How the server's certificate is checked."""

    @staticmethod
    def _one_way(data: Mapping[str, Any]) -> Iterator[Violation]:
        if peek(data, "insecureSkipVerify") is True and peek(data, "caSecretRef") is not None:
            expected = "either a CA to check against or no check"
            yield Violation(("insecureSkipVerify",), "true beside caSecretRef", expected, "remove one of the two")

    rules = (
        Rule(
            _one_way,
            "!has(self.caSecretRef) || !has(self.insecureSkipVerify) || !self.insecureSkipVerify",
            "expected either caSecretRef or insecureSkipVerify",
        ),
    )

    ca_secret_ref: SecretKeyRef | None = Field(
        None, description="The Secret with the CA's certificates as PEM. Left out: the system's CAs."
    )
    insecure_skip_verify: Flag = Field(
        False, description="Do not check the certificate at all; never for real data. Left out: it is checked."
    )


class MCPServerSpec(Part):
    """Where the server is and how it is called."""

    rules = (
        exactly_one("url", "command"),
        only_with("headers", "url"),
        only_with("tls", "url"),
        only_with("transport", "url", unless="StreamableHTTP"),
        only_with("env", "command"),
        unique("env", "name"),
        unique("headers", "name", fold=True),
    )

    url: HttpUrl | None = Field(None, description="Where the server listens. Left out: command starts one.")
    transport: Literal["StreamableHTTP", "SSE"] = Field(
        "StreamableHTTP", description="The MCP transport at url. Left out: StreamableHTTP."
    )
    command: tuple[Annotated[str, Text(4096)], ...] | None = Field(
        None,
        min_length=1,
        max_length=64,
        description="A program and its arguments, run beside the agent, spoken to over stdio. Left out: url is used.",
    )
    env: tuple[EnvVar, ...] | None = Field(
        None,
        max_length=100,
        description="Environment variables of command. Left out: none of its own.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    headers: tuple[Header, ...] | None = Field(
        None,
        max_length=50,
        description="HTTP headers sent to url. Left out: none of its own.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    timeout_seconds: Number = Field(
        30.0,
        gt=0,
        le=86_400,
        description="How long one tool call may take, in seconds; after that its outcome is unknown. Left out: 30.",
    )
    tls: Tls | None = Field(
        None, description="How the certificate at url is checked. Left out: against the system's CAs."
    )
    allowed_namespaces: AllowedNamespaces = Field(
        "Same",
        description="Which namespaces' Agents may refer to it: Same, All, or {selector: …} over the namespaces' "
        "labels. Left out: Same, its own only.",
    )
    idempotent_tools: tuple[ToolGlob, ...] = Field(
        (),
        max_length=200,
        description="Tools (names or globs) that are safe to call again when an outcome is unknown. Left out: none.",
    )
    trust_annotations: Flag = Field(
        False,
        description="Whether a policy may go by what the server says of its tools when it allows. Left out: no.",
    )


class MCPServer(Resource):
    """A tool server that agents can refer to."""

    kind: Literal["MCPServer"] = Field("MCPServer", description="MCPServer. Required in manifests.")
    spec: MCPServerSpec = Field(description="Where the server is and how it is called. Required.")
    status: ObjectStatus | None = Field(None, description="Written by the operator. Left out: not seen yet.")
