"""What `sayso dev` will run, worked out before anything is started: pure but for reading the manifests."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sayso_api.runtimeconfig import RuntimeConfig
from sayso_api.secretenv import PREFIX, required_env
from sayso_cli.dev.children import Launch
from sayso_cli.dev.ports import HOST, process_name
from sayso_cli.dev.state import Endpoints, StateDir

#: Seconds that an agent's process gets beside its longest tool call, to finish what it does when it is told to end.
GRACE = 20.0


@dataclass(frozen=True, slots=True)
class Options:
    """The command line of `sayso dev`."""

    files: tuple[Path, ...]
    replicas: int = 1
    state_dir: Path | None = None
    redis_url: str | None = None
    port_base: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """One `sayso dev`: configurations by `<namespace>/<name>`, and a port for every process."""

    configs: Mapping[str, RuntimeConfig]
    ports: Mapping[str, int]
    replicas: int
    user: str

    def urls(self) -> dict[str, tuple[str, ...]]:
        """Where each agent answers, one URL a replica."""
        return {
            path: tuple(url(self.ports[process_name(path, replica)]) for replica in range(self.replicas))
            for path in self.configs
        }

    def endpoints(self, redis: str) -> Endpoints:
        """The content of endpoints.json."""
        return Endpoints(self.urls(), redis)

    def grace(self) -> float:
        """Seconds to wait for agents to end: a call that was sent may still come back."""
        timeouts = [server.timeout_seconds for config in self.configs.values() for server in config.servers]
        return max(timeouts, default=0.0) + GRACE

    def launches(self, state: StateDir, redis: str, environment: Mapping[str, str]) -> dict[str, Launch]:
        """Every agent process by its name, such as `shop/refund-desk#0`."""
        found = {}
        for path, config in self.configs.items():
            namespace, _, name = path.partition("/")
            for replica in range(self.replicas):
                process = process_name(path, replica)
                argv = (
                    *(sys.executable, "-m", "sayso_runtime"),
                    *("--config", str(state.config_file(namespace, name))),
                    *("--redis-url", redis),
                    *("--key-file", str(state.key_file(namespace, name))),
                    *("--host", HOST, "--port", str(self.ports[process])),
                    *("--replica", str(replica), "--user", self.user),
                )
                log = state.log_file(f"{namespace}.{name}-{replica}")
                found[process] = Launch(process, argv, log, environment_of(config, environment))
        return found


def url(port: int) -> str:
    """Where a process of ours answers."""
    return f"http://{HOST}:{port}"


def environment_of(config: RuntimeConfig, environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` without the secrets that are for other agents."""
    own = {name for name, _ in required_env(config)}
    return {name: value for name, value in environment.items() if not name.startswith(PREFIX) or name in own}


def occupied(ports: Mapping[str, int], busy: Sequence[int]) -> str:
    """For people: which of the ports that were asked for are taken, and what for they were wanted."""
    wanted = [f"{port} ({name})" for name, port in ports.items() if port in busy]
    return f"these ports are taken: {', '.join(wanted)}; end what listens there, or choose another --port-base"
