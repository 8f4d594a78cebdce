"""A2A 0.3 as a client writes it by hand: plain JSON over HTTP, nothing of Sayso."""

from __future__ import annotations

import itertools
import uuid
from typing import Any

import httpx

Json = dict[str, Any]
_numbers = itertools.count(1)
APPROVE: Json = {"decision_type": "approve"}
REJECT: Json = {"decision_type": "reject"}


class Refused(Exception):  # noqa: N818
    """The answer was an error. `data` is its problem document."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.number: int = error["code"]
        self.data: Json = error.get("data") or {}

    @property
    def code(self) -> str:
        """The stable word for why."""
        return str(self.data.get("code", ""))


class Unanswered(Exception):  # noqa: N818
    """The server answered with something that is no JSON-RPC, as servers do that are stopped."""


def client() -> httpx.AsyncClient:
    """A client with connections of its own. Nothing is encrypted here, so no certificates are loaded either."""
    return httpx.AsyncClient(verify=False, trust_env=False, timeout=60.0)


def message(text: str, session: str, *, blocking: bool = True, **more: Any) -> Json:
    """A request that sends a text. Further members of the message by their JSON names."""
    return _send([{"kind": "text", "text": text}], session, blocking, more)


def decision(said: Json, session: str, *, blocking: bool = True, **more: Any) -> Json:
    """A request that sends a decision part with its label."""
    part = {"kind": "data", "data": said, "metadata": {}}
    return _send([part, {"kind": "text", "text": "A decision"}], session, blocking, more)


def value(question_id: str, payload: Any, session: str) -> Json:
    """A request that answers a question with a value, in the form of ADK's own clients."""
    response = {"confirmed": True, "payload": payload}
    data = {"name": "adk_request_confirmation", "id": question_id, "response": response}
    part = {"kind": "data", "data": data, "metadata": {"adk_type": "function_response"}}
    return _send([part], session, True, {})


def batch(**decisions: str) -> Json:
    """A decision by ids."""
    return by_id(decisions)


def by_id(decisions: dict[str, str]) -> Json:
    """A decision by ids that are no Python names."""
    return {"decision_type": "batch", "decisions": decisions}


def get_task(task_id: str) -> Json:
    """A request for a task."""
    return _request("tasks/get", {"id": task_id})


def read(response: httpx.Response) -> Json:
    """The JSON-RPC answer. Raises `Unanswered`."""
    if "json" not in response.headers.get("content-type", ""):
        raise Unanswered(f"HTTP {response.status_code}: {response.text[:200]}")
    answer: Json = response.json()
    return answer


def result(answer: Json) -> Json:
    """The task of an answer. Raises `Refused`."""
    if "error" in answer:
        raise Refused(answer["error"])
    task: Json = answer["result"]
    return task


def state(task: Json) -> str:
    """`completed`, `input-required`, …"""
    return str(task["status"]["state"])


def questions(task: Json) -> list[Json]:
    """What a paused task asks, as `{"id", "name", "args", "hint"}` in order."""
    parts = task["status"].get("message", {}).get("parts", [])
    found = []
    for part in parts:
        if part["kind"] == "data" and part["data"].get("name") == "adk_request_confirmation":
            args = part["data"]["args"]
            found.append({**args["originalFunctionCall"], "hint": args["toolConfirmation"]["hint"]})
    return found


def asked(task: Json) -> list[tuple[str, str]]:
    """The ids and names of what a paused task asks."""
    return [(one["id"], one["name"]) for one in questions(task)]


def reply(task: Json) -> str:
    """The text of the answer."""
    artifacts = task.get("artifacts") or [{"parts": []}]
    return "".join(part["text"] for part in artifacts[-1]["parts"] if part["kind"] == "text")


def said(task: Json) -> str:
    """The text of the status, such as why a task failed."""
    parts = task["status"].get("message", {}).get("parts", [])
    return "".join(part["text"] for part in parts if part["kind"] == "text")


def _send(parts: list[Json], session: str, blocking: bool, more: Json) -> Json:
    sent = {"kind": "message", "role": "user", "messageId": uuid.uuid4().hex, "parts": parts, "contextId": session}
    return _request("message/send", {"message": sent | more, "configuration": {"blocking": blocking}})


def _request(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": next(_numbers), "method": method, "params": params}
