"""What one step of a turn writes, laid out for `commit.lua`. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sayso_approvals.deciding import check_pause
from sayso_approvals.keys import Keys, short
from sayso_approvals.reading import Reader, SealedPause
from sayso_approvals.records import AgentId, Commit, Completion, Kind, Turn, expiry_of
from sayso_approvals.refusals import Refusal
from sayso_approvals.turns import TurnLost

ANSWER_DAYS = 7  # how long a repeated message gets the first answer again
ARCHIVE_DAYS = 30  # how long a pause that is done can still be looked at
_DAY = 86_400_000  # milliseconds

#: Kinds whose approval can be told to the model without a tool having run here.
_NO_JOURNAL = frozenset({Kind.CONTINUE, Kind.INPUT_REQUIRED, Kind.CONFIRMATION})


def arguments(
    keys: Keys, reader: Reader, agent: AgentId, turn: Turn, commit: Commit
) -> tuple[list[str], list[str | int], SealedPause | None]:
    """The script's keys, its arguments from the fourth on, and the pause as it is stored.

    Raises `TurnLost`, `unknown_call`, and ValueError for a pause that is not one of this turn's.
    """
    names = list(keys.session(turn.session_id))
    parts: list[str | int] = list(commit.events)
    pause, sealed = commit.pause, None
    if pause is not None:
        check_pause(pause, agent, turn.session_id)
        sealed = reader.seal_pause(pause)
        names.append(keys.pause(pause.pause_id))
        parts += (sealed.text, sealed.mac, pause.pause_id, short(pause.pause_id))
        for call in pause.calls:
            parts += (call.call_id, int(expiry_of(pause, call) * 1000))
    for done in commit.completions:
        names.append(keys.pause(done.pause_id))
        parts += _completion(reader, turn, done)
    task = commit.task
    if task is not None:
        names.append(keys.task(task.task_id))
        parts += (task.task_id, task.expected, task.document, task.state)
    for message_id, answer in commit.answers.items():
        names.append(keys.answer(turn.session_id, message_id))
        parts.append(answer)
    head = (
        int(commit.release),
        ANSWER_DAYS * _DAY,
        ARCHIVE_DAYS * _DAY,
        len(commit.events),
        len(pause.calls) if pause else 0,
        len(commit.completions),
        int(task is not None),
        len(commit.answers),
    )
    return names, [*head, *parts], sealed


def _completion(reader: Reader, turn: Turn, done: Completion) -> tuple[str, int]:
    """Where the call is, and whether it can be done without a journal. Only an intact record can say the latter."""
    if done.token != turn.token:
        raise TurnLost(f"call {done.call_id} was claimed by turn {done.token}, this is turn {turn.token}")
    sealed = reader.known(done.pause_id)
    seen = (view.pause for view in turn.calls if view.pause.pause_id == done.pause_id)
    pause = sealed.pause if sealed else next(seen, None)
    for index, call in enumerate(pause.calls if pause else ()):
        if call.call_id == done.call_id:
            return f"{short(done.pause_id)}:{index}", int(sealed is not None and call.kind in _NO_JOURNAL)
    raise Refusal("unknown_call", f"There is no call {done.call_id} in pause {done.pause_id}.", (done.call_id,))


def refused(turn: Turn, commit: Commit, reply: Sequence[Any]) -> Exception:
    """Why the script wrote nothing."""
    match reply:
        case ["lost"]:
            turn.deadline = 0.0
            return TurnLost(f"session {turn.session_id}: turn {turn.token} may not write any more")
        case ["conflict", version] if commit.task is not None:
            task = commit.task
            detail = f"Task {task.task_id} is at version {version}, not {task.expected}: somebody else wrote it."
            return Refusal("integrity", detail, extra={"version": int(version)})
        case ["reused"]:
            return Refusal("integrity", "There was a pause of this id before: an id is used once.")
        case _:
            ids = tuple(done.call_id for done in commit.completions)
            return Refusal("integrity", "A call cannot be done before its tool's outcome is known.", ids)
