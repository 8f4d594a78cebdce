"""`sayso dev` before it runs: everything that can be found wrong is found before anything is started."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence

from sayso_approvals.connect import BadUrl, connect
from sayso_cli.approvals.deciding import who
from sayso_cli.compiling import agent_names, compiled, missing_secrets
from sayso_cli.dev import ports
from sayso_cli.dev.plan import Options, Plan, occupied, url
from sayso_cli.dev.state import StateDir, find, write_json
from sayso_cli.errors import USAGE, CliError

__all__ = ["Options", "run"]

#: Seconds for which a port may still be held by processes of an earlier run that are just ending.
PATIENCE = 5.0


def run(options: Options) -> int:
    """The command. Exit code 0: ended in order; 2: something in the call is wrong, and nothing was started."""
    agents = agent_names(options.files)
    if options.redis_url is not None:
        _check_url(options.redis_url)
    state = find(options.state_dir)
    if options.port_base is not None:
        fixed = ports.from_base(options.port_base, agents, options.replicas)
    # Checked before the state directory is made: nothing is left behind by a call that cannot work.
    plan = _plan(options, fixed if options.port_base is not None else dict.fromkeys(_names(agents, options), 1))
    missing = missing_secrets(plan.configs, os.environ)
    if missing:
        raise CliError(missing, USAGE)
    state.create()
    lock = state.lock()
    try:
        state.remove_endpoints()
        chosen = fixed if options.port_base is not None else _remembered(state, agents, options.replicas)
        _wait_for(chosen, own_redis=options.redis_url is None)
        plan = _plan(options, chosen)
        _write(state, plan)
        from sayso_cli.dev.supervisor import Supervisor

        return asyncio.run(Supervisor(plan, state, options.redis_url).run())
    finally:
        lock.release()


def _names(agents: Sequence[str], options: Options) -> list[str]:
    return [ports.process_name(agent, replica) for agent in agents for replica in range(options.replicas)]


def _plan(options: Options, chosen: Mapping[str, int]) -> Plan:
    """The plan with these ports. Agents know every replica of each other."""

    def urls(namespace: str, name: str) -> tuple[str, ...]:
        names = [ports.process_name(f"{namespace}/{name}", replica) for replica in range(options.replicas)]
        return tuple(url(chosen.get(process, 1)) for process in names)

    configs = compiled(options.files, urls)
    return Plan(configs, chosen, options.replicas, who())


def _remembered(state: StateDir, agents: Sequence[str], replicas: int) -> dict[str, int]:
    before = state.ports()
    deadline = time.monotonic() + PATIENCE
    wanted = [port for name, port in before.items() if name.partition("#")[0] in (*agents, ports.REDIS)]
    while time.monotonic() < deadline and not all(ports.is_free(port) for port in wanted):
        time.sleep(0.1)
    chosen = ports.chosen(before, agents, replicas, free=ports.is_free)
    write_json(state.ports_file, before | chosen)
    return chosen


def _wait_for(chosen: Mapping[str, int], *, own_redis: bool) -> None:
    """Returns when every port that will be listened on is free. CliError that names those that stay taken."""
    skipped = {ports.INBOX} if own_redis else {ports.INBOX, ports.REDIS}
    needed = [port for name, port in chosen.items() if name not in skipped]
    deadline = time.monotonic() + PATIENCE
    while busy := [port for port in needed if not ports.is_free(port)]:
        if time.monotonic() >= deadline:
            raise CliError(occupied(chosen, busy), USAGE)
        time.sleep(0.1)


def _write(state: StateDir, plan: Plan) -> None:
    for path, config in plan.configs.items():
        namespace, _, name = path.partition("/")
        state.ensure_key(namespace, name)
        write_json(state.config_file(namespace, name), config.model_dump(mode="json"))


def _check_url(redis_url: str) -> None:
    try:
        connect(redis_url)
    except BadUrl as error:
        raise CliError(f"--redis-url: {error}", USAGE) from error
