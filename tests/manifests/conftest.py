"""Manifests as files, for the tests of this folder."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from sayso_api.faults import Fault, ManifestError
from sayso_api.manifests import load

FaultsOf = Callable[..., list[Fault]]


@pytest.fixture
def faults_of(tmp_path: Path) -> FaultsOf:
    """The faults of one file with this text. Fails when there are none."""

    def read(text: str, name: str = "agents.yaml") -> list[Fault]:
        file = tmp_path / name
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        with pytest.raises(ManifestError) as caught:
            load([file])
        return list(caught.value.faults)

    return read
