"""The state directory: where local mode keeps what must survive, and what the other commands find it by.

DIR/endpoints.json       {"agents": {"<namespace>/<name>": [a url per replica]}, "redis": url}, while ready
DIR/agents.json          the agents of the newest `sayso dev`, and its store; stays after the end
DIR/ports.json           ports chosen for earlier calls, so that the same call gets the same ones
DIR/keys/NS.NAME.key     an agent's key, mode 0600; stays, or its pauses could no longer be proven
DIR/configs/, DIR/logs/  one file per agent, one per process
DIR/redis/               the store's files
DIR/dev.lock             held by the `sayso dev` that runs; its text is the process id
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sayso_cli.errors import USAGE, CliError

VARIABLE = "SAYSO_STATE_DIR"
DEFAULT = ".sayso"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where a running `sayso dev` answers: replicas' URLs by `<namespace>/<name>`, and the store's URL."""

    agents: Mapping[str, tuple[str, ...]]
    redis: str

    def document(self) -> dict[str, Any]:
        """The content of endpoints.json."""
        return {"agents": {path: list(urls) for path, urls in self.agents.items()}, "redis": self.redis}


@dataclass(frozen=True, slots=True)
class Known:
    """What the newest `sayso dev` of this directory ran: its agents, and the store they use."""

    agents: tuple[str, ...]
    redis: str


def find(given: Path | None) -> StateDir:
    """The directory that every command means: the one given, else SAYSO_STATE_DIR, else `.sayso`, made absolute."""
    chosen = given or Path(os.environ.get(VARIABLE) or DEFAULT)
    return StateDir(chosen.expanduser().absolute())


@dataclass(frozen=True, slots=True)
class StateDir:
    """Paths inside one state directory, and reading and writing what they hold."""

    root: Path

    @property
    def endpoints_file(self) -> Path:
        """Where clients look first."""
        return self.root / "endpoints.json"

    @property
    def agents_file(self) -> Path:
        """What tells an orphaned pause from one whose agent is only down."""
        return self.root / "agents.json"

    @property
    def ports_file(self) -> Path:
        """Ports by name (`redis`, `<namespace>/<name>#<replica>`)."""
        return self.root / "ports.json"

    @property
    def redis_dir(self) -> Path:
        """The store's files."""
        return self.root / "redis"

    def key_file(self, namespace: str, name: str) -> Path:
        """An agent's key. Namespaces have no dots, so two agents never share a file."""
        return self.root / "keys" / f"{namespace}.{name}.key"

    def config_file(self, namespace: str, name: str) -> Path:
        """An agent's RuntimeConfig as JSON."""
        return self.root / "configs" / f"{namespace}.{name}.json"

    def log_file(self, process: str) -> Path:
        """A process' log; `process` is a name without slashes."""
        return self.root / "logs" / f"{process}.log"

    def create(self) -> None:
        """Makes the directories, readable by their owner only. CliError where that cannot be."""
        try:
            for path in (self.root, self.root / "keys", self.root / "configs", self.root / "logs", self.redis_dir):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.root.chmod(0o700)
        except OSError as error:
            raise CliError(
                f"the state directory {self.root} cannot be used: {error.strerror}; name another with --state-dir",
                USAGE,
            ) from error

    def lock(self) -> Lock:
        """The right to run `sayso dev` here. CliError that names the process which has it."""
        return Lock.take(self.root / "dev.lock", self.root)

    def ensure_key(self, namespace: str, name: str) -> Path:
        """The agent's key file, made with a new key where there is none yet. CliError where it cannot be used."""
        from sayso_approvals.seal import BadKey, load_or_create_key

        path = self.key_file(namespace, name)
        try:
            load_or_create_key(path)
        except BadKey as error:
            raise CliError(str(error), USAGE) from error
        return path

    def endpoints(self) -> Endpoints | None:
        """What endpoints.json says; None while nothing is ready."""
        found = _read(self.endpoints_file)
        if found is None:
            return None
        try:
            agents = {str(path): tuple(str(url) for url in urls) for path, urls in found["agents"].items()}
            return Endpoints(agents, str(found["redis"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise CliError(f"{self.endpoints_file} is not what sayso dev writes; start sayso dev again") from error

    def write_endpoints(self, endpoints: Endpoints) -> None:
        """Whole or not at all: a reader never sees half of it."""
        write_json(self.endpoints_file, endpoints.document())

    def remove_endpoints(self) -> None:
        """Nothing answers from now on."""
        self.endpoints_file.unlink(missing_ok=True)

    def known(self) -> Known | None:
        """The agents and the store of the newest `sayso dev`; None where there was none."""
        found = _read(self.agents_file)
        if found is None:
            return None
        try:
            return Known(tuple(str(path) for path in found["agents"]), str(found["redis"]))
        except (KeyError, TypeError) as error:
            raise CliError(f"{self.agents_file} is not what sayso dev writes; start sayso dev again") from error

    def write_known(self, agents: Sequence[str], redis: str) -> None:
        """Remembers which agents the manifests have."""
        write_json(self.agents_file, {"agents": list(agents), "redis": redis})

    def ports(self) -> dict[str, int]:
        """Ports of earlier calls; empty where none are known, or the file cannot be believed."""
        try:
            found = _read(self.ports_file)
        except CliError:
            return {}
        if not isinstance(found, dict):
            return {}
        return {name: port for name, port in found.items() if isinstance(port, int) and 0 < port < 65_536}


@dataclass(slots=True)
class Lock:
    """An advisory lock on a file; the kernel lets go of it when the process ends, however it ends."""

    handle: int

    @classmethod
    def take(cls, path: Path, root: Path) -> Lock:
        """The lock, with our process id in it. CliError where another process has it."""
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(handle, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(handle)
            raise CliError(
                f"sayso dev already runs with the state directory {root} (process {holder}); "
                "stop it, or name another directory with --state-dir",
                USAGE,
            ) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
        return cls(handle)

    def release(self) -> None:
        """Lets the next one in."""
        os.close(self.handle)


def write_json(path: Path, value: Any) -> None:
    """Writes `value` into a new file beside `path` and moves it there. Mode 0600."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=2)
            file.write("\n")
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _read(path: Path) -> Any:
    """The JSON in `path`, None where there is no such file. CliError where it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CliError(f"{path} cannot be read ({error}); start sayso dev again") from error
