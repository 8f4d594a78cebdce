"""One agent's process: everything that an Agent needs, put together and kept running until SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from redis.exceptions import RedisError

from sayso_api.runtimeconfig import RuntimeConfig
from sayso_approvals.connect import connect
from sayso_approvals.durability import check as check_durability
from sayso_approvals.gate import compile_gate
from sayso_approvals.ledger import LEASE_SECONDS, Ledger
from sayso_approvals.records import AgentId, CallView
from sayso_approvals.refusals import Refusal
from sayso_approvals.seal import load_or_create_key
from sayso_runtime.interfaces.metrics import Metrics
from sayso_runtime.tools.outcome import ConfigProblem

if TYPE_CHECKING:
    from sayso_runtime.tools.toolbox import Toolbox

log = logging.getLogger(__name__)

GRACE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """What the command line says. `user`: who a caller on loopback is, where nothing else authenticates.

    `grace_seconds`: how long what runs at a stop may take beyond the longest time-out of a tool server.
    """

    config: Path
    redis_url: str
    key_file: Path
    host: str
    port: int
    replica: str
    user: str
    lease_seconds: float = LEASE_SECONDS
    grace_seconds: float = GRACE_SECONDS


def load_config(path: Path) -> RuntimeConfig:
    """Reads the configuration. Raises ConfigProblem, one sentence naming the file and each field that does not fit."""
    try:
        return RuntimeConfig.model_validate_json(path.read_bytes())
    except ValidationError as error:
        found = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'the whole'}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        raise ConfigProblem(f"{path} is not the configuration of an agent ({found}): compile it anew") from None


async def run(settings: ProcessSettings) -> None:
    """Starts the agent, serves until SIGTERM or SIGINT, drains and closes. Redis need not be there at the start."""
    config = load_config(settings.config)
    identity = AgentId(config.agent.namespace, config.agent.name)
    key = load_or_create_key(settings.key_file)
    async with contextlib.AsyncExitStack() as opened:
        redis = connect(settings.redis_url)
        opened.push_async_callback(redis.aclose)
        ledger = Ledger(redis, identity, key, lease_seconds=settings.lease_seconds)
        metrics = Metrics()
        agent = await build(config, ledger, metrics, os.environ, lease_seconds=settings.lease_seconds)
        opened.push_async_callback(agent.close)
        await serve(settings, config, ledger, metrics, agent, redis)


@dataclass(slots=True)
class Agent:
    """The parts of a running agent."""

    service: Any
    toolbox: Toolbox
    engine: Any
    readiness: Readiness
    report: Callable[[], None]

    async def close(self) -> None:
        """Closes connections to tool servers."""
        await self.engine.close()
        await self.toolbox.close()


class Readiness:
    """Why the agent is not ready; nothing when it is."""

    def __init__(self, ledger: Ledger, toolbox: Toolbox) -> None:
        self._ledger = ledger
        self._toolbox = toolbox
        self.warm = False
        self.broken: list[str] = []

    def watch(self, task: asyncio.Task[None], what: str) -> None:
        """Makes the agent not ready, and says why, when work in the background ends by itself."""

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled():
                log.error("%s has ended: restart the agent", what, exc_info=task.exception())
                self.broken.append(f"{what} has ended: restart the agent")

        task.add_done_callback(ended)

    async def reasons(self) -> Sequence[str]:
        """One sentence for each thing that is missing, naming it."""
        found = [f"tool server {problem.server}: {problem.why}" for problem in self._toolbox.problems()]
        try:
            await self._ledger.ping()
        except Refusal as refusal:
            found.append(refusal.detail)
        found += self.broken
        if not self.warm:
            found.append("the agent is warming up")
        return found


async def build(
    config: RuntimeConfig, ledger: Ledger, metrics: Metrics, env: Mapping[str, str], *, lease_seconds: float
) -> Agent:
    """Puts the agent together; imports the framework only here, so that a wrong configuration fails quickly."""
    from sayso_runtime.engine.adk.agents import build as build_agents
    from sayso_runtime.engine.adk.agents import node_names
    from sayso_runtime.engine.adk.engine import AdkEngine
    from sayso_runtime.engine.api import SCOPE
    from sayso_runtime.models.build import build_model
    from sayso_runtime.service import RunService
    from sayso_runtime.tools.toolbox import AdkToolset, Pins, Toolbox
    from sayso_runtime.turns import Turns, TurnSettings

    def pins() -> Pins:
        scope = SCOPE.get()
        return scope.pins() if scope else {}

    gate = compile_gate(config)
    toolbox = Toolbox(config, env)
    model = build_model(config.model, env, metrics.model_called)
    root = build_agents(config.root, model, lambda node: [AdkToolset(toolbox, node, pins)])
    engine = AdkEngine(
        root,
        gate,
        hint=config.approval.hint,
        nodes=node_names(config.root),
        on_execution=metrics.tool_executed,
    )
    turns = Turns(
        ledger,
        engine,
        TurnSettings(
            agent=AgentId(config.agent.namespace, config.agent.name),
            timeout_seconds=config.approval.timeout_seconds,
            on_timeout=config.approval.on_timeout,
        ),
        lease_seconds=lease_seconds,
    )
    readiness = Readiness(ledger, toolbox)

    async def reachable(views: Sequence[CallView]) -> None:
        check_reachable(views, toolbox)

    service = RunService(
        ledger,
        turns,
        while_paused=config.while_paused,
        reachable=reachable,
        ready=readiness.reasons,
        observe=metrics.observe,
        on_decision=metrics.decided,
    )

    def report() -> None:
        unmatched = gate.unmatched(toolbox.offered())
        metrics.gate_entries_unmatched(len(unmatched))
        for entry in unmatched:
            log.warning("%s", entry)

    agent = Agent(service, toolbox, engine, readiness, report)
    try:
        await toolbox.start()  # last: nothing after it can fail and leave connections open
    except BaseException:
        await agent.close()
        raise
    return agent


def check_reachable(views: Sequence[CallView], toolbox: Toolbox) -> None:
    """Refuses to carry out calls whose server is away, or is not the one that was approved."""
    away = {problem.server: problem.why for problem in toolbox.problems()}
    for view in views:
        call = view.call
        if call.server in away:
            raise Refusal(
                "tool_server_unreachable",
                f"tool server {call.server} of {call.alias} cannot be reached: {away[call.server]}. Nothing changed",
                ids=(call.call_id,),
            )
        endpoint = toolbox.endpoint(call.server)
        if endpoint is not None and endpoint != call.endpoint:
            raise Refusal(
                "integrity",
                f"{call.alias} was asked for on {call.endpoint}, and {call.server} is now {endpoint}: only cancel it",
                ids=(call.call_id,),
            )


async def serve(
    settings: ProcessSettings, config: RuntimeConfig, ledger: Ledger, metrics: Metrics, agent: Agent, redis: Any
) -> None:
    """Serves every door on one port, with the worker beside it."""
    from sayso_runtime.children import Children
    from sayso_runtime.engine.adk.rehearsal import rehearse
    from sayso_runtime.interfaces.http import build_app, loopback_user
    from sayso_runtime.interfaces.serve import serve as serve_http
    from sayso_runtime.worker import Worker

    app = build_app(agent.service, config, metrics, identify=loopback_user(settings.user))
    grace = max([server.timeout_seconds for server in config.servers], default=0.0) + settings.grace_seconds
    worker = Worker(ledger, agent.service.go_on, settings.replica, lease=settings.lease_seconds)
    background = asyncio.create_task(worker.run())
    asides = [background, asyncio.create_task(_watch(agent, ledger, metrics, redis))]
    if agent.toolbox.calls_agents:
        asides.append(asyncio.create_task(Children(ledger, agent.toolbox.agent).run()))
    names = ("the worker", "the watch over metrics and gates", "the look at other agents")
    for task, what in zip(asides, names, strict=False):
        agent.readiness.watch(task, what)

    until: list[float] = []  # on the monotonic clock: one end for all that is waited for, however it is divided

    def stop() -> None:
        until.append(time.monotonic() + (0.0 if until else grace))
        background.cancel()
        agent.service.stop()

    async def ready() -> None:
        await rehearse()
        gc.collect()
        gc.freeze()  # what is loaded now stays: later collections need not look at it
        gc.enable()
        agent.readiness.warm = True

    try:
        await serve_http(app, settings.host, settings.port, on_ready=ready, on_stop=stop, drain_seconds=grace)
        if not until:
            stop()
        left = max(0.0, until[-1] - time.monotonic())
        log.info("no request is left: at most %.1f s for what runs without one", left)
        await asyncio.gather(agent.service.drain(left), worker.finish(left))
    finally:
        for task in asides:
            task.cancel()
        await asyncio.gather(*asides, return_exceptions=True)


async def _watch(agent: Agent, ledger: Ledger, metrics: Metrics, redis: Any) -> None:
    """Keeps the gauges true, warns once of a Redis that would forget, and reports gate entries that match nothing
    whenever what the servers offer changes."""
    version = -1
    known_store = failed = False
    while True:
        try:
            metrics.pauses_open(await ledger.open_count())
            if not known_store:
                for warning in await check_durability(redis):
                    log.warning("redis: %s", warning)
                known_store = True
            if agent.toolbox.version != version:
                version = agent.toolbox.version
                agent.report()
            failed = False
        except (Refusal, RedisError, OSError) as error:  # a store that is away: looked at again, and readiness names it
            log.debug("%s", error)
        except Exception:
            if not failed:  # the same fault every two seconds would hide all others
                log.exception("the metrics and gates could not be looked at; it is tried again")
            failed = True
        await asyncio.sleep(2.0)
