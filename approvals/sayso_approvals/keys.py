"""Names of Redis keys.

All of an agent's keys start with `sayso:{sNN}:<namespace>/<agent>:`. The tag in braces is one out of a fixed number of
shards, so that every script of an agent stays within one slot of a cluster; the agent's name comes right after it, so
that an ACL rule can hold a user to one agent. Whatever a client or a model chose is hashed before it becomes part of
a name.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache

from sayso_approvals.records import AgentId

SHARDS = 16
LONGEST = 512  # characters of a session's id
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")  # an RFC 1123 name, as Kubernetes' objects have


def shard(agent: AgentId) -> str:
    """The hash tag of an agent's keys, `s00` to `s15`. It never changes for a given agent."""
    return f"s{hashlib.sha256(str(agent).encode()).digest()[0] % SHARDS:02d}"


@lru_cache(maxsize=4096)
def short(*parts: str) -> str:
    """26 characters (130 bits) that stand for strings chosen outside."""
    text = "\0".join(f"{len(part)}:{part}" for part in parts)
    return base64.b32encode(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()).decode()[:26].lower()


class Keys:
    """The key names of one agent. Raises ValueError for a name that no Kubernetes object could have."""

    def __init__(self, agent: AgentId) -> None:
        for name in (agent.namespace, agent.name):
            if not _NAME.fullmatch(name):
                raise ValueError(f"Agent {agent}: {name!r} is not an RFC 1123 name")
        tag = f"sayso:{{{shard(agent)}}}:"
        self.agent = str(agent)
        self.prefix = f"{tag}{agent}:"
        self.open = self.prefix + "open"  # zset: calls waiting for a verdict, by expiry
        self.ready = self.prefix + "ready"  # zset: decided calls that are not done, by when to look at them
        self.running = self.prefix + "running"  # zset: sessions whose turn is held, by the lease's end
        self.outbox = self.prefix + "outbox"  # stream: what happened, for whoever watches this agent
        self.inbox = self.prefix + "inbox"  # stream: hints for the agent's replicas
        self.unfinished = self.prefix + "unfinished"  # zset: pauses with calls that are not done, by opening
        self.archive = self.prefix + "archive"  # zset: pauses that are done, by when
        self.wake = tag + "wake"  # stream, shared by a shard: hints for the operator, never trusted
        self._sessions = lru_cache(maxsize=1024)(self._session)

    def session(self, session_id: str) -> tuple[str, ...]:
        """The thirteen keys that every script about a session gets, in the order of `scripts/common.lua`."""
        if not 0 < len(session_id) <= LONGEST:
            raise ValueError(f"a session's id has 1 to {LONGEST} characters")
        session_id.encode()  # a lone surrogate is no text
        return self._sessions(session_id)

    def _session(self, session_id: str) -> tuple[str, ...]:
        name = short(session_id)
        own = [f"{self.prefix}{part}:{name}" for part in ("session", "live", "events", "waiting", "answering")]
        streams = (self.outbox, self.inbox, self.wake)
        return (*own, self.open, self.ready, self.running, *streams, self.unfinished, self.archive)

    def pause(self, pause_id: str) -> str:
        """Hash: the session of a pause, and its record and calls once all of them are done."""
        return f"{self.prefix}pause:{short(pause_id)}"

    def task(self, task_id: str) -> str:
        """Hash: version, document and state of a task."""
        return f"{self.prefix}task:{short(task_id)}"

    def answer(self, session_id: str, message_id: str) -> str:
        """String: the answer that a message got."""
        return f"{self.prefix}answer:{short(session_id, message_id)}"
