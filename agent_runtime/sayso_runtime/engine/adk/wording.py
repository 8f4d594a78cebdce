"""What the model reads where a call did not run, and results as they are stored."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sayso_approvals.records import CallView, Verdict


def refused(view: CallView) -> dict[str, Any]:
    """What the model reads where a call was not approved."""
    verdict = view.state.verdict
    if verdict is None:
        raise ValueError("an open call has no refusal")
    match verdict.verdict:
        case Verdict.EXPIRED if view.pause.on_timeout == "Reject":
            text = f"Rejected: nobody decided before {_when(view.pause.expires_at)}"
            status = "rejected"
        case Verdict.REJECTED:
            text = f"Rejected by {verdict.by}" + (f": {verdict.reason}" if verdict.reason else "")
            status = "rejected"
        case Verdict.EXPIRED:
            text = f"Nobody decided before {_when(view.pause.expires_at)}"
            status = "expired"
        case _:
            text = f"Nobody decided: cancelled by {verdict.by}" + (f": {verdict.reason}" if verdict.reason else "")
            status = "cancelled"
    return {"status": status, "message": text}


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_failure(result: Any) -> bool:
    return isinstance(result, dict) and (bool(result.get("isError")) or (set(result) == {"error"}))


def as_json(result: Any) -> str:
    """A tool's result as JSON text of an object, in the shape that ADK gives the model."""
    document = result if isinstance(result, dict) else {"result": result}
    return json.dumps(document, ensure_ascii=False, default=str)
