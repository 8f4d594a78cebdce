"""What the ledger keeps: pauses with their calls, and what became of each call.

A *pause* is immutable and carries the agent's seal (`seal.py`). What changes lives beside it, per call, as
`CallState`. A pause's own state is never stored: it is derived from its calls.

    verdict   ""  ->  approved | rejected | cancelled | expired | superseded | answered      (once)
    journal   ""  ->  started -> finished          the tool ran, its result is kept
                      started -> unknown           nobody can know whether it ran: a person settles
    done      told to the model, once
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What a pending call asks for."""

    TOOL_CALL = "tool_call"  # a gated tool wants a say-so
    CONFIRMATION = "confirmation"  # the tool itself asks yes or no
    INPUT_REQUIRED = "input_required"  # a value is wanted
    QUESTION = "question"  # the agent asks a person (`questions.py`)
    CONTINUE = "continue"  # the model failed after a tool ran: go on from the stored result?
    FORWARD = "forward"  # another agent that was called waits: what is decided goes there (`forwarding.py`)


#: Seconds since the epoch at which a pause expires that has no time limit of its own.
NEVER = 253_402_300_799.0  # the last second that RFC 3339 can write


class Verdict(StrEnum):
    """What was decided about a call. `CANCELLED`, `EXPIRED` and `SUPERSEDED` mean that nobody decided."""

    APPROVED = "approved"
    REJECTED = "rejected"
    ANSWERED = "answered"  # what was wanted was given: a value, answers to questions
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"


class Journal(StrEnum):
    """How far the execution of an approved call went."""

    NONE = ""
    STARTED = "started"
    FINISHED = "finished"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AgentId:
    """An agent, by namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class PausedCall:
    """One call that waits for a person. Immutable, sealed as part of its pause.

    `server` is the tool server's key (`<namespace>/<name>`, or `function`, `agent`), `endpoint` its URL or command,
    `tool` the server's own name for the tool and `alias` the name that the model used. `arguments` is the JSON text
    (RFC 8785) of what will run and `digest` covers endpoint, server, tool and arguments. `phase` counts the
    confirmations of one call, from 1. `gated_by` names what asks for the say-so, such as `Agent shop/refund-desk`.
    """

    call_id: str
    kind: Kind
    server: str
    endpoint: str
    tool: str
    alias: str
    arguments: str
    digest: str
    phase: int = 1
    confirmation_id: str = ""
    hint: str = ""
    payload: str = "null"  # JSON text: what the tool attached to its question
    gated_by: tuple[str, ...] = ()
    idempotent: bool = False
    timeout_seconds: float = 30.0  # of the tool: nobody can still be sending after lease + this
    node: str = ""  # the agent of the in-process tree that made the call
    editable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pause:
    """A stop of one run. Times are seconds since the epoch on Redis' clock."""

    pause_id: str
    agent: AgentId
    session_id: str
    task_id: str
    engine: str
    requester: str
    opened_at: float
    expires_at: float
    calls: tuple[PausedCall, ...]
    on_timeout: str = "Cancel"
    path: tuple[str, ...] = ()  # the agents above, parents first


def expiry_of(pause: Pause, call: PausedCall) -> float:
    """See `CallView.expires_at`."""
    return NEVER if call.kind is Kind.FORWARD else pause.expires_at


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """One verdict as it is stored, with the seal of whoever could give it.

    `payload` is JSON text: edited arguments, an answer or a settled result. `at` is on Redis' clock. `via` says how
    it came: `chat`, `cli`, `settle`, `expiry`, `pause-cancelled`, `child` (another agent's pause was decided there).
    """

    pause_id: str
    call_id: str
    digest: str
    verdict: Verdict
    by: str
    at: float
    via: str
    attempt: int = 1
    reason: str = ""
    payload: str = "null"


@dataclass(frozen=True, slots=True)
class CallState:
    """What became of a call so far. `token` is the fence of the turn that has claimed it, 0 when nobody has."""

    verdict: VerdictRecord | None = None
    journal: Journal = Journal.NONE
    token: int = 0
    attempt: int = 1
    started_at: float = 0.0
    finished_at: float = 0.0
    result: str | None = None  # JSON text, once finished
    result_is_error: bool = False
    done: bool = False
    note: str = ""  # why it was opened again, or what its outcome's doubt is


