"""A real `sayso dev`: its process, what it prints, and what can be seen of its children."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import yaml

SUPPORT = Path(__file__).parent.parent / "support"


def look_until(what: str, condition: Callable[[], Any]) -> Any:
    """The first answer of `condition` that is true; the test's own time limit ends it otherwise."""
    while not (found := condition()):
        time.sleep(0.02)
    return found


class Dev:
    """One `sayso dev`. Output goes to `lines()`; `stop` and the fixture that made it end it."""

    def __init__(self, folder: Path, *arguments: str, env: dict[str, str] | None = None) -> None:
        self.state = folder / "state"
        self.output = folder / f"dev-{time.monotonic_ns()}.log"
        command = [sys.executable, "-m", "sayso_cli.main", "dev", *arguments, "--state-dir", str(self.state)]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=os.environ | (env or {})
            )

    def text(self) -> str:
        """Everything printed so far."""
        return self.output.read_text()

    def says(self, *words: str) -> str:
        """The first line with all of `words`, waited for. AssertionError where the process ends without it."""

        def found() -> str | None:
            ended = self.process.poll() is not None
            for line in self.text().splitlines():
                if all(word in line for word in words):
                    return line
            assert not ended, f"sayso dev ended with {self.process.returncode} and never said {words}:\n{self.text()}"
            return None

        line: str = look_until(str(words), found)
        return line

    def ready(self) -> dict[str, Any]:
        """endpoints.json, waited for."""
        file = self.state / "endpoints.json"

        def there() -> bool:
            assert self.process.poll() is None, self.text()
            return file.exists()

        look_until("endpoints.json", there)
        found: dict[str, Any] = json.loads(file.read_text())
        return found

    def children(self, word: str) -> list[psutil.Process]:
        """Running processes below this one whose command line has `word`."""
        found = []
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if any(word in part for part in process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.NoSuchProcess:
                continue
        return found

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ends it with a signal; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait()


def sayso(*arguments: str, state: Path | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, without a terminal."""
    extra = ["--state-dir", str(state)] if state is not None else []
    command = [sys.executable, "-m", "sayso_cli.main", *arguments, *extra]
    return subprocess.run(command, capture_output=True, text=True, input=stdin)


def manifest(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """One object in the namespace shop."""
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "sayso.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def agent(name: str = "refund-desk", gates: Sequence[str] = ("refund", "cancel_*"), **spec: Any) -> dict[str, Any]:
    """An Agent that may call the counting server."""
    tools = [{"mcpServer": {"name": "orders", "requireApproval": list(gates)}}]
    return manifest("Agent", name, {"instruction": "Help.", "modelConfig": "default", "tools": tools} | spec)


def call(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    """A call of a scripted model."""
    return {"name": name, "id": call_id, "args": arguments}


REFUND = {"calls": [call("refund", "c1", order_id="A-1", amount=20)]}


def written(folder: Path, *agents: dict[str, Any], turns: Sequence[dict[str, Any]] = (REFUND,), url: str = "") -> str:
    """A file with the agents, their scripted model and the counting server, in their own processes or at `url`."""
    command = [sys.executable, str(SUPPORT / "counting_server.py"), "--transport", "stdio"]
    counting = [{"name": "COUNTING_FILE", "value": str(folder / "calls.jsonl")}]
    server = {"url": url} if url else {"command": command, "env": counting}
    model = {"provider": "Scripted", "scripted": {"turns": list(turns)}}
    objects = [*agents, manifest("ModelConfig", "default", model), manifest("MCPServer", "orders", server)]
    file = folder / "agents.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


def executed(folder: Path) -> list[dict[str, Any]]:
    """What the counting server was really asked to do, in order."""
    file = folder / "calls.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def listed(state: Path) -> list[dict[str, Any]]:
    """`sayso approvals list -o json`."""
    done = sayso("approvals", "list", "-o", "json", state=state)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
