"""The ledgers of local mode, found through the state directory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sayso_approvals.connect import BadUrl, connect
from sayso_approvals.keys import Keys
from sayso_approvals.ledger import Ledger
from sayso_approvals.records import AgentId
from sayso_approvals.refusals import Refusal
from sayso_approvals.seal import BadKey, load_or_create_key, new_key
from sayso_cli.approvals.rows import Row, sort_key
from sayso_cli.dev.state import StateDir
from sayso_cli.errors import USAGE, CliError

SCAN_PATTERN = "sayso:{*}:*/*:*"


@dataclass(slots=True)
class Store:
    """The Redis of one state directory and the ledger of every agent that has anything in it."""

    redis: Any
    url: str
    state: StateDir
    current: frozenset[AgentId]

    async def agents(self) -> list[AgentId]:
        """Every agent of the manifests and every other one with keys in the store, in order of their names."""
        return sorted(self.current | set(await all_agents(self.redis)), key=str)

    def ledger(self, agent: AgentId) -> Ledger:
        """The agent's ledger. Without its key nothing in it can be proven, and every call shows as `integrity`."""
        path = self.state.key_file(agent.namespace, agent.name)
        try:
            key = load_or_create_key(path) if path.exists() else new_key()
        except BadKey as error:
            raise CliError(str(error)) from error
        return Ledger(self.redis, agent, key)

    async def rows(self, *, done: bool, agent: AgentId | None = None) -> list[Row]:
        """Every call (`done`: those too that nothing can happen to any more), oldest first."""
        wanted = await self.agents() if agent is None else [agent]
        views = await asyncio.gather(*(self.ledger(one).calls(include_done=done) for one in wanted))
        rows = [
            Row(one, view, orphaned=one not in self.current)
            for one, found in zip(wanted, views, strict=True)
            for view in found
        ]
        return sorted(rows, key=sort_key)


async def all_agents(redis: Any) -> list[AgentId]:
    """Every agent with keys in the store. Refusal where the store does not answer."""
    from redis.exceptions import RedisError

    found = set()
    try:
        async for key in redis.scan_iter(match=SCAN_PATTERN, count=1000):
            agent = agent_of(key)
            if agent is not None:
                found.add(agent)
    except (RedisError, OSError) as error:
        raise Refusal("store_unreachable", f"the store does not answer: {error}") from error
    return sorted(found, key=str)


def agent_of(key: str | bytes) -> AgentId | None:
    """The agent that a key of the store belongs to; None for keys that are nobody's."""
    text = key.decode("utf-8", "replace") if isinstance(key, bytes) else key
    parts = text.split(":", 3)
    if len(parts) < 4 or parts[0] != "sayso":
        return None
    namespace, _, name = parts[2].partition("/")
    agent = AgentId(namespace, name)
    try:
        return agent if text.startswith(Keys(agent).prefix) else None
    except ValueError:
        return None


def agent_id(path: str) -> AgentId:
    """`<namespace>/<name>` as an AgentId. CliError (usage) for anything else."""
    namespace, slash, name = path.partition("/")
    if not (slash and namespace and name) or "/" in name:
        raise CliError(f"{path!r} is not an agent: write <namespace>/<name>", USAGE)
    return AgentId(namespace, name)


def location(state: StateDir, redis_url: str | None) -> tuple[str, Sequence[str]]:
    """The store's URL and the agents of the manifests. CliError where nothing says where the store is."""
    endpoints, known = state.endpoints(), state.known()
    url = redis_url or (endpoints.redis if endpoints else None) or (known.redis if known else None)
    if url is None:
        raise CliError(
            f"nothing is known of a store: {state.root} has no endpoints.json and no agents.json. "
            "Start sayso dev there, or name the place with --state-dir or --redis-url"
        )
    agents = set(known.agents if known else ()) | set(endpoints.agents if endpoints else ())
    return url, sorted(agents)


@contextlib.asynccontextmanager
async def opened(state_dir: Path | None, redis_url: str | None) -> AsyncIterator[Store]:
    """The store, connected. CliError where it does not answer; a Refusal ends the command with its sentence."""
    from redis.exceptions import RedisError

    from sayso_cli.dev.state import find

    state = find(state_dir)
    url, agents = location(state, redis_url)
    try:
        client = connect(url)
    except BadUrl as error:
        raise CliError(f"--redis-url: {error}", USAGE) from error
    try:
        try:
            await client.ping()
        except (RedisError, OSError) as error:
            raise CliError(
                f"the store at {url} does not answer ({error}). Where sayso dev keeps it, start sayso dev; "
                "pauses wait on disk"
            ) from error
        yield Store(client, url, state, frozenset(agent_id(path) for path in agents))
    except Refusal as refusal:
        raise CliError(sentence(refusal)) from refusal
    except RedisError as error:
        raise CliError(f"the store at {url} failed: {error}") from error
    finally:
        await client.aclose()


def sentence(refusal: Refusal) -> str:
    """A refusal in words: what, and where somebody decided, who, when and why."""
    from sayso_cli.output import safe, timestamp

    text = safe(refusal.detail)
    known = []
    if refusal.verdict and refusal.verdict not in text:
        known.append(refusal.verdict)
    if refusal.decided_by and refusal.decided_by not in text:
        known.append(f"by {safe(refusal.decided_by)}")
    if refusal.decided_at:
        known.append(f"at {timestamp(refusal.decided_at)}")
    if refusal.reason and refusal.reason not in text:
        known.append(f"reason: {safe(refusal.reason)}")
    return f"{text} ({', '.join(known)})" if known else text
