"""From what Redis returns to `CallView`s, believing nothing without the agent's seal.

A pause is intact when its text carries this agent's seal and says that it is this pause, of this session, of this
agent; a call's verdict when it is sealed and says that it is about this call, this digest and this attempt. A sealed
record copied to another place, or kept from an earlier attempt, is as good as forged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sayso_approvals import seal
from sayso_approvals.keys import short
from sayso_approvals.records import (
    AgentId,
    CallState,
    CallView,
    Journal,
    Kind,
    Pause,
    PausedCall,
    Verdict,
    VerdictRecord,
)

K = TypeVar("K")
V = TypeVar("V")

#: Verdicts that run nothing and tell nobody anything: carried out even where the pause's record is not intact.
HARMLESS = frozenset({Verdict.CANCELLED})


class Recent(dict[K, V], Generic[K, V]):
    """The newest entries, up to a number."""

    def __init__(self, most: int) -> None:
        self._most = most

    def keep(self, key: K, value: V) -> V:
        self.pop(key, None)
        self[key] = value
        if len(self) > self._most:
            del self[next(iter(self))]
        return value


@dataclass(frozen=True, slots=True)
class SealedPause:
    """A pause with the text and seal that Redis holds. `sha` (SHA-1 of the text) is how scripts compare it."""

    pause: Pause
    text: str
    mac: str
    sha: str
    intact: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """A call as read, with what a script compares before it changes anything.

    `at` names the call inside its session's hash. `verdict_holds`: the verdict is sealed, whatever the pause is.
    """

    view: CallView
    session_id: str  # whose hash it was read from
    at: str
    sealed: SealedPause
    vmac: str
    verdict_holds: bool

    @property
    def may_go_on(self) -> bool:
        """Whether a run may take this verdict to the model."""
        record = self.view.state.verdict
        return self.view.intact or (self.verdict_holds and record is not None and record.verdict in HARMLESS)


class Reader:
    """Reads the records of one agent, checking each text's seal once."""

    def __init__(self, agent: AgentId, key: bytes) -> None:
        if len(key) != seal.KEY_BYTES:
            raise ValueError(f"an agent's key has {seal.KEY_BYTES} bytes")
        self._agent = agent
        self._key = key
        self._pauses: Recent[str, SealedPause] = Recent(1024)
        self._verdicts: Recent[tuple[str, str], VerdictRecord] = Recent(1024)

    # --- writing
    def seal_pause(self, pause: Pause) -> SealedPause:
        """The pause as it is stored."""
        known = self._pauses.get(short(pause.pause_id))
        if known is not None and known.intact and known.pause is pause:
            return known
        text = seal.dump_pause(pause)
        return SealedPause(pause, text, seal.seal(self._key, "pause", text), _sha(text), intact=True)

    def stored(self, sealed: SealedPause) -> None:
        """The ledger has taken this pause: no need to read it back."""
        self._pauses.keep(short(sealed.pause.pause_id), sealed)

    def seal_verdict(self, record: VerdictRecord) -> tuple[str, str]:
        """The verdict's text and seal."""
        text = seal.dump_verdict(record)
        return text, seal.seal(self._key, "verdict", text)

    def fresh(self, pause_id: str, call_id: str) -> Entry | None:
        """A call of a known pause, as it was when it was opened: only to be written about by a script that compares
        the attempt too."""
        sealed = self.known(pause_id)
        if sealed is None:
            return None
        for index, call in enumerate(sealed.pause.calls):
            if call.call_id == call_id:
                view = CallView(sealed.pause, call, CallState())
                return Entry(
                    view, sealed.pause.session_id, f"{short(pause_id)}:{index}", sealed, "", verdict_holds=False
                )
        return None

    def known(self, pause_id: str) -> SealedPause | None:
        """A pause that was read or written here and was intact then. Scripts compare it with what is there now."""
        found = self._pauses.get(short(pause_id))
        return found if found is not None and found.intact else None

    # --- reading
    def entries(self, session_id: str, flat: Sequence[str]) -> list[Entry]:
        """All calls in the reply of an HGETALL, in the order in which they were opened."""
        stored = dict(zip(flat[::2], flat[1::2], strict=True))
        names = [field[:-6] for field in stored if field.endswith(":pause")]
        names.sort(key=lambda name: (_number(stored.get(f"{name}:opened")), name))
        return [entry for name in names for entry in self._entries(session_id, name, stored)]

    def _entries(self, session_id: str, name: str, stored: dict[str, str]) -> list[Entry]:
        text, mac = stored.get(f"{name}:record", ""), stored.get(f"{name}:mac", "")
        sealed = self._pauses.get(name)
        if sealed is None or sealed.text != text or sealed.mac != mac:
            sealed = self._pauses.keep(name, self._sealed(name, text, mac, stored))
        pause = sealed.pause
        intact = sealed.intact and pause.session_id == session_id
        found = []
        for index, call in enumerate(pause.calls):
            at = f"{name}:{index}"
            vtext, vmac = stored.get(f"{at}:verdict", ""), stored.get(f"{at}:vmac", "")
            counted = stored.get(f"{at}:attempt", "1")
            attempt = int(_number(counted))
            verdict, holds = self._verdict(vtext, vmac)
            if verdict is not None:
                holds = holds and (verdict.pause_id, verdict.call_id) == (pause.pause_id, call.call_id)
                right = holds and verdict.digest == call.digest and verdict.attempt == attempt
                right = right and verdict.verdict == stored.get(f"{at}:word")
            else:
                right = not vtext and not stored.get(f"{at}:word")
            right = right and attempt > 0 and counted == str(attempt)  # scripts compare it as text
            view = CallView(pause, call, _state(stored, at, verdict, attempt), intact and right)
            found.append(Entry(view, session_id, at, sealed, vmac, holds))
        return found

    def _sealed(self, name: str, text: str, mac: str, stored: dict[str, str]) -> SealedPause:
        try:
            pause = seal.load_pause(text)
            holds = seal.holds(self._key, "pause", text, mac)
            intact = holds and pause.agent == self._agent and short(pause.pause_id) == name
        except (seal.BadRecord, UnicodeError):
            pause, intact = None, False
        if pause is None or not intact:
            pause = _stand_in(self._agent, name, stored, pause)
        return SealedPause(pause, text, mac, _sha(text), intact)

    def _verdict(self, text: str, mac: str) -> tuple[VerdictRecord | None, bool]:
        if not text:
            return None, False
        known = self._verdicts.get((text, mac))
        if known is not None:
            return known, True
        try:
            record = seal.load_verdict(text)
        except (seal.BadRecord, UnicodeError):
            return None, False
        if not seal.holds(self._key, "verdict", text, mac):
            return record, False
        return self._verdicts.keep((text, mac), record), True


