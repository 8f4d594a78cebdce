"""What these tests look at: the checkout itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def tracked(root: Path) -> list[Path]:
    """Every file of the checkout that is not ignored."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=root, capture_output=True
    )
    assert listing.returncode == 0, f"these tests need git and a git checkout: {listing.stderr.decode()}"
    paths = [root / name for name in listing.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]
