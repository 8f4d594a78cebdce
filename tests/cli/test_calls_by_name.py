"""The names by which people mean a call: stable, short, and never taken for another's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sayso_approvals.records import AgentId, CallState, CallView, Kind, Pause, PausedCall
from sayso_cli.approvals.rows import SHORT, Row, find, short_name
from sayso_cli.errors import CliError

AGENT = AgentId("shop", "refund-desk")


def row(pause_id: str, call_id: str) -> Row:
    """A pending call."""
    call = PausedCall(call_id, Kind.TOOL_CALL, "shop/orders", "http://x/mcp", "refund", "refund", "{}", "sha256:0")
    pause = Pause(pause_id, AGENT, "s1", "t1", "adk", "ann", 1.0, 2.0, (call,))
    return Row(AGENT, CallView(pause, call, CallState()))


def test_a_short_name_depends_on_the_pause_and_the_call_alone() -> None:
    assert short_name("p1", "c1") == short_name("p1", "c1") == row("p1", "c1").short
    assert (
        len({short_name(p, c) for p, c in [("p1", "c1"), ("p1", "c2"), ("p2", "c1"), ("p1c", "1"), ("p", "1c1")]}) == 5
    )
    assert len(short_name("p1", "c1")) == SHORT


def test_a_short_name_a_beginning_of_it_and_a_call_id_all_mean_the_call() -> None:
    rows = [row("p1", "c1"), row("p2", "c2")]
    for name in (rows[1].short, rows[1].short[:4], rows[1].short.upper(), "c2"):
        assert find(rows, name) is rows[1]


def test_a_call_id_of_two_calls_is_refused_with_both_names() -> None:
    rows = [row("p1", "c1"), row("p2", "c1")]
    with pytest.raises(CliError) as caught:
        find(rows, "c1")
    assert caught.value.code == 2
    assert all(one.short in caught.value.message for one in rows)


@pytest.mark.parametrize("name", ["", " ", "no-such-call", "\x1b[2J"])
def test_a_name_that_means_nothing_is_refused(name: str) -> None:
    with pytest.raises(CliError, match="there is no call") as caught:
        find([row("p1", "c1")], name)
    assert caught.value.code == 2
    assert "\x1b" not in caught.value.message


def test_a_pending_call_of_an_agent_without_manifest_is_orphaned() -> None:
    assert replace(row("p1", "c1"), orphaned=True).document()["state"] == "orphaned"
