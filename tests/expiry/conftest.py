"""Short leases need an engine that has loaded what it loads late."""

from __future__ import annotations

import pytest

from sayso_runtime.engine.adk.rehearsal import rehearse


@pytest.fixture(autouse=True)
async def warm() -> None:
    """What an agent's process does before it reports ready."""
    await rehearse()
