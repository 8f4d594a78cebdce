"""An agent as it runs for people: replicas, Redis and a tool server as real processes, spoken to over the wire.

    async with running(tmp_path) as shop:                two replicas would be `replicas=2`
        paused = await shop.a.say("Refund A-1", "s1")
        await shop.a.kill()

What a tool did is read from the file that it wrote (`held_tools.py`), never from Sayso. Every wait is for an event (an
answer, a file, a line of a log) and has an end. Whatever was started is ended by its process id.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from sayso_api.runtimeconfig import ModelSettings, RuntimeConfig
from sayso_approvals.connect import connect
from sayso_approvals.ledger import Choice, Ledger
from sayso_approvals.records import CallView, Verdict
from sayso_approvals.refusals import Refusal
from sayso_approvals.seal import load_or_create_key
from sayso_approvals.server import RedisServer, free_port
from support import a2a03
from support.a2a03 import Json
from support.held_agent import AGENT, config_of

TESTS = Path(__file__).resolve().parent.parent
#: Seconds after which a wait fails. Generous: it is only ever reached when something is broken.
PATIENCE = 45.0
#: Seconds that a dead replica keeps a session.
LEASE = 1.0


async def until(true: Callable[[], Awaitable[Any] | Any], what: str) -> Any:
    """Asks again and again until the answer is true, and returns it. Fails naming `what` after a while."""
    end = time.monotonic() + PATIENCE
    while True:
        found = true()
        if isinstance(found, Awaitable):
            found = await found
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE:g} s for this, and it did not come: {what}")
        await asyncio.sleep(0.02)


@dataclass(eq=False)
class Process:
    """One process of ours, with its log. Started again, it appends to the log."""

    command: Sequence[str]
    log: Path
    environment: dict[str, str]
    popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it; an older one has to have ended."""
        assert not self.runs, f"{self.log.name} still runs"
        with self.log.open("ab") as out:
            self.popen = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.environment
            )

    @property
    def runs(self) -> bool:
        """Whether it was started and has not ended."""
        return self.popen is not None and self.popen.poll() is None

    def send(self, number: signal.Signals) -> None:
        """A signal."""
        assert self.popen is not None, f"{self.log.name} was never started"
        self.popen.send_signal(number)

    async def ended(self) -> int:
        """Its exit code, once it has ended."""
        assert self.popen is not None
        await until(lambda: self.popen is not None and self.popen.poll() is not None, f"the end of {self.log.name}")
        code: int = self.popen.returncode
        return code

    async def kill(self) -> None:
        """SIGKILL, and waits until it is gone; nothing when it is gone already."""
        if self.runs:
            self.send(signal.SIGKILL)
            await self.ended()

    def said(self, words: str) -> bool:
        """Whether the log has these words by now."""
        return words in self.log.read_text("utf-8", "replace")

    async def answers(self, url: str) -> None:
        """Waits until a GET is answered with anything below 500. Fails with the log's end when the process dies."""

        async def answered() -> bool:
            if not self.runs:
                raise AssertionError(f"it ended: {self.log.read_text('utf-8', 'replace')[-3000:]}")
            try:
                async with a2a03.client() as http:
                    return (await http.get(url)).status_code < 500
            except httpx.TransportError:
                return False

        await until(answered, f"an answer from {url}; see {self.log}")


