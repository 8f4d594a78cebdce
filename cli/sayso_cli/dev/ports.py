"""Which port each process of local mode gets.

With a base P: P is the inbox, P+1 the store, agents from P+10 in the order of the manifests, replicas side by side.
Without: free ports, remembered by name, so that the same call finds the same endpoints again.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Mapping, Sequence

from sayso_cli.errors import USAGE, CliError

HOST = "127.0.0.1"
INBOX = "inbox"
REDIS = "redis"
FIRST_AGENT = 10


def process_name(agent: str, replica: int) -> str:
    """`<namespace>/<name>#<replica>`: what a port is remembered by. Replicas count from 0."""
    return f"{agent}#{replica}"


def from_base(base: int, agents: Sequence[str], replicas: int) -> dict[str, int]:
    """The ports that a base gives. CliError where they would not all be ports."""
    names = [process_name(agent, replica) for agent in agents for replica in range(replicas)]
    last = base + FIRST_AGENT + len(names) - 1
    if base < 1 or last > 65_535:
        raise CliError(f"--port-base {base} does not work: ports up to {last} are needed, and 65535 is the last", USAGE)
    return {INBOX: base, REDIS: base + 1} | {name: base + FIRST_AGENT + at for at, name in enumerate(names)}


def chosen(
    remembered: Mapping[str, int], agents: Sequence[str], replicas: int, *, free: Callable[[int], bool]
) -> dict[str, int]:
    """Ports without a base: the remembered one where it is `free` and nobody else's, else a new one."""
    names = [INBOX, REDIS, *(process_name(agent, replica) for agent in agents for replica in range(replicas))]
    ports: dict[str, int] = {}
    for name in names:
        port = remembered.get(name)
        if port is not None and port not in ports.values() and free(port):
            ports[name] = port
    # Remembered ports that are not used now stay reserved: a later call with more replicas gets its own back.
    taken = set(ports.values()) | set(remembered.values())
    for name in names:
        while name not in ports:
            port = unused()
            if port not in taken:
                ports[name] = port
                taken.add(port)
    return ports


def unused() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now, as servers do: the leftovers of closed connections do not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
        return True
