"""What doors of plain HTTP have in common around a run: whether it is the client's own, and the end of its answer."""

from __future__ import annotations

import hashlib
import json
import logging
from typing import Any

from sayso_runtime.interfaces.problems import Fault, paused
from sayso_runtime.messages import Inbound, Task
from sayso_runtime.service_api import Run

_log = logging.getLogger(__name__)

#: Metadata of a message: which request it came with.
REQUEST = "sayso_request"


def fingerprint(request: Any) -> str:
    """What tells one request from another that has the same key. `request`: a JSON value."""
    text = json.dumps(request, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def check_taken_up(task: Task, inbound: Inbound, agent: str, key: str) -> None:
    """Raises `Refusal("paused")` for a message that is not in the task's history: it came while something waited; and
    `Fault` where what is there under its id is another request. `key`: what the client calls that id."""
    message = task.message(inbound.message_id)
    if message is None and inbound.decision is None:
        raise paused(task, agent)
    if message is not None and message.metadata.get(REQUEST) != inbound.metadata.get(REQUEST):
        raise Fault(422, f"this {key} came before with another request", (key,))


async def answered(run: Run) -> None:
    """Tells the run that its answer is out, or its client gone. Awaited as it is, in the same step as the last write:
    were it a task of its own, a client that reads the answer and decides again at once could be taken for a late one.
    Raises nothing: nobody is left to tell."""
    try:
        await run.answered()
    except Exception:  # noqa: BLE001
        _log.exception("a run could not be told that its answer is out")
