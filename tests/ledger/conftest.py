"""An agent's desk on an empty Redis, and one replica at it."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from ledger.desk import Desk
from sayso_approvals.ledger import Ledger


@pytest.fixture
def desk(redis: Redis) -> Desk:
    """One agent on an empty Redis."""
    return Desk(redis)


@pytest.fixture
def ledger(desk: Desk) -> Ledger:
    """One replica with a long lease."""
    return desk.replica()
