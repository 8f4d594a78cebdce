"""The program answers at once, says its version, and completes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cli.running import sayso


def test_help_loads_nothing_that_only_commands_need() -> None:
    heavy = ["rich", "redis", "httpx", "pydantic", "yaml", "google.adk", "mcp", "sayso_runtime"]
    program = (
        "import sys\nfrom sayso_cli.main import run\n"
        "try: run(['--help'])\nexcept SystemExit: pass\n"
        f"print('loaded:', [name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded: []"
    assert "approvals" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_completion_script_for_each_shell(shell: str) -> None:
    found = sayso("completion", shell)
    assert found.code == 0
    assert f"_SAYSO_COMPLETE=complete_{shell}" in found.out


def test_a_shell_that_is_not_known_is_refused() -> None:
    found = sayso("completion", "csh")
    assert found.code == 2
    assert "bash, zsh or fish" in found.err


def test_the_version_is_the_distributions() -> None:
    from importlib.metadata import version

    assert sayso("--version").out == f"sayso {version('sayso')}\n"


def test_an_unknown_command_ends_with_2() -> None:
    assert sayso("aprovals", "list").code == 2
