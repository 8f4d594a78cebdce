"""`make` on a machine that lacks something, and what its targets say of themselves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def bare(root: Path, tmp_path: Path) -> Path:
    """A checkout before its first `make`."""
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(root / name, tmp_path)
    return tmp_path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs make as a person would: without what an outer make passes on."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True)


def test_make_alone_lists_every_target(root: Path) -> None:
    text = (root / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.+)$", text, re.MULTILINE)[1].split())
    assert {"venv", "demo", "test", "verify", "bench", "lock", "docs", "crds", "clean", "help"} <= targets
    listed = re.findall(r"^  make (\w+) +\S", make(root).stdout, re.MULTILINE)
    assert sorted(listed) == sorted(targets)


@pytest.mark.parametrize("target", ["venv", "test", "demo"])
def test_a_missing_python_is_named_with_what_to_do(bare: Path, target: str) -> None:
    result = make(bare, target, "PYTHON=python-that-is-not-here")
    assert result.returncode != 0
    assert "needs Python 3.11 or newer" in result.stderr
    assert "'python-that-is-not-here'" in result.stderr
    assert not (bare / ".venv").exists()


def test_an_older_python_is_refused_before_anything_is_made(bare: Path) -> None:
    old = bare / "python3.9"
    old.write_text('#!/bin/sh\ncase "$2" in *version_info*) exit 1;; esac\nexit 0\n')
    old.chmod(0o755)
    result = make(bare, "venv", f"PYTHON={old}")
    assert result.returncode != 0
    assert "needs Python 3.11 or newer" in result.stderr
    assert not (bare / ".venv").exists()


def test_a_python_without_its_venv_module_is_named_with_what_to_do(bare: Path) -> None:
    cut = bare / "python3.11"
    cut.write_text('#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\nexit 0\n')
    cut.chmod(0o755)
    result = make(bare, "venv", f"PYTHON={cut}")
    assert result.returncode != 0
    assert "cannot make virtual environments" in result.stderr


def test_the_ci_entry_stops_at_the_first_failure(root: Path, tmp_path: Path) -> None:
    """With a `make` whose `verify` fails, tests must not run and the entry must fail."""
    shutil.copytree(root / ".ci", tmp_path / ".ci")
    fake = tmp_path / "bin" / "make"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "make $1" >> calls\n[ "$1" != verify ]\n')
    fake.chmod(0o755)
    environment = os.environ | {"PATH": f"{fake.parent}:{os.environ['PATH']}"}
    assert subprocess.run([tmp_path / ".ci" / "run"], env=environment, cwd=tmp_path).returncode != 0
    assert (tmp_path / "calls").read_text().splitlines() == ["make verify"]