@dataclass(eq=False)
class Replica:
    """One replica of the agent, and a client that talks to it."""

    process: Process
    port: int

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Starts it, and waits until it is ready."""
        self.process.start()
        await self.ready()

    async def ready(self) -> None:
        """Waits until it can take a message."""
        await self.process.answers(f"{self.url}/readyz")

    async def kill(self) -> None:
        """kill -9."""
        await self.process.kill()

    async def post(self, document: Json) -> Json:
        """One JSON-RPC request on a connection of its own; the whole answer."""
        async with a2a03.client() as http:
            return a2a03.read(await http.post(self.url, json=document))

    async def say(self, text: str, session: str, **more: Any) -> Json:
        """Sends a message; the task at the end of its run."""
        return a2a03.result(await self.post(a2a03.message(text, session, **more)))

    async def decide(self, decision: Json, session: str, **more: Any) -> Json:
        """Sends a decision part; the task at the end of its run."""
        return a2a03.result(await self.post(a2a03.decision(decision, session, **more)))

    async def task(self, task_id: str) -> Json:
        """The task as it is stored."""
        return a2a03.result(await self.post(a2a03.get_task(task_id)))

    async def becomes(self, task_id: str, state: str) -> Json:
        """The task once it has this state, without anybody sending anything."""

        async def there() -> Json | None:
            task = await self.task(task_id)
            return task if a2a03.state(task) == state else None

        found: Json = await until(there, f"task {task_id} becomes {state}")
        return found

    async def asks(self, task_id: str, name: str) -> Json:
        """The task once it asks a question of this name, without anybody sending anything."""

        async def there() -> Json | None:
            task = await self.task(task_id)
            return task if name in [asked for _, asked in a2a03.asked(task)] else None

        found: Json = await until(there, f"task {task_id} asks {name}")
        return found

    async def model_calls(self) -> float:
        """How many replies of the model this process has had since it started."""
        async with a2a03.client() as http:
            text = (await http.get(f"{self.url}/metrics")).text
        line = next(line for line in text.splitlines() if line.startswith("sayso_model_calls_total "))
        return float(line.split()[1])


@dataclass(eq=False)
class Shop:
    """Everything that runs for one test."""

    directory: Path
    redis: RedisServer
    tools: Process | None
    tools_port: int
    replicas: list[Replica] = field(default_factory=list)

    @property
    def a(self) -> Replica:
        """The first replica."""
        return self.replicas[0]

    @property
    def b(self) -> Replica:
        """The second one."""
        return self.replicas[1]

    # --- the tools' files
    @property
    def held(self) -> Path:
        """The directory of the tools' files."""
        return self.directory / "held"

    def touch(self, *names: str) -> None:
        """Writes files, such as `hold-before` and `go`."""
        for name in names:
            (self.held / name).touch()

    async def whole(self) -> None:
        """Brings back what is dead and forgets every hold and effect: so begins a test on shared processes."""
        for file in self.held.iterdir():
            file.unlink()
        for replica in self.replicas:
            if replica.process.runs:  # a test that failed may have left it stopped
                replica.process.send(signal.SIGCONT)
        if self.redis.pid is None:
            await self.redis.start()
        if self.tools is not None and not self.tools.runs:
            await self.start_tools()
        await asyncio.gather(
            *(replica.ready() if replica.process.runs else replica.start() for replica in self.replicas)
        )

    async def there(self, name: str) -> None:
        """Waits for a file."""
        await until((self.held / name).exists, f"the file {name}")

    def effects(self, order: str | None = None) -> list[str]:
        """The tools that had their effect, in order; those of one order only where it is given."""
        file = self.held / "effects"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [line["tool"] for line in lines if order in (None, line["order"])]

    # --- what the ledger says
    @asynccontextmanager
    async def ledger(self) -> AsyncIterator[Ledger]:
        """The agent's ledger, with its key: what the command line and the operator use."""
        client = connect(self.redis.url)
        try:
            yield Ledger(client, AGENT, load_or_create_key(self.directory / "agent.key"), lease_seconds=LEASE)
        finally:
            await client.aclose()

    async def call(self, session: str, call_id: str = "c1") -> CallView:
        """One call of a session, done or not."""
        async with self.ledger() as ledger:
            views = await ledger.calls(include_done=True)
        found = [view for view in views if (view.pause.session_id, view.call.call_id) == (session, call_id)]
        assert len(found) == 1, f"{call_id} of {session} is there {len(found)} times"
        return found[0]

    async def events(self, session: str) -> list[Json]:
        """What the session's history holds, oldest first: what the model is shown."""
        async with self.ledger() as ledger:
            return [json.loads(text) for text in await ledger.events(session)]

    async def told(self, session: str, call_id: str = "c1") -> str:
        """The last answer about a call that the model was given, as JSON text."""
        responses = [
            part["functionResponse"]
            for event in await self.events(session)
            for part in (event.get("content") or {}).get("parts", [])
            if "functionResponse" in part
        ]
        return next(json.dumps(one["response"]) for one in reversed(responses) if one["id"] == call_id)

    async def decide_aside(self, session: str, verdict: Verdict, by: str = "bob") -> None:
        """Records a verdict about the session's open call, as the command line does, without any agent's help."""
        async with self.ledger() as ledger:
            view = await self.call(session)
            choice = Choice(view.pause.pause_id, view.call.call_id, view.call.digest, verdict)
            await ledger.decide([choice], by=by, via="cli", decision_id="aside")

    async def settle(self, session: str, action: str, result: Any = None, call_id: str = "c1") -> None:
        """Settles an unknown outcome in bob's name, as soon as nobody can be sending it any more."""
        view = await self.call(session, call_id)

        async def accepted() -> bool:
            try:
                async with self.ledger() as ledger:
                    await ledger.settle(
                        view.pause.pause_id,
                        call_id,
                        action=action,
                        result=None if result is None else json.dumps(result),
                        by="bob",
                        reason="looked",
                        attempt=view.state.attempt,
                    )
            except Refusal as refusal:
                if refusal.code != "paused":
                    raise
                return False
            return True

        await until(accepted, f"{action} of {call_id} is accepted")

    # --- comings and goings
    async def start_tools(self) -> None:
        """Starts the tool server, and waits until it answers."""
        assert self.tools is not None
        self.tools.start()
        await self.tools.answers(f"http://127.0.0.1:{self.tools_port}/mcp")

    async def close(self) -> None:
        """Ends everything."""
        processes = [replica.process for replica in self.replicas]
        for process in [*processes, *([self.tools] if self.tools else [])]:
            with contextlib.suppress(AssertionError):
                await process.kill()
        await self.redis.stop()


