"""`make demo`: what it shows is true, whichever way it is decided, and it leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from dev_mode.terminal import Terminal

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "refund-desk"
DEMO = [sys.executable, str(EXAMPLE / "demo.py")]


def demo(folder: Path, answer: str | None) -> subprocess.CompletedProcess[str]:
    """Runs the demonstration without a terminal; temporary files go to `folder`."""
    env = {name: value for name, value in os.environ.items() if name != "SAYSO_DEMO_ANSWER"}
    if answer is not None:
        env["SAYSO_DEMO_ANSWER"] = answer
    return subprocess.run(
        DEMO, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env | {"TMPDIR": str(folder)}
    )


def left_behind(folder: Path) -> list[str]:
    """Files, and processes that still work with them."""
    found = [str(path) for path in folder.iterdir()]
    for process in psutil.process_iter():
        try:
            found += [part for part in process.cmdline() if str(folder) in part]
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


@pytest.mark.parametrize(
    ("answer", "refunded"), [(None, '"refunded": "25.50"'), ("approve", '"refunded": "25.50"'), ("reject", "0.00")]
)
def test_the_order_book_ends_as_decided(tmp_path: Path, answer: str | None, refunded: str) -> None:
    done = demo(tmp_path, answer)
    assert done.returncode == 0, done.stdout + done.stderr
    before, after = done.stdout.split("3. The question")[0], done.stdout.split("6. The order book after")[1]
    assert '"refunded": "0.00"' in before
    assert refunded in after
    assert ("history" in after) == (answer != "reject")
    assert f"the answer is {answer or 'approve'!r}" in done.stdout
    assert done.stdout.index("→ get_order") < done.stdout.index("refund wants your say-so")
    assert left_behind(tmp_path) == []


def test_an_answer_that_is_none_ends_it_with_a_message(tmp_path: Path) -> None:
    done = demo(tmp_path, "yes please")
    assert done.returncode == 1
    assert "approve or reject" in done.stderr
    assert left_behind(tmp_path) == []


def test_on_a_terminal_it_asks_and_the_reason_reaches_the_model(tmp_path: Path) -> None:
    with Terminal(DEMO, {"TMPDIR": str(tmp_path)}) as terminal:
        terminal.sees("[a]pprove or [r]eject > ")
        terminal.types("r")
        terminal.sees("Why? > ")
        terminal.types("the photo is missing")
        terminal.sees("5. The agent's answer")
        terminal.sees("the photo is missing")
        terminal.sees("nothing was refunded")
        assert terminal.ends() == 0
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_breaking_it_off_cleans_up(tmp_path: Path, number: signal.Signals) -> None:
    with Terminal(DEMO, {"TMPDIR": str(tmp_path)}) as terminal:
        terminal.sees("[a]pprove or [r]eject > ")
        if number is signal.SIGINT:
            assert terminal.interrupts() == 130
        else:
            while terminal.process.poll() is None:
                terminal.process.terminate()
                time.sleep(0.2)
            assert terminal.ends() == 143
    assert left_behind(tmp_path) == []
