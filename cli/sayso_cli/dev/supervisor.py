"""`sayso dev` while it runs: the store, then the agents, then waiting; and the same backwards at the end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import httpx

from sayso_approvals.connect import connect
from sayso_approvals.ledger import Ledger
from sayso_approvals.refusals import Refusal
from sayso_approvals.seal import BadKey, load_or_create_key
from sayso_cli.dev.children import Child
from sayso_cli.dev.plan import Plan
from sayso_cli.dev.ports import REDIS, process_name
from sayso_cli.dev.readiness import Readiness, ask_all
from sayso_cli.dev.state import StateDir
from sayso_cli.dev.store import KeptRedis, warnings
from sayso_cli.dev.tail import follow, human, size
from sayso_cli.errors import USAGE
from sayso_cli.output import painter, safe

STARTING = 0.1  # seconds between looks at agents that start
RUNNING = 2.0  # and at those that run
STILL_WAITING = 15.0  # seconds after which it says what it waits for
ORPHANS = 30.0  # seconds between looks for overdue pauses of agents that nobody runs

_COLOURS = ("cyan", "magenta", "blue", "green", "yellow")


@dataclass(slots=True)
class Supervisor:
    """Runs one plan until it is told to end. The state directory's lock is held by the caller."""

    plan: Plan
    state: StateDir
    redis_url: str | None
    children: dict[str, Child] = field(default_factory=dict)
    _code: int = 0
    _redis: KeptRedis | None = None
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _tails_stop: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _tails: list[asyncio.Task[None]] = field(default_factory=list)
    _said: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def say(self, text: str) -> None:
        """A line of our own, beside those of the agents."""
        self._line("sayso", "bold", text)

    async def run(self) -> int:
        """Until SIGINT or SIGTERM; a second one does not wait for agents that are still busy.

        Returns the exit code: 0, or 2 where an agent's configuration turned out not to work.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._told_to_stop)
        try:
            work = asyncio.create_task(self._work(), name="work")
            stopped = asyncio.create_task(self._stop.wait(), name="stop")
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if not work.done():
                work.cancel()
            with suppress(asyncio.CancelledError):
                await work
        finally:
            await self._end()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
        return self._code

    def _told_to_stop(self) -> None:
        if self._stop.is_set():
            self.say("asked twice: what still runs is killed; a call that was under way will show as outcome unknown")
            for child in self.children.values():
                child.kill()
            return
        self._stop.set()

    def _hopeless(self, process: str) -> None:
        self.say(f"{process} cannot work as it is configured; what it said is in {self.children[process].launch.log}")
        self._code = USAGE
        self._stop.set()

    async def _work(self) -> None:
        url = await self._start_store()
        for warning in await warnings(url):
            self.say(f"warning: this Redis would forget. {warning}")
        self.state.write_known(list(self.plan.configs), url)
        launches = self.plan.launches(self.state, url, os.environ)
        for index, (process, launch) in enumerate(launches.items()):
            self._tail(process, _COLOURS[index % len(_COLOURS)])
            child = Child(launch, self.say, self._hopeless)
            self.children[process] = child
            await child.start()
        async with httpx.AsyncClient(trust_env=False) as client:
            await self._until_ready(client)
            self.state.write_endpoints(self.plan.endpoints(url))
            self._greet()
            self._tasks.append(asyncio.create_task(self._expire_orphans(url), name="orphans"))
            while True:
                await asyncio.sleep(RUNNING)
                self._report(await ask_all(client, self._urls()))

    async def _start_store(self) -> str:
        if self.redis_url is not None:
            return self.redis_url
        self._redis = KeptRedis(self.state.redis_dir, self.plan.ports[REDIS], self.say)
        await self._redis.start()
        return self._redis.url

    def _urls(self) -> dict[str, str]:
        urls = self.plan.urls()
        return {process_name(path, replica): url for path, found in urls.items() for replica, url in enumerate(found)}

    async def _until_ready(self, client: httpx.AsyncClient) -> None:
        """Returns when every process is ready, or would be but for tool servers that do not answer."""
        loop = asyncio.get_running_loop()
        speak = loop.time() + STILL_WAITING
        while True:
            found = await ask_all(client, self._urls())
            waiting = {name: one for name, one in found.items() if not (one.ready or one.only_tools_missing)}
            if not waiting:
                self._report(found)
                return
            if loop.time() >= speak:
                speak = loop.time() + STILL_WAITING
                for name, one in waiting.items():
                    self.say(f"still waiting for {name}: {'; '.join(one.reasons)}")
            await asyncio.sleep(STARTING)

    def _report(self, found: Mapping[str, Readiness]) -> None:
        """Says what has changed since the last look; agents that do not answer are their keeper's to speak of."""
        for name, one in found.items():
            before = self._said.get(name, ())
            now = one.reasons if one.alive else before
            if now == before:
                continue
            self._said[name] = now
            self.say(f"{name} is not ready: {'; '.join(now)}" if now else f"{name} is ready again")

    def _greet(self) -> None:
        for path, urls in self.plan.urls().items():
            self.say(f"Agent {path} answers at {', '.join(urls)}")
        missing = sum(1 for reasons in self._said.values() if reasons)
        state = f"; {missing} of {len(self.children)} processes are not ready, for the reasons above" if missing else ""
        self.say(f"state in {self.state.root}{state}. Ctrl-C ends it; pauses stay.")

    def _tail(self, process: str, colour: str) -> None:
        path, _, replica = process.partition("#")
        log = self.state.log_file(f"{path.replace('/', '.')}-{replica}")

        def emit(raw: str) -> None:
            shown = human(raw)
            if shown is not None:
                level, text = shown
                prefix = "" if level == "INFO" else f"{level.lower()}: "
                self._line(process, colour, prefix + text)

        self._tails.append(asyncio.create_task(follow(log, emit, self._tails_stop, start=size(log)), name=process))

    def _line(self, who: str, style: str, text: str) -> None:
        width = max([len("sayso"), *(len(name) for name in self._urls())])
        paint = painter(sys.stderr)
        for line in text.splitlines() or [""]:
            print(f"{paint(who.ljust(width), style)} | {safe(line)}", file=sys.stderr, flush=True)

    async def _expire_orphans(self, url: str) -> None:
        """Pauses of agents that are in no manifest any more expire too: nobody else looks after them."""
        from sayso_cli.approvals.store import all_agents

        client = connect(url)
        try:
            while True:
                with suppress(Refusal, BadKey):
                    for agent in await all_agents(client):
                        path = self.state.key_file(agent.namespace, agent.name)
                        if str(agent) not in self.plan.configs and path.exists():
                            await Ledger(client, agent, load_or_create_key(path)).expire_due()
                await asyncio.sleep(ORPHANS)
        finally:
            await client.aclose()

    async def _end(self) -> None:
        """Agents first, so that what they do can still be written down; then the store."""
        self.state.remove_endpoints()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.children:
            self.say("ending; what is under way may finish")
        grace = self.plan.grace()
        await asyncio.gather(*(child.stop(grace) for child in self.children.values()))
        self._tails_stop.set()
        await asyncio.gather(*self._tails, return_exceptions=True)
        if self._redis is not None:
            await self._redis.stop()
        if self.children:
            self.say("ended; pauses stay where they are")
