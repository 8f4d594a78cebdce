"""The REST door as an OpenAPI 3.1 document. Kept by hand beside the door; tests hold the one to the other."""

from __future__ import annotations

from typing import Any, get_args

from sayso_approvals.refusals import Code
from sayso_runtime.interfaces.problems import MAX_ID
from sayso_runtime.interfaces.rest.rendering import STATUS

Json = dict[str, Any]

_ID = {"type": "string", "minLength": 1, "maxLength": MAX_ID, "pattern": r"^[!-~]+$"}
_FAULTS = (
    "malformed_request",
    "not_identified",
    "too_large",
    "too_slow",
    "unsupported_media_type",
    "internal_error",
)


def document(agent: str, release: str) -> Json:
    """The document of one agent. `release`: of Sayso."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Agent {agent}",
            "version": release,
            "description": "Talk to an agent, see what waits for a person, and decide it.",
        },
        "paths": {
            "/api/v1/chat": {"post": _chat()},
            "/api/v1/runs/{run_id}": {"get": _run()},
            "/api/v1/pauses": {"get": _pauses()},
            "/api/v1/openapi.json": {
                "get": {
                    "operationId": "describe",
                    "summary": "This document",
                    "responses": {"200": _answer("The document", {"type": "object"})},
                }
            },
        },
        "components": {"schemas": _schemas()},
    }


def _chat() -> Json:
    return {
        "operationId": "chat",
        "summary": "Say something, or decide what waits",
        "description": "With `stream`, the answer is a stream of server-sent events: every event has a `type`, the "
        "last is `run_paused`, `run_completed`, `run_cancelled` or `problem`.",
        "parameters": [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "description": "The request's name: sent again under it, the request gets its first answer and does "
                "nothing twice. With another request it is refused.",
                "schema": _ID,
            }
        ],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"anyOf": [_ref("Message"), _ref("Decision")]}}},
        },
        "responses": {
            "200": _answer("The run has ended", _ref("Run"), stream=True),
            "202": _answer("The run waits for a person", _ref("PausedRun")),
            **_problems(400, 403, 404, 408, 409, 410, 413, 415, 422, 429, 500, 502, 503),
        },
    }


def _run() -> Json:
    return {
        "operationId": "getRun",
        "summary": "A run as it is now",
        "parameters": [{"name": "run_id", "in": "path", "required": True, "schema": _ID}],
        "responses": {"200": _answer("The run", _ref("Run")), **_problems(403, 404, 500, 503)},
    }


def _pauses() -> Json:
    return {
        "operationId": "listPauses",
        "summary": "The caller's runs that wait for a person, oldest first",
        "parameters": [
            {
                "name": "limit",
                "in": "query",
                "schema": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
            },
            {
                "name": "cursor",
                "in": "query",
                "description": "`next_cursor` of the page before.",
                "schema": {"type": "string"},
            },
        ],
        "responses": {"200": _answer("One page", _ref("Pauses")), **_problems(403, 422, 500, 503)},
    }


def _schemas() -> Json:
    text, nullable = {"type": "string"}, {"type": ["string", "null"]}
    when = {"type": "string", "format": "date-time"}
    name = {"anyOf": [_ID, {"type": "null"}]}
    common = {
        "agent": {**nullable, "description": "`<name>` or `<namespace>/<name>`; may be left out."},
        "stream": {"type": ["boolean", "null"], "default": False},
    }
    run = {
        "status": {"enum": list(dict.fromkeys(STATUS.values()))},
        "run_id": text,
        "agent": text,
        "session_id": text,
        "result": {**text, "description": "The answer; the text so far where the run waits, why where it failed."},
        "created_at": when,
        "updated_at": when,
        "interruptions": {"type": "array", "items": _ref("Interruption")},
    }
    needed = ["status", "run_id", "agent", "session_id", "result"]
    return {
        "Message": {
            "type": "object",
            "required": ["prompt"],
            "properties": {
                "prompt": {"type": "string", "pattern": r"\S"},
                "session_id": name,
                **common,
                "resume": {"type": "null"},
            },
        },
        "Decision": {
            "type": "object",
            "required": ["session_id", "resume"],
            "properties": {
                "session_id": _ID,
                **common,
                "prompt": {"type": "null"},
                "resume": {
                    "type": "object",
                    "required": ["decisions"],
                    "additionalProperties": False,
                    "properties": {
                        "run_id": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]},
                        "decisions": {"type": "array", "minItems": 1, "items": _ref("Verdict")},
                    },
                },
            },
        },
        "Verdict": {
            "type": "object",
            "required": ["id"],
            "additionalProperties": False,
            "properties": {
                "id": {"type": "string", "minLength": 1},
                "status": {
                    "enum": ["approved", "denied", "cancelled", None],
                    "description": "Required where `kind` is tool_call or confirmation, ignored for input_required.",
                },
                "message": {**nullable, "description": "Why it is denied, or an answer in words."},
                "payload": {"description": "An answer, edited arguments, or the result of an unknown outcome."},
            },
        },
        "Run": {"type": "object", "required": needed, "properties": run},
        "PausedRun": {
            "type": "object",
            "required": [*needed, "interruptions"],
            "properties": {**run, "status": {"const": "PAUSED"}},
        },
        "Interruption": {
            "type": "object",
            "required": ["id", "kind", "tool_name", "arguments", "message"],
            "properties": {
                "id": text,
                "kind": {"enum": ["tool_call", "confirmation", "input_required"]},
                "tool_name": text,
                "arguments": {**text, "contentMediaType": "application/json"},
                "message": text,
                "payload": {},
                "opened_at": when,
                "expires_at": when,
            },
        },
        "Pauses": {
            "type": "object",
            "required": ["pauses"],
            "properties": {
                "pauses": {"type": "array", "items": _ref("PausedRun")},
                "next_cursor": {**text, "description": "Where the next page begins; missing on the last one."},
            },
        },
        "Problem": {
            "type": "object",
            "required": ["type", "title", "status", "detail", "code", "ids"],
            "properties": {
                "type": text,
                "title": text,
                "status": {"type": "integer"},
                "detail": text,
                "code": {"enum": [*get_args(Code), *_FAULTS]},
                "ids": {"type": "array", "items": text},
                "decidedBy": text,
                "decidedAt": when,
                "verdict": text,
                "reason": text,
                "interruptions": {"type": "array", "items": {"type": "object"}},
            },
        },
    }


def _answer(description: str, schema: Json, *, stream: bool = False) -> Json:
    content = {"application/json": {"schema": schema}}
    if stream:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    return {"description": description, "content": content}


def _problems(*statuses: int) -> Json:
    answer = {
        "description": "What is wrong, and what to do",
        "content": {"application/problem+json": {"schema": _ref("Problem")}},
    }
    return {str(status): answer for status in statuses}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}
