"""What people install."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the locked build backend without any network."""
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run([sys.executable, "-c", BUILD, folder], cwd=root, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder / built.stdout.strip().splitlines()[-1]


def test_the_wheel_holds_every_module_and_script_of_every_package(wheel: Path, tracked: list[Path], root: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for parent in ("crds/sayso_api", "approvals/sayso_approvals", "agent_runtime/sayso_runtime", "cli/sayso_cli"):
        sources = [p for p in tracked if p.is_relative_to(root / parent) and p.suffix in (".py", ".lua", ".typed")]
        assert sources, parent
        assert {str(path.relative_to((root / parent).parent)) for path in sources} <= names


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    packages = {"sayso_api", "sayso_approvals", "sayso_runtime", "sayso_cli"}
    assert {top for top in tops if not top.endswith(".dist-info")} == packages


def test_the_wheel_brings_the_licence_and_both_commands(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    licence = next(name for name in archive.namelist() if name.endswith("/LICENSE"))
    assert "Apache License" in archive.read(licence).decode()
    entry = next(name for name in archive.namelist() if name.endswith("/entry_points.txt"))
    assert archive.read(entry).decode().split() == [
        "[console_scripts]",
        *("kubectl-sayso", "=", "sayso_cli.main:run"),
        *("sayso", "=", "sayso_cli.main:run"),
    ]


def test_the_program_runs_from_the_unpacked_wheel(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = "import sayso_cli.main as m, sys; print(m.__file__); sys.argv = ['sayso', '--version']; m.run()"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    where, version = ran.stdout.splitlines()
    assert Path(where).is_relative_to(tmp_path)
    assert version.startswith("sayso ")
