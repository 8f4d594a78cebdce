"""A call of the ledger as the command line shows it: the fields of `list -o json`, and the short name people type.

A short name is made from the pause's and the call's id alone, so it is the same in every listing, on every machine,
for as long as the call exists. Any beginning of it that fits one call only will do.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sayso_approvals.forwarding import rejected
from sayso_approvals.records import NEVER, AgentId, CallView, Kind, execution_of, state_of
from sayso_cli.errors import USAGE, CliError
from sayso_cli.output import safe, timestamp

SHORT = 8  # characters of 5 bits: a million open calls share one with a chance of one in two; prefixes say so

PENDING_STATES = ("pending", "orphaned")


@dataclass(frozen=True, slots=True)
class Row:
    """One call, with the agent whose ledger it is in. `orphaned`: that agent is in no manifest any more."""

    agent: AgentId
    view: CallView
    orphaned: bool = False

    @property
    def short(self) -> str:
        """The name that `list` shows."""
        return short_name(self.view.pause.pause_id, self.view.call.call_id)

    @property
    def state(self) -> str:
        """pending, approved, rejected, cancelled, expired, superseded, orphaned or integrity."""
        state = "rejected" if rejected(self.view) else state_of(self.view)
        return "orphaned" if self.orphaned and state == "pending" else state

    @property
    def doubtful(self) -> bool:
        """Whether a person has to settle it."""
        return self.view.doubtful

    def document(self) -> dict[str, Any]:
        """What `list -o json` prints. Times are RFC 3339 in UTC; `arguments` is the JSON value that will run."""
        pause, call, state = self.view.pause, self.view.call, self.view.state
        return {
            "id": self.short,
            "agent": str(self.agent),
            "session": pause.session_id,
            "run": pause.task_id,
            "call": call.call_id,
            "kind": call.kind.value,
            "tool": call.tool,
            "server": call.server,
            "arguments": loads(call.arguments),
            "digest": call.digest,
            "state": self.state,
            "execution": execution_of(self.view),
            "by": state.verdict.by if state.verdict else None,
            "openedAt": timestamp(pause.opened_at),
            "expiresAt": timestamp(expiry(self.view)),
            "path": [*pause.path, str(self.agent)],
            "requirements": list(call.gated_by),
        }

    def details(self) -> dict[str, Any]:
        """What `show` prints: `document`, and everything else that helps to decide or to understand."""
        pause, call, state = self.view.pause, self.view.call, self.view.state
        verdict = state.verdict
        return self.document() | {
            "pause": pause.pause_id,
            "requester": pause.requester,
            "endpoint": call.endpoint,
            "hint": call.hint,
            "payload": loads(call.payload),
            "node": call.node,
            "idempotent": call.idempotent,
            "attempt": state.attempt,
            "decidedAt": timestamp(verdict.at) if verdict else None,
            "via": verdict.via if verdict else None,
            "reason": verdict.reason if verdict else "",
            "startedAt": timestamp(state.started_at),
            "finishedAt": timestamp(state.finished_at),
            "result": loads(state.result) if state.result is not None else None,
            "note": state.note,
        }


def short_name(pause_id: str, call_id: str) -> str:
    """Lower-case base 32, `SHORT` characters long."""
    text = f"{len(pause_id)}:{pause_id}\0{call_id}"
    return base64.b32encode(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()).decode()[:SHORT].lower()


def loads(text: str) -> Any:
    """The JSON value in `text`; the text itself where somebody has put something else there."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def find(rows: Sequence[Row], name: str) -> Row:
    """The one call that `name` means: a short name, a beginning of one, or a tool call's id.

    CliError (usage) for none, and for more than one, then with the candidates.
    """
    wanted = name.strip()
    for candidates in (
        [row for row in rows if row.short == wanted.lower()],
        [row for row in rows if wanted in (row.view.call.call_id, row.view.outcome_id)],
        [row for row in rows if wanted and row.short.startswith(wanted.lower())],
    ):
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            raise CliError(
                f"{safe(name)!r} means more than one call; name one of these:\n" + describe(candidates), USAGE
            )
    raise CliError(f"there is no call {safe(name)!r}; sayso approvals list shows those there are", USAGE)


def describe(rows: Iterable[Row]) -> str:
    """One line for each call: its short name, and enough to tell it from the others."""
    return "\n".join(
        f"  {row.short}  {safe(str(row.agent))}  {safe(row.view.call.tool)}  {row.state}  "
        f"session {safe(row.view.pause.session_id)}"
        for row in rows
    )


def sort_key(row: Row) -> tuple[float, str, str]:
    """Oldest first; calls of one pause in the order of the model's reply."""
    order = [call.call_id for call in row.view.pause.calls]
    call_id = row.view.call.call_id
    return (
        row.view.pause.opened_at,
        row.view.pause.pause_id,
        f"{order.index(call_id):06d}" if call_id in order else call_id,
    )


def expiry(view: CallView) -> float | None:
    """When the call expires, in seconds since the epoch; None where it has no time limit of its own."""
    return None if view.expires_at in (0.0, NEVER) else view.expires_at


def is_input(row: Row) -> bool:
    """Whether it wants a value, not a yes or no."""
    return row.view.call.kind in (Kind.INPUT_REQUIRED, Kind.QUESTION)
