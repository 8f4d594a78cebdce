"""Looking over all of an agent's sessions: what is open, what is due, what can be gone on with, what happened.

Hints (the inbox) only make it faster: what there is to do is read from the indexes, at least twice a lease.
"""

from __future__ import annotations

import logging
import re
import time
from typing import Any

from sayso_approvals.batching import PATIENCE
from sayso_approvals.keys import Keys, short
from sayso_approvals.reading import Entry, Reader
from sayso_approvals.refusals import Refusal
from sayso_approvals.scripting import Runner

#: Where a pause stands among all that are not done: when it opened (milliseconds), and its name in the index.
Place = tuple[int, str]
GROUP = "replicas"
MOST = 500  # sessions or pauses in one look
#: How the indexes name a pause, and a call of it: hashed id, the call's index there, session.
_PAUSE = re.compile(r"[a-z2-7]{26}:(?P<session>.+)", re.DOTALL)
_CALL = re.compile(r"(?P<at>[a-z2-7]{26}:[0-9]{1,6}):(?P<session>.+)", re.DOTALL)

log = logging.getLogger(__name__)


class Watch:
    """Reads across sessions, and keeps how far Redis' clock is from this process' own."""

    def __init__(self, runner: Runner, keys: Keys, reader: Reader, lease_seconds: float) -> None:
        self._runner = runner
        self._redis = runner.redis
        self._keys = keys
        self._reader = reader
        self._between = lease_seconds / 2
        self._looked = float("-inf")
        self._offset: float | None = None
        self._before: set[str] = set()  # what the look before the next one has found

    # --- time
    def clock(self, now_ms: int) -> float:
        """Notes what Redis' clock says; returns it minus `time.time()`, in seconds."""
        self._offset = now_ms / 1000 - time.time()
        return self._offset

    async def now(self) -> float:
        """Seconds since the epoch on Redis' clock, for stamping; scripts judge by their own."""
        if self._offset is None:
            seconds, micros = await self._runner.ask(self._redis.time())
            self.clock(seconds * 1000 + micros // 1000)
        assert self._offset is not None
        return round(time.time() + self._offset, 3)

    # --- reading pauses
    async def live(self, session_id: str) -> list[Entry]:
        """The calls of one session that are not done, and those of its last pause."""
        flat = await self._runner.ask(self._redis.hgetall(self._keys.session(session_id)[1]))
        return self._reader.entries(session_id, _flat(flat))

    async def archived(self, name: str) -> list[Entry]:
        """The calls of a pause that is done, by the hash of its id; empty when it is not there."""
        return self._moved(await self._runner.ask(self._redis.hgetall(f"{self._keys.prefix}pause:{name}")))

    def _moved(self, stored: dict[str, str]) -> list[Entry]:
        session_id = stored.pop("session", "")
        return self._reader.entries(session_id, _flat(stored))

    async def pause(self, pause_id: str) -> list[Entry]:
        """The calls of one pause, wherever it is."""
        stored = await self._runner.ask(self._redis.hgetall(self._keys.pause(pause_id)))
        moved = self._moved(dict(stored))
        if moved or not stored.get("session"):
            return moved
        name = short(pause_id) + ":"
        return [entry for entry in await self.live(stored["session"]) if entry.at.startswith(name)]

    async def unfinished(self, after: Place | None, limit: int) -> list[tuple[Place, list[Entry]]]:
        """The next pauses that are not done, by opening: each one's place, and its session's calls that are not done.

        A session is told once, at its oldest pause: at the place of a later one, or of a pause that has just ended,
        there is nothing. Fewer than `limit` places: those were the last.
        """
        start, last = after or (0, "")
        members: list[tuple[str, int]] = []
        skipped = 0
        while len(members) < limit:  # many may have opened in one millisecond: those up to `last` were told
            some: list[tuple[str, float]] = await self._runner.ask(
                self._redis.zrangebyscore(
                    self._keys.unfinished, start or "-inf", "+inf", start=skipped, num=limit, withscores=True
                )
            )
            skipped += len(some)
            for name, score in some:
                place = (_milliseconds(score), name)
                if not _PAUSE.fullmatch(name) or not self._is_session(name.partition(":")[2]):
                    await self._drop(self._keys.unfinished, name)
                elif place > (start, last):
                    members.append((name, place[0]))
            if len(some) < limit:
                break
        members = members[:limit]
        sessions = [name.partition(":")[2] for name, _ in members]
        replies = await self._pipeline([self._keys.session(session_id)[1] for session_id in sessions])
        found = []
        for (name, score), session_id, stored in zip(members, sessions, replies, strict=True):
            entries = [e for e in self._reader.entries(session_id, _flat(stored)) if not e.view.state.done]
            first = entries and entries[0].at.partition(":")[0] == name.partition(":")[0]
            found.append(((score, name), entries if first else []))
        return found

    async def calls(self, *, include_done: bool) -> list[Entry]:
        """The calls of every session."""
        members = await self._runner.ask(self._redis.zrange(self._keys.unfinished, 0, -1))
        named = (member.partition(":")[2] for member in members if _PAUSE.fullmatch(member))
        sessions = [session_id for session_id in dict.fromkeys(named) if self._is_session(session_id)]
        found: list[Entry] = []
        for start in range(0, len(sessions), MOST):
            some = sessions[start : start + MOST]
            replies = await self._pipeline([self._keys.session(session_id)[1] for session_id in some])
            for session_id, stored in zip(some, replies, strict=True):
                found += (e for e in self._reader.entries(session_id, _flat(stored)) if not e.view.state.done)
        if include_done:
            # A finished call of a pause that is not over is in its session's hash, not in the archive.
            partly = {entry.at.partition(":")[0] for entry in found}
            found = [e for s in sessions for e in await self.live(s) if e.at.partition(":")[0] in partly]
            names = await self._runner.ask(self._redis.zrange(self._keys.archive, 0, -1))
            for start in range(0, len(names), MOST):
                keys = [f"{self._keys.prefix}pause:{name}" for name in names[start : start + MOST]]
                found += (entry for stored in await self._pipeline(keys) for entry in self._moved(stored))
        return sorted(found, key=lambda entry: (entry.view.pause.opened_at, entry.at))

    async def _pipeline(self, keys: list[str]) -> list[dict[str, str]]:
        pipeline = self._redis.pipeline(transaction=False)
        for key in keys:
            pipeline.hgetall(key)
        replies: list[dict[str, str]] = await self._runner.ask(pipeline.execute())
        return replies

    async def due(self, limit: int) -> dict[str, list[tuple[str, int]]]:
        """Open calls past their expiry: by session, where each is and when it was due (milliseconds)."""
        now = int(await self.now() * 1000)
        members = await self._runner.ask(
            self._redis.zrangebyscore(self._keys.open, "-inf", now, start=0, num=limit, withscores=True)
        )
        found: dict[str, list[tuple[str, int]]] = {}
        for member, score in members:
            named = _CALL.fullmatch(member)
            if named is None or not self._is_session(named["session"]):
                await self._drop(self._keys.open, member)
                continue
            found.setdefault(named["session"], []).append((named["at"], _milliseconds(score)))
        return found

    # --- work
    async def work(self) -> list[str]:
        """Sessions with something to go on with that nobody holds."""
        found: dict[str, list[str]] = {}
        offset, more = 0, 1
        while more:  # all pages: what cannot go on now, however much it is, must not hide what can
            keys = (self._keys.ready, self._keys.running)
            more, alien, pairs = await self._runner.run("work", keys, MOST, offset)
            offset += MOST
            for member in alien:
                self._say_dropped(self._keys.ready, member)
            for session_id, member in zip(pairs[::2], pairs[1::2], strict=True):
                found.setdefault(session_id, [])
                if member:
                    found[session_id].append(member)
        for session_id in [one for one in found if not self._is_session(one)]:
            for member in found.pop(session_id):
                await self._drop(self._keys.ready, member)
            await self._drop(self._keys.running, session_id)
        # What was here at the last look too may stand for nothing at all.
        for session_id in [one for one in found if one in self._before]:
            names = self._keys.session(session_id)
            gone = await self._runner.run("tidy", names, self._keys.agent, session_id, *found[session_id])
            for member in gone:
                self._say_dropped("the list of work", member)
        self._before = set(found)
        return list(found)

    def _is_session(self, session_id: str) -> bool:
        try:
            self._keys.session(session_id)
        except ValueError:
            return False
        return True

    async def _drop(self, index: str, member: str) -> None:
        """Takes out what nobody here wrote, so that it is told once."""
        if await self._runner.ask(self._redis.zrem(index, member)):
            self._say_dropped(index, member)

    @staticmethod
    def _say_dropped(index: str, member: str) -> None:
        log.error(
            "%s held %.200r, which this ledger did not write or which stands for nothing: taken out", index, member
        )

    async def wait_for_work(self, replica: str, timeout_seconds: float) -> list[str]:
        """`work`, looked at when a hint comes and at least twice a lease."""
        until = time.monotonic() + timeout_seconds
        while True:
            now = time.monotonic()
            if now >= self._looked + self._between:
                self._looked = now
                if found := await self.work():
                    return found
            now = time.monotonic()
            if now >= until:
                return []
            if await self._hint(replica, min(until, self._looked + self._between) - now):
                self._looked = float("-inf")

    async def _hint(self, replica: str, seconds: float) -> bool:
        # Without acknowledgement: a hint that gets lost with its reader costs half a lease, never a call.
        read = self._redis.xreadgroup(
            GROUP, replica, {self._keys.inbox: ">"}, count=MOST, block=max(1, int(seconds * 1000)), noack=True
        )
        try:
            return bool(await self._runner.ask(read, seconds + PATIENCE))
        except Refusal as refusal:
            if not str(refusal.__cause__).startswith("NOGROUP"):
                raise
        try:
            await self._runner.ask(self._redis.xgroup_create(self._keys.inbox, GROUP, id="0", mkstream=True))
        except Refusal as refusal:
            if not str(refusal.__cause__).startswith("BUSYGROUP"):  # another replica was faster: just as well
                raise
        return True  # what came before the group was there

    # --- the outbox
    async def happened(self, after: str, limit: int) -> list[tuple[str, dict[str, str]]]:
        """Events after the one with the id `after`."""
        found: list[tuple[str, dict[str, str]]] = await self._runner.ask(
            self._redis.xrange(self._keys.outbox, min=f"({after}", max="+", count=limit)
        )
        return found

    async def acknowledge(self, upto: str) -> None:
        """Drops events up to and with `upto`."""
        milliseconds, _, number = upto.partition("-")
        following = f"{milliseconds}-{int(number or 0) + 1}"
        await self._runner.ask(self._redis.xtrim(self._keys.outbox, minid=following, approximate=False))


def _flat(stored: dict[str, Any]) -> list[str]:
    return [part for pair in stored.items() for part in pair]


def _milliseconds(score: float) -> int:
    """A score as a time: somebody may have set it to anything, and the nearest time keeps the member in its list."""
    return int(max(0, min(score, 2**53)))