def _stand_in(agent: AgentId, name: str, stored: dict[str, str], claimed: Pause | None) -> Pause:
    """What is shown of a pause whose record is not the agent's own: enough to see it and to cancel it.

    Ids come from the index fields, which say how many calls there are; the rest is what the record claims.
    """
    ids: list[str] = []
    while (call_id := stored.get(f"{name}:{len(ids)}:call")) is not None:
        ids.append(call_id)
    claims = {call.call_id: call for call in claimed.calls} if claimed else {}
    return Pause(
        pause_id=stored.get(f"{name}:pause", ""),
        agent=agent,
        session_id=claimed.session_id if claimed else "",
        task_id=claimed.task_id if claimed else "",
        engine=claimed.engine if claimed else "",
        requester=claimed.requester if claimed else "",
        opened_at=_number(stored.get(f"{name}:opened")) / 1000,
        expires_at=claimed.expires_at if claimed else 0.0,
        calls=tuple(claims.get(id_) or _blank(id_) for id_ in ids),
    )


def _blank(call_id: str) -> PausedCall:
    return PausedCall(
        call_id=call_id, kind=Kind.TOOL_CALL, server="", endpoint="", tool="", alias="", arguments="null", digest=""
    )


def _state(stored: dict[str, str], at: str, verdict: VerdictRecord | None, attempt: int) -> CallState:
    get = stored.get
    journal = get(f"{at}:journal", "")
    return CallState(
        verdict=verdict,
        # A word that nobody here writes was written by somebody else: nobody knows what happened.
        journal=Journal(journal) if journal in _JOURNALS else Journal.UNKNOWN,
        token=int(_number(get(f"{at}:token"))),
        attempt=attempt,
        started_at=_number(get(f"{at}:started")) / 1000,
        finished_at=_number(get(f"{at}:finished")) / 1000,
        result=get(f"{at}:result"),
        result_is_error=get(f"{at}:error") == "1",
        done=bool(get(f"{at}:done")),
        note=get(f"{at}:note", ""),
    )


_JOURNALS = frozenset(str(word) for word in Journal)


def _number(text: str | None) -> float:
    """A stored count or time; 0 for what is not there or was made unreadable."""
    return float(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else 0.0


def _sha(text: str) -> str:
    return hashlib.sha1(text.encode("utf-8", "surrogateescape")).hexdigest()  # noqa: S324  Redis' own name for texts
