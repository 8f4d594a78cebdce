"""The state directory: private, found the same way by everybody, one `sayso dev` at a time, never half a file."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from sayso_cli.dev.state import Endpoints, StateDir, find
from sayso_cli.errors import CliError

ENDPOINTS = Endpoints({"shop/refund-desk": ("http://127.0.0.1:1", "http://127.0.0.1:2")}, "redis://127.0.0.1:3/0")


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    """A new one."""
    state = StateDir(tmp_path / "deep" / "state")
    state.create()
    return state


def test_it_is_the_one_given_else_the_variables_else_a_hidden_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAYSO_STATE_DIR", "from-variable")
    assert find(Path("given")).root == tmp_path / "given"
    assert find(None).root == tmp_path / "from-variable"
    monkeypatch.delenv("SAYSO_STATE_DIR")
    assert find(None).root == tmp_path / ".sayso"


def test_everything_in_it_is_for_its_owner_only(state: StateDir) -> None:
    state.write_endpoints(ENDPOINTS)
    key = state.ensure_key("shop", "refund-desk")
    for path in (state.root, *state.root.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_a_key_is_made_once_and_kept(state: StateDir) -> None:
    first = state.ensure_key("shop", "a").read_text()
    assert state.ensure_key("shop", "a").read_text() == first
    assert state.ensure_key("shop", "b").read_text() != first


def test_a_key_that_cannot_be_used_is_a_message_that_names_it(state: StateDir) -> None:
    path = state.ensure_key("shop", "a")
    path.write_text("not a key")
    with pytest.raises(CliError, match=r"shop\.a\.key"):
        state.ensure_key("shop", "a")


def test_endpoints_say_what_was_written(state: StateDir) -> None:
    assert state.endpoints() is None
    state.write_endpoints(ENDPOINTS)
    assert state.endpoints() == ENDPOINTS
    state.remove_endpoints()
    state.remove_endpoints()
    assert state.endpoints() is None


def test_a_reader_never_sees_half_of_endpoints(state: StateDir) -> None:
    many = Endpoints({f"shop/agent-{n}": (f"http://127.0.0.1:{n}",) * 20 for n in range(100)}, "redis://x")
    state.write_endpoints(many)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            state.write_endpoints(many)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert all(state.endpoints() == many for _ in range(200))
    finally:
        stop.set()
        writer.join()


def test_a_second_holder_is_refused_by_the_first_ones_process(state: StateDir) -> None:
    first = state.lock()
    with pytest.raises(CliError, match=str(os.getpid())) as caught:
        state.lock()
    assert caught.value.code == 2
    first.release()
    state.lock().release()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"agents": 1, "redis": "x"}'])
def test_endpoints_that_somebody_spoiled_are_a_message(state: StateDir, content: str) -> None:
    state.endpoints_file.write_text(content)
    with pytest.raises(CliError, match="start sayso dev again"):
        state.endpoints()


def test_a_directory_that_cannot_be_made_is_a_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CliError, match="--state-dir") as caught:
        StateDir(tmp_path / "file" / "state").create()
    assert caught.value.code == 2


def test_ports_that_cannot_be_believed_are_forgotten(state: StateDir) -> None:
    state.ports_file.write_text('{"redis": 70000, "shop/a#0": 7010, "x": "y"}')
    assert state.ports() == {"shop/a#0": 7010}
    state.ports_file.write_text("{")
    assert state.ports() == {}
