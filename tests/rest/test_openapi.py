"""The OpenAPI document describes the door: a fuzzer that knows only the document finds no answer that it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from redis.asyncio import Redis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from sayso_runtime.interfaces.rest.openapi import document
from support.agents import call, calls, says
from support.desks import Desk, approved, serving

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]


async def test_the_document_is_served_and_every_answer_of_a_conversation_is_as_it_says(desk: Desk) -> None:
    served = await desk.get("api/v1/openapi.json")
    assert served.json()["openapi"] == "3.1.0"
    schema = schemathesis.openapi.from_dict(served.json())
    chat = schema["/api/v1/chat"]["POST"]
    for answer in (
        await desk.chat("go"),
        await desk.chat("again"),
        await desk.resume(approved("nobody")),
        await desk.resume(approved("c1")),
        await desk.resume(approved("c1"), run_id="x"),
        await desk.resume(approved("c2")),
        await desk.resume(approved("c2")),
        await desk.chat(""),
    ):
        chat.validate_response(answer)
    schema["/api/v1/pauses"]["GET"].validate_response(await desk.get("api/v1/pauses"))


def test_every_operation_has_a_name_and_every_reference_leads_somewhere() -> None:
    described = document("refund-desk", "1")
    names = [operation["operationId"] for path in described["paths"].values() for operation in path.values()]
    assert len(set(names)) == 4

    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for item in value.values():
                yield from references(item)
        elif isinstance(value, list):
            for item in value:
                yield from references(item)

    known = {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}
    assert set(references(described)) <= known


@pytest.mark.parametrize("operation", ["/api/v1/chat", "/api/v1/runs/{run_id}", "/api/v1/pauses"])
async def test_a_fuzzer_finds_no_answer_that_the_document_does_not_have(redis: Redis, operation: str) -> None:
    async with serving(Desk(redis, [calls(call("refund", "c1")), says("Done."), says("Again.")])) as desk:
        await desk.chat("go")
        schema = schemathesis.openapi.from_dict((await desk.get("api/v1/openapi.json")).json())
        method = "POST" if operation.endswith("chat") else "GET"
        strategy = schema[operation][method].as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE) | schema[
            operation
        ][method].as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)

        @hypothesis.settings(
            max_examples=150,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=strategy)
        def fuzz(case: Any) -> None:
            if case.body is not schemathesis.core.NOT_SET and isinstance(case.body, dict):
                case.body.pop("stream", None)
            case.call_and_validate(base_url=desk.door.url, checks=CHECKS)

        await asyncio.to_thread(fuzz)
        assert desk.ran() == []
        assert [i["id"] for i in (await desk.get("api/v1/pauses")).json()["pauses"][0]["interruptions"]] == ["c1"]
