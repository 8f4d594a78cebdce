"""One session of its own for each test, since tests of a module share their processes."""

from __future__ import annotations

import uuid

import pytest


@pytest.fixture
def session() -> str:
    """The id of a session that nobody has used."""
    return f"s-{uuid.uuid4().hex}"