def prepare(
    directory: Path,
    model: ModelSettings,
    *,
    replicas: int = 1,
    mcp: bool = False,
    tool_seconds: float = 5.0,
    stops: bool = False,
    options: Sequence[str] = (),
) -> Shop:
    """Everything that one test needs, not yet started. `stops`: the agents can stop themselves (`stopping/`)."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "held").mkdir()
    shop = Shop(directory, RedisServer(directory / "redis", port=free_port()), None, free_port())
    inherited = os.environ.get("PYTHONPATH", "")
    tools_path = os.pathsep.join([str(TESTS), *([inherited] if inherited else [])])
    path = os.pathsep.join([str(TESTS / "support" / "stopping"), tools_path]) if stops else tools_path
    environment = os.environ | {"HELD_DIR": str(shop.held), "PYTHONPATH": path}
    # Processes are started by the dozen: compiling their modules once, not each time, takes two thirds off a start.
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(TESTS.parent / "build" / "bytecode")}
    url = f"http://127.0.0.1:{shop.tools_port}/mcp" if mcp else None
    if mcp:
        command = [sys.executable, "-m", "support.held_tools", "--port", str(shop.tools_port)]
        shop.tools = Process(command, directory / "tools.log", environment | {"PYTHONPATH": tools_path})
    write_config(shop, config_of(model, url, tool_seconds=tool_seconds))
    for name in "ab"[:replicas]:
        port = free_port()
        command = [sys.executable, "-m", "sayso_runtime", "--config", str(directory / "config.json")]
        command += ["--redis-url", shop.redis.url, "--key-file", str(directory / "agent.key")]
        command += ["--port", str(port), "--replica", name, "--user", "alice", "--lease-seconds", str(LEASE), *options]
        shop.replicas.append(Replica(Process(command, directory / f"{name}.log", environment), port))
    return shop


def write_config(shop: Shop, config: RuntimeConfig) -> None:
    """What replicas that start from now on are told."""
    (shop.directory / "config.json").write_text(config.model_dump_json())


async def start(shop: Shop) -> None:
    """Starts everything; a failure leaves nothing running."""
    try:
        await shop.redis.start()
        if shop.tools is not None:
            await shop.start_tools()
        await asyncio.gather(*(replica.start() for replica in shop.replicas))
    except BaseException:
        await shop.close()
        raise


@contextmanager
def shared(directory: Path, model: ModelSettings, **more: Any) -> Iterator[Shop]:
    """`running` for a whole module of tests, away from the event loops of its tests. Each begins with `whole`."""
    with ThreadPoolExecutor(1) as apart:
        shop = prepare(directory, model, **more)
        apart.submit(asyncio.run, start(shop)).result()
        try:
            yield shop
        finally:
            apart.submit(asyncio.run, shop.close()).result()


@asynccontextmanager
async def running(directory: Path, model: ModelSettings, **more: Any) -> AsyncIterator[Shop]:
    """`prepare` and `start`; at the end everything is gone."""
    shop = prepare(directory, model, **more)
    await start(shop)
    try:
        yield shop
    finally:
        await shop.close()
