"""Starting `sayso dev` in a test, and leaving nothing of it behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dev_mode.local_mode import Dev

Start = Callable[..., Dev]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A function that starts `sayso dev` with these arguments; ended, children included, after the test."""
    started: list[Dev] = []

    def begin(*arguments: str, env: dict[str, str] | None = None) -> Dev:
        dev = Dev(tmp_path, *arguments, env=env)
        started.append(dev)
        return dev

    yield begin
    for dev in started:
        dev.stop()
