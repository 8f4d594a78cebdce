"""A client of A2A 0.3 in plain JSON over HTTP. Both servers get byte for byte the same requests from it.

The approval is ADK's own function response, which both understand.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from benchmarks import scenario

CONFIRMATION = "adk_request_confirmation"


class WrongAnswerError(Exception):
    """A server did something else than pause or finish; the text says what."""


@dataclass(frozen=True, slots=True)
class Paused:
    """An open pause as a client sees it."""

    context_id: str
    task_id: str
    confirmation_id: str


def connect(concurrency: int = 1) -> httpx.AsyncClient:
    """An HTTP client that keeps one connection per concurrent user."""
    limits = httpx.Limits(max_connections=concurrency * 2, max_keepalive_connections=concurrency * 2)
    return httpx.AsyncClient(timeout=30.0, limits=limits, trust_env=False)


async def ask(http: httpx.AsyncClient, url: str, context_id: str) -> None:
    """A plain question, answered with text."""
    task = await _send(http, url, [{"kind": "text", "text": scenario.QUESTION}], context_id=context_id)
    if _state(task) != "completed":
        raise WrongAnswerError(f"expected a plain answer, got {_short(task)}")


async def request(http: httpx.AsyncClient, url: str, context_id: str) -> Paused:
    """The request that pauses."""
    task = await _send(http, url, [{"kind": "text", "text": scenario.REQUEST}], context_id=context_id)
    found = {data["id"] for data in _data(task.get("status")) if data.get("name") == CONFIRMATION}
    if _state(task) != "input-required" or len(found) != 1:
        raise WrongAnswerError(f"expected a pause with one confirmation, got {_short(task)}")
    return Paused(task["contextId"], task["id"], found.pop())


async def approve(http: httpx.AsyncClient, url: str, paused: Paused) -> None:
    """The approval of a pause, up to the final answer."""
    part = {
        "kind": "data",
        "data": {"id": paused.confirmation_id, "name": CONFIRMATION, "response": {"confirmed": True}},
        "metadata": {"adk_type": "function_response"},
    }
    task = await _send(http, url, [part], context_id=paused.context_id, task_id=paused.task_id)
    if _state(task) != "completed" or scenario.ANSWER not in json.dumps(task):
        raise WrongAnswerError(f"expected the final answer, got {_short(task)}")


async def _send(
    http: httpx.AsyncClient,
    url: str,
    parts: list[dict[str, Any]],
    *,
    context_id: str,
    task_id: str | None = None,
) -> dict[str, Any]:
    message: dict[str, Any] = {
        "kind": "message",
        "messageId": uuid.uuid4().hex,
        "role": "user",
        "parts": parts,
        "contextId": context_id,
    }
    if task_id is not None:
        message["taskId"] = task_id
    params = {"message": message, "configuration": {"blocking": True, "acceptedOutputModes": []}}
    body = {"jsonrpc": "2.0", "id": message["messageId"], "method": "message/send", "params": params}
    response = await http.post(url, json=body)
    document = response.json()
    if response.status_code != 200 or "result" not in document:
        raise WrongAnswerError(f"{url} answered {response.status_code}: {_short(document)}")
    result: dict[str, Any] = document["result"]
    return result


def _state(task: dict[str, Any]) -> str | None:
    return (task.get("status") or {}).get("state")


def _data(node: Any) -> Iterator[dict[str, Any]]:
    """Every data part below `node`."""
    if isinstance(node, dict):
        if node.get("kind") == "data" and isinstance(node.get("data"), dict):
            yield node["data"]
        for value in node.values():
            yield from _data(value)
    elif isinstance(node, list):
        for value in node:
            yield from _data(value)


def _short(document: Any) -> str:
    return json.dumps(document)[:600]
