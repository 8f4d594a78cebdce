"""The last moment before a request leaves: who may still stop it, and what is then known."""

from __future__ import annotations

import asyncio

import pytest

from sayso_runtime.tools.fence import Fence, FenceLost
from sayso_runtime.tools.outcome import NotSent, OutcomeUnknown
from sayso_runtime.tools.sending import Sending


def sending(fence: Fence | None = None) -> Sending:
    """A call on its way."""
    return Sending("refund", "shop/orders", "MCP server shop/orders", fence, asyncio.get_running_loop().time() + 30)


async def test_a_caller_that_gave_up_while_the_connection_was_made_keeps_the_request_from_leaving() -> None:
    call = sending()
    call.closed = True

    with pytest.raises(NotSent, match="stopped waiting"):
        call.go()
    assert not call.sent


async def test_whatever_the_fence_raises_nothing_is_sent() -> None:
    def over() -> None:
        raise KeyError("lease")

    call = sending(over)

    with pytest.raises(FenceLost, match="lease is over"):
        call.go()
    assert isinstance(call.lost("connection lost"), NotSent)


async def test_from_the_first_byte_on_a_failure_leaves_the_outcome_unknown() -> None:
    call = sending()
    assert isinstance(call.lost("connection lost"), NotSent)

    call.go()

    assert isinstance(call.lost("connection lost"), OutcomeUnknown)
