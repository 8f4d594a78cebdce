"""What a turn does with decided calls: claim, begin, finish, doubt, reopen, unsent; each is the script of that name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sayso_approvals.keys import Keys, short
from sayso_approvals.reading import Entry, Reader
from sayso_approvals.records import AgentId, Begin, CallView, Turn, Verdict
from sayso_approvals.refusals import Refusal
from sayso_approvals.scripting import Runner
from sayso_approvals.turns import Queue, TurnLost
from sayso_approvals.watching import Watch


class Executing:
    """The part of the ledger that is about running calls, and what all its parts stand on."""

    def __init__(self, redis: Any, agent: AgentId, key: bytes, lease_seconds: float) -> None:
        self.agent = agent
        self.lease_seconds = lease_seconds
        self._runner = Runner(redis)
        self._keys = Keys(agent)
        self._path = str(agent)
        self._reader = Reader(agent, key)
        self._queue = Queue(lease_seconds)
        self._watch = Watch(self._runner, self._keys, self._reader, lease_seconds)

    async def _script(self, name: str, session_id: str, *arguments: str | int | float) -> Any:
        return await self._runner.run(name, self._session(session_id), self._path, session_id, *arguments)

    def _session(self, session_id: str) -> tuple[str, ...]:
        try:
            return self._keys.session(session_id)
        except ValueError as error:
            raise Refusal("not_found", f"There is no such session: {error}.") from None

    async def _held(self, name: str, turn: Turn, *arguments: str | int | float) -> list[Any]:
        reply: list[Any] = await self._script(name, turn.session_id, turn.token, *arguments)
        if reply[0] == "lost":
            turn.deadline = 0.0
            raise TurnLost(f"session {turn.session_id}: the lease of turn {turn.token} ended")
        return reply

    async def claim(self, turn: Turn) -> list[CallView]:
        """Fences every call of the session that is decided, not done and not in doubt, with this turn's token.

        A call whose record or verdict was changed is left out: it can only be cancelled.
        """
        _, now, flat = await self._held("claim", turn)
        self._watch.clock(now)
        entries = self._reader.entries(turn.session_id, flat)
        turn.calls = [entry.view for entry in entries if not entry.view.state.done]
        return claimed(turn, entries)

    async def begin(self, turn: Turn, view: CallView) -> tuple[Begin, str | None, bool]:
        """Whether to send the call now, with the stored result and whether that is an error where it ran before.

        RUN is given once for each attempt (more often only to an idempotent tool), and holds until
        `turn.may_send(view.call)` says no. Raises `Refusal("integrity")` where the record, or the verdict that
        `view` shows, is not what the ledger holds.
        """
        record = view.state.verdict
        if not view.intact or record is None or record.verdict is not Verdict.APPROVED:
            raise _not_intact(view, "was not approved as it stands")
        sealed = self._reader.seal_pause(view.pause)
        started = time.monotonic()
        reply = await self._script(
            "begin",
            turn.session_id,
            turn.token,
            self._at(view),
            sealed.sha,
            sealed.mac,
            self._reader.seal_verdict(record)[1],
            int(view.call.idempotent),
        )
        match reply:
            case ["run"]:
                turn.send_until[view.call.call_id] = self._queue.deadline(started)
                return Begin.RUN, None, False
            case ["finished", result, is_error]:
                return Begin.FINISHED, result, is_error == "1"
            case ["unknown"]:
                return Begin.UNKNOWN, None, False
            case ["lost"]:
                turn.deadline = 0.0
                return Begin.LOST, None, False
            case _:
                raise _not_intact(view, "was changed since it was approved")

    async def finish(self, turn: Turn, view: CallView, result: str, *, is_error: bool) -> bool:
        """Keeps the tool's result (JSON text), even when the turn is lost meanwhile. False: that start no longer
        counts, somebody has settled it."""
        reply = await self._script("finish", turn.session_id, turn.token, self._at(view), result, int(is_error))
        return bool(reply[0] == "ok")

    async def doubt(self, turn: Turn, view: CallView, note: str) -> None:
        """The call was sent and its outcome cannot be known: a person has to settle it."""
        await self._held("doubt", turn, self._at(view), note)

    async def reopen(self, turn: Turn, view: CallView, note: str) -> None:
        """The verdict was not consumed: the call is open again. Refused once it was started."""
        expiry = int(view.expires_at * 1000)
        reply = await self._held("reopen", turn, self._at(view), note, expiry)
        if reply[0] == "started":
            raise Refusal("already_decided", "A call that was started cannot be opened again.", (view.call.call_id,))

    async def unsent(self, turn: Turn, view: CallView, note: str) -> None:
        """The call was started and certainly not sent: its start is taken back and the call is open again."""
        reply = await self._held("unsent", turn, self._at(view), note, int(view.expires_at * 1000))
        if reply[0] == "other":
            raise TurnLost(f"call {view.call.call_id} was not started by turn {turn.token}")

    @staticmethod
    def _at(view: CallView) -> str:
        index = next(i for i, call in enumerate(view.pause.calls) if call.call_id == view.call.call_id)
        return f"{short(view.pause.pause_id)}:{index}"


def claimed(turn: Turn, entries: Sequence[Entry]) -> list[CallView]:
    """What this turn may go on with, out of what the script has fenced for it."""
    return [
        entry.view
        for entry in entries
        if entry.view.state.token == turn.token
        and not (entry.view.open or entry.view.state.done or entry.view.doubtful)
        and entry.may_go_on
    ]


def _not_intact(view: CallView, what: str) -> Refusal:
    detail = f"Call {view.call.call_id} ({view.call.tool}) {what}: it can only be cancelled."
    return Refusal("integrity", detail, (view.call.call_id,))