@dataclass(frozen=True, slots=True)
class CallView:
    """One call as read from the ledger: its pause, itself, its state, and whether its seals hold.

    `intact` False: the pause, or the verdict, was changed in Redis or never sealed by this agent's key. Such a call
    can only be cancelled; nothing in it may be believed.
    """

    pause: Pause
    call: PausedCall
    state: CallState
    intact: bool = True

    @property
    def open(self) -> bool:
        """Nobody has decided, nothing has expired."""
        return self.state.verdict is None and not self.state.done

    @property
    def expires_at(self) -> float:
        """When the call expires: the pause says, but what waits for another agent waits as long as that does."""
        return expiry_of(self.pause, self.call)

    @property
    def doubtful(self) -> bool:
        """Its outcome is unknown: a person has to settle it."""
        return self.state.journal is Journal.UNKNOWN and not self.state.done

    @property
    def outcome_id(self) -> str:
        """The id under which a doubtful call is settled: never the call's own, so that a verdict sent earlier,
        arriving late, cannot mean "run it again"."""
        return f"{self.call.call_id}:outcome:{self.state.attempt}"


@dataclass(frozen=True, slots=True)
class Completion:
    """ "The model has been told about this call", checked against the claim's token."""

    pause_id: str
    call_id: str
    token: int


@dataclass(frozen=True, slots=True)
class TaskWrite:
    """A task document to store if its stored version is still `expected` (0: must not exist)."""

    task_id: str
    expected: int
    document: str  # JSON text
    state: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Everything that one atomic step of a turn writes. Empty parts cost nothing.

    `events` are JSON texts appended to the session. `answers` maps message ids to the JSON text of the answer that a
    repetition of that message gets. `release` ends the turn.
    """

    events: tuple[str, ...] = ()
    pause: Pause | None = None
    completions: tuple[Completion, ...] = ()
    task: TaskWrite | None = None
    answers: dict[str, str] = field(default_factory=dict)
    release: bool = False


@dataclass(slots=True)
class Turn:
    """The fenced right to change one session, held by one replica until its lease ends.

    `deadline` is on this process' monotonic clock, a safety margin before Redis lets somebody else in; only
    `Ledger.renew` moves it. `dirty`: the turn before this one ended without releasing (its holder died). `length` is
    the number of the session's events. `answer` is what the message got that this turn was taken for, where it came
    before; `task` the version and document of the task named at the take.
    """

    session_id: str
    requester: str
    token: int
    deadline: float
    length: int
    dirty: bool
    clock_offset: float  # Redis' clock minus time.time()
    calls: list[CallView]  # every call of the session that is not done
    answer: str | None = None
    task: tuple[int, str] | None = None
    previous_task: str | None = None  # the session's newest task before this turn
    send_until: dict[str, float] = field(default_factory=dict)  # by call id, on the same clock as `deadline`

    def may_send(self, call: PausedCall) -> bool:
        """Asked just before a begun call is sent: nobody else can be let in before it is on its way.

        Bound to the lease in which it began, not to a renewed one: a person may settle it one lease and one tool
        time-out after the start.
        """
        return time.monotonic() < min(self.deadline, self.send_until.get(call.call_id, 0.0))


class Begin(StrEnum):
    """Answer of `Ledger.begin`."""

    RUN = "run"  # journal says started; send it now
    FINISHED = "finished"  # it ran before: use the stored result
    UNKNOWN = "unknown"  # it was started before, nobody knows how it ended: do not run it
    LOST = "lost"  # the turn is no longer ours: do nothing


def state_of(view: CallView) -> str:
    """The word that people see: pending, approved, rejected, cancelled, expired, superseded or integrity."""
    if not view.intact:
        return "integrity"
    record = view.state.verdict
    if record is None:
        return "pending"
    return "approved" if record.verdict is Verdict.ANSWERED else record.verdict.value


def execution_of(view: CallView) -> str:
    """not_started, running, succeeded, failed or outcome_unknown."""
    match view.state.journal:
        case Journal.STARTED:
            return "running"
        case Journal.UNKNOWN:
            return "outcome_unknown"
        case Journal.FINISHED:
            return "failed" if view.state.result_is_error else "succeeded"
        case _:
            return "not_started"


Json = dict[str, Any] | list[Any] | str | int | float | bool | None
