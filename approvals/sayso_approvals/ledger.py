"""The pause ledger in Redis: every change of state is one Lua script.

The scripts are named as the protocol's steps are (`take`, `commit`, `decide`, `expire`, `claim`, `begin`, `finish`,
`doubt`, `settle`, `reopen`) and live beside this module in `scripts/`. Python never reads, changes and writes back: it
seals what is to be written, and the script compares what Python has seen with what is there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sayso_approvals import committing, deciding
from sayso_approvals.deciding import Choice as Choice
from sayso_approvals.deciding import Resolution as Resolution
from sayso_approvals.executing import Executing, claimed
from sayso_approvals.keys import short
from sayso_approvals.reading import Entry
from sayso_approvals.records import AgentId, CallView, Commit, TaskWrite, Turn, Verdict
from sayso_approvals.refusals import Refusal
from sayso_approvals.turns import TurnLost as TurnLost
from sayso_approvals.watching import Place as Place

#: How long a replica that has died keeps its turn, unless told otherwise. All who speak to one agent's ledger agree.
LEASE_SECONDS = 10.0
#: How often a decision looks anew at calls that have changed since they were seen.
LOOKS = 3
#: The mark of decisions that nobody waits for: made on the command line, carried out by whichever replica comes first.
ELSEWHERE = "elsewhere"


class Ledger(Executing):
    """One agent's pauses, sessions and tasks.

    `redis` comes from `connect.connect`; `key` is the agent's own (32 bytes); `lease_seconds` is how long a replica
    that has died keeps its turn. Every method may raise `Refusal("store_unreachable")`; those that take a `Turn`
    raise `TurnLost`, having written nothing.
    """

    def __init__(self, redis: Any, agent: AgentId, key: bytes, *, lease_seconds: float = LEASE_SECONDS) -> None:
        super().__init__(redis, agent, key, lease_seconds)

    # --- sessions and their turns
    async def resolve(self, session_id: str, *, message_id: str = "", task_id: str = "") -> Resolution:
        """What a message finds on arrival, with the answer that it got before and the task that it names; costs one
        round trip."""
        keys = (*self._session(session_id), self._keys.answer(session_id, message_id), self._keys.task(task_id))
        reply = await self._runner.run("resolve", keys, self._path, session_id)
        now, requester, task, last, answering, flat, answer, stored = reply
        self._watch.clock(now)
        entries = self._reader.entries(session_id, flat)
        newest = next((entry.view for entry in entries if entry.at == last), None)
        if newest is None and last:  # two pauses were done since: it has moved away
            entries_there = await self._watch.archived(last.partition(":")[0])
            newest = next((entry.view for entry in entries_there if entry.at == last), None)
        return Resolution(
            requester=requester or None,
            task_id=task or None,
            calls=[entry.view for entry in entries if not entry.view.state.done],
            answering=answering > 0,
            last=newest,
            answer=answer or None,
            task=_task(stored),
        )

    async def take(
        self,
        session_id: str,
        *,
        requester: str,
        create: bool = True,
        wait_seconds: float = 600.0,
        any_requester: bool = False,
        message_id: str = "",
        begins: TaskWrite | None = None,
    ) -> Turn:
        """The session's turn, waiting for it in order of arrival; at most eight wait, the ninth gets `busy`.

        `requester` becomes the owner of a session that does not exist yet (if `create`, else `not_found`). For
        anybody else the session does not exist, unless `any_requester` (work of the agent's own). `begins` is a new
        task, stored in the same step unless calls wait in the session or the message had its answer: `turn.task` says.
        """
        begin = (begins.task_id, begins.document, begins.state) if begins else ("", "", "")
        turn, _ = await self._take(
            session_id, requester, create, wait_seconds, any_requester, False, message_id, begin[0], begin
        )
        return turn

    async def take_and_claim(
        self,
        session_id: str,
        *,
        requester: str,
        create: bool = False,
        wait_seconds: float = 600.0,
        any_requester: bool = False,
        task_id: str = "",
    ) -> tuple[Turn, list[CallView]]:
        """`take` and `claim` in one round trip; `turn.task` is the task named, as it is stored."""
        turn, entries = await self._take(
            session_id, requester, create, wait_seconds, any_requester, True, "", task_id, ("", "", "")
        )
        return turn, claimed(turn, entries)

    async def _take(
        self,
        session_id: str,
        requester: str,
        create: bool,
        wait_seconds: float,
        any_requester: bool,
        claim: bool,
        message_id: str,
        task_id: str,
        begin: tuple[str, str, str],
    ) -> tuple[Turn, list[Entry]]:
        if not requester:
            raise ValueError("a turn is taken for somebody: the requester is empty")

        keys = (*self._session(session_id), self._keys.answer(session_id, message_id), self._keys.task(task_id))

        async def attempt(place: str) -> Any:
            return await self._runner.run(
                "take",
                keys,
                self._path,
                session_id,
                requester,
                int(any_requester),
                int(create),
                self._queue.lease_ms,
                place,
                self._queue.place_ms,
                self._queue.most,
                int(claim),
                *begin,
            )

        started, reply = await self._queue.wait(session_id, attempt, wait_seconds)
        _, token, now, dirty, owner, length, flat, answer, stored, previous = reply
        entries = self._reader.entries(session_id, flat)
        turn = Turn(
            session_id=session_id,
            requester=owner,
            token=token,
            deadline=self._queue.deadline(started),
            length=length,
            dirty=bool(dirty),
            clock_offset=self._watch.clock(now),
            calls=[entry.view for entry in entries if not entry.view.state.done],
            answer=answer or None,
            task=_task(stored),
            previous_task=previous or None,
        )
        return turn, entries

    async def renew(self, turn: Turn) -> None:
        """A whole new lease, if the turn is still ours."""
        started = time.monotonic()
        await self._held("renew", turn, self._queue.lease_ms)
        turn.deadline = self._queue.deadline(started)

    async def release(self, turn: Turn) -> None:
        """Ends the turn cleanly, and lets the next one in."""
        await self._held("release", turn)
        self._released(turn)

    def _released(self, turn: Turn) -> None:
        turn.deadline = 0.0
        self._queue.free(turn.session_id)

    async def events(self, session_id: str, start: int = 0) -> list[str]:
        """The session's events from number `start` on, oldest first."""
        key = self._session(session_id)[2]
        found: list[str] = await self._runner.command("LRANGE", key, start, -1)
        return found

    async def commit(self, turn: Turn, commit: Commit) -> None:
        """Writes all of it or nothing. Raises `TurnLost`, or `Refusal("integrity")` on a task's version conflict."""
        keys, arguments, sealed = committing.arguments(self._keys, self._reader, self.agent, turn, commit)
        reply = await self._runner.run("commit", keys, self._path, turn.session_id, turn.token, *arguments)
        if reply[0] != "ok":
            raise committing.refused(turn, commit, reply)
        self._watch.clock(reply[1])
        turn.length += len(commit.events)
        if sealed is not None:
            self._reader.stored(sealed)
        if commit.release:
            self._released(turn)

    # --- deciding
    async def decide(
        self, choices: Sequence[Choice], *, by: str, via: str, decision_id: str, resumes: bool = False
    ) -> None:
        """All choices or none, all of one session: raises `malformed_decision`, `already_decided`, `expired`,
        `superseded`, `cancelled`, `unknown_call`, `integrity`.

        Marks the session as answering and wakes the agent's replicas: whoever carries it out clears the mark
        `ELSEWHERE`. With `resumes` the caller takes the turn itself, others only look if it has not within a lease, and
        the mark is `decision_id`.
        """
        deciding.check_words(choices)
        entries = [await self._find(choice) for choice in choices]
        mark = short(decision_id if resumes else ELSEWHERE)
        head_start = self._queue.lease_ms if resumes else ""
        for _ in range(LOOKS):
            session_id = deciding.check_found(choices, entries)
            now = await self._watch.now()
            arguments: list[str | int | float] = []
            for choice, entry in zip(choices, entries, strict=True):
                assert entry is not None  # check_found() refuses what is not there
                arguments += deciding.arguments(self._reader, entry, choice, by=by, via=via, at=now)
            reply = await self._script("decide", session_id, mark, self._queue.lease_ms * 4, head_start, *arguments)
            self._watch.clock(reply[1])
            if reply[0] != "stale":
                break
            # a call was tried once more since it was last seen here: its verdict has to name the attempt
            entries = [await self._now(choice.pause_id, choice.call_id) for choice in choices]
        else:
            raise Refusal(
                "already_decided", "The calls change while they are decided: look at them again.", _called(choices)
            )
        if reply[0] == "refused":
            offenders = [c for c, entry in zip(choices, entries, strict=True) if entry and entry.at in reply[2]]
            raise deciding.refusal([(c.call_id, await self._now(c.pause_id, c.call_id)) for c in offenders])

    async def _find(self, choice: Choice) -> Entry | None:
        """The call as last seen here, which the script compares with what is there; or else as it is.

        A cancellation looks anew: it is the only thing that can be said of a call whose verdict was forged.
        """
        known = None if choice.verdict is Verdict.CANCELLED else self._reader.fresh(choice.pause_id, choice.call_id)
        return known or await self._now(choice.pause_id, choice.call_id)

    async def _now(self, pause_id: str, call_id: str) -> Entry | None:
        return next((e for e in await self._watch.pause(pause_id) if e.view.call.call_id == call_id), None)

    async def answered(self, session_id: str, decision_id: str) -> None:
        """The answer of this decision has gone out whole."""
        answering = self._session(session_id)[4]
        await self._runner.command("ZREM", answering, short(decision_id))

    async def answering(self, session_id: str, decision_id: str) -> bool:
        """Whether the answer of this decision is still on its way, on whatever replica."""
        mark = await self._runner.command("ZSCORE", self._session(session_id)[4], short(decision_id))
        return mark is not None and float(mark) > await self._watch.now() * 1000

    async def settle(
        self,
        pause_id: str,
        call_id: str,
        *,
        action: str,
        result: str | None,
        by: str,
        reason: str,
        attempt: int,
        decision_id: str = ELSEWHERE,
    ) -> None:
        """Settles an unknown outcome: `retry` (runs once more), `result` (JSON text given by a person), `abandon`.

        Refused as `paused`, with `retryAfterSeconds`, while whoever started the call may still be sending it.
        """
        now = await self._watch.now()
        entry, order = deciding.settlement(
            await self._now(pause_id, call_id), call_id, action, result, by=by, reason=reason, attempt=attempt, at=now
        )
        wait = self._queue.lease_ms + int(entry.view.call.timeout_seconds * 1000)
        reply = await self._script(
            "settle",
            entry.session_id,
            entry.at,
            entry.sealed.sha,
            entry.sealed.mac,
            entry.vmac,
            wait,
            attempt,
            action,
            *self._reader.seal_verdict(order.record),
            order.result,
            int(order.is_error),
            order.note,
            short(decision_id),
            self._queue.lease_ms * 4,
        )
        self._watch.clock(reply[1])
        if reply[0] != "ok":
            raise deciding.not_settled(call_id, reply, await self._now(pause_id, call_id))

    async def expire_due(self, limit: int = 100) -> int:
        """Expires what nobody decided in time; safe on any replica at any moment. How many calls it was."""
        expired = 0
        for session_id, due in (await self._watch.due(limit)).items():
            entries = {entry.at: entry for entry in await self._watch.live(session_id)}
            arguments: list[str | int | float] = []
            for at, score in due:
                arguments += deciding.expiry(self._reader, at, score, entries.get(at))
            count, now = await self._script("expire", session_id, *arguments)
            self._watch.clock(now)
            expired += count
        return expired

    # --- tasks, repeated messages
    async def task(self, task_id: str) -> tuple[int, str] | None:
        """The task's version and document (JSON text)."""
        return _task(await self._runner.command("HMGET", self._keys.task(task_id), "version", "document"))

    async def answer_to(self, session_id: str, message_id: str) -> str | None:
        """The answer (JSON text) that this message got before, for seven days."""
        found: str | None = await self._runner.command("GET", self._keys.answer(session_id, message_id))
        return found

    # --- looking after things
    async def work(self) -> list[str]:
        """Sessions that have something to go on with: decided calls that nobody holds, or a turn whose holder died."""
        return await self._watch.work()

    async def wait_for_work(self, replica: str, timeout_seconds: float) -> list[str]:
        """`work`, as soon as there is any; empty after `timeout_seconds`."""
        return await self._watch.wait_for_work(replica, timeout_seconds)

    async def ping(self) -> None:
        """Whether Redis answers. Raises `store_unreachable`."""
        await self._runner.command("PING")

    async def open_count(self) -> int:
        """How many calls wait for a verdict."""
        count: int = await self._runner.ask(self._runner.redis.zcard(self._keys.open))
        return count

    async def calls(self, *, include_done: bool = False) -> list[CallView]:
        """Every call of the agent, oldest pause first; those that are done for thirty days."""
        return [entry.view for entry in await self._watch.calls(include_done=include_done)]

    async def unfinished(self, after: Place | None, limit: int) -> list[tuple[Place, list[CallView]]]:
        """At most `limit` pauses that are not done, by opening, from the place after `after` on: with each the calls
        of its session that are not done, none where an older pause of the session has told them already."""
        page = await self._watch.unfinished(after, limit)
        return [(place, [entry.view for entry in entries]) for place, entries in page]

    async def view(self, pause_id: str) -> list[CallView]:
        """The calls of one pause, done or not; empty when there is no such pause."""
        return [entry.view for entry in await self._watch.pause(pause_id)]

    async def happened(self, after: str = "0", limit: int = 100) -> list[tuple[str, dict[str, str]]]:
        """The agent's outbox after the event with the id `after`: (id, fields), oldest first."""
        return await self._watch.happened(after, limit)

    async def acknowledge(self, upto: str) -> None:
        """Forgets the outbox up to and with the event `upto`: its one reader has it safe elsewhere."""
        await self._watch.acknowledge(upto)


def _task(stored: Sequence[str | None]) -> tuple[int, str] | None:
    version, document = stored
    return (int(version), document) if version is not None and document is not None else None


def _called(choices: Sequence[Choice]) -> tuple[str, ...]:
    return tuple(choice.call_id for choice in choices)
