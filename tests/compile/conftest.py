"""Manifests as text, for the tests of this folder."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from sayso_api.manifests import Manifests, load

Read = Callable[[str], Manifests]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """What is in a file with this text; `apiVersion` and `---` are put before each `kind:` that begins a line."""

    def from_text(text: str) -> Manifests:
        file = tmp_path / "manifests.yaml"
        lines = []
        for line in textwrap.dedent(text).strip().splitlines():
            if line.startswith("kind:"):
                core = line.split()[1] in ("ConfigMap", "Namespace")
                lines += ["---", f"apiVersion: {'v1' if core else 'sayso.dev/v1alpha1'}"]
            lines.append(line)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return load([file])

    return from_text
