"""Where files may and may not be, and what may not be in them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PARENTS = ("operator", "crds", "approvals", "agent_runtime", "console", "cli")


@pytest.mark.parametrize("parent", PARENTS)
def test_a_folder_of_packages_is_no_package_itself(root: Path, parent: str) -> None:
    """`operator/__init__.py` would hide the standard library's module and break every interpreter started here."""
    assert not (root / parent / "__init__.py").exists()


def test_an_interpreter_started_in_the_checkout_finds_the_standard_operator(root: Path) -> None:
    code = "import operator, sys; sys.exit(operator.add(1, 2) - 3)"
    assert subprocess.run([sys.executable, "-c", code], cwd=root).returncode == 0


def test_tests_are_no_packages(tracked: list[Path], root: Path) -> None:
    assert [path for path in tracked if path.name == "__init__.py" and path.is_relative_to(root / "tests")] == []


def test_the_import_rules_hold(root: Path) -> None:
    found = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=root, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_no_mark_of_unfinished_work_is_left(tracked: list[Path], root: Path) -> None:
    marks = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
    generated = {root / "LICENSE", root / "requirements.lock"}
    left = [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in tracked
        if path not in generated
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if marks.search(line)
    ]
    assert left == []


def test_the_lock_names_versions_with_hashes_and_no_host(root: Path) -> None:
    text = (root / "requirements.lock").read_text()
    requirements = re.split(r"\n(?=\S)", text.strip())
    assert len(requirements) > 50
    for requirement in requirements:
        assert re.match(r"[A-Za-z0-9._-]+(\[[^]]*\])?==\S+", requirement), requirement
        assert "--hash=sha256:" in requirement, requirement
    assert "://" not in text
