"""The benchmark's arithmetic: what it would say about numbers that are known."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from benchmarks import report, scenario
from benchmarks.measure import percentile


def result(*, sayso: float = 10.0, others: float = 10.0) -> dict[str, Any]:
    """A result in which every latency of Sayso is `sayso` ms, and all others' is `others`."""

    def turns(milliseconds: float) -> dict[str, Any]:
        summary = {"p50": milliseconds, "p95": milliseconds, "n": 1}
        return {turn: dict.fromkeys(("pause", "resume", "cycle"), summary) for turn in ("1", "60")}

    def clients(rate: float) -> dict[str, Any]:
        row = {"cycles_per_second": rate, "cycles": 1, "client_cores": 0.1}
        return {"1": row, "16": row}

    start = {
        "ready_wall": 1.0,
        "ready_cpu": 1.9,
        "first_cycle_wall": 0.1,
        "first_cycle_cpu": 2.0,
        "resident_mib": 109.0,
    }
    return {
        "latency": {"bare ADK": turns(others), "to_a2a": turns(others), "Sayso": turns(sayso)},
        "throughput": {"Sayso": clients(40.0), "Sayso, 2 replicas": clients(72.0)},
        "start": {"Sayso": start},
    }


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.95, 95), (0.951, 96), (1.0, 100), (0.0, 1)], ids=str)
def test_a_percentile_is_the_smallest_sample_that_so_many_do_not_exceed(share: float, expected: int) -> None:
    assert percentile(list(range(100, 0, -1)), share) == expected


def test_bounds_that_are_just_kept_are_reached() -> None:
    assert [goal.name for goal in report.goals(result()) if not goal.reached] == []


def test_every_latency_goal_is_missed_by_a_system_that_is_slower() -> None:
    missed = [goal.name for goal in report.goals(result(sayso=13.1)) if not goal.reached]
    assert len(missed) == 6
    assert all("Sayso /" in name for name in missed)


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        (("throughput", "Sayso", "16", "cycles_per_second"), 39.9, "cycles a second, 16 clients, one replica"),
        (
            ("throughput", "Sayso, 2 replicas", "16", "cycles_per_second"),
            71.0,
            "two replicas / one, 16 clients (two free cores)",
        ),
        (("start", "Sayso", "ready_cpu"), 2.1, "CPU seconds until ready"),
        (("start", "Sayso", "resident_mib"), 111.0, "MiB resident after the first cycle"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_goal_is_missed_by_its_own_number(path: tuple[str, ...], value: float, name: str) -> None:
    given = copy.deepcopy(result())
    row = given
    for step in path[:-1]:
        row = row[step]
    row[path[-1]] = value
    assert [goal.name for goal in report.goals(given) if not goal.reached] == [name]


def test_a_table_has_aligned_columns_and_no_trailing_space() -> None:
    assert report.table([["", "ms"], ["a longer name", "1"]]) == [
        "                 ms",
        "  -------------  --",
        "  a longer name  1",
    ]


def test_the_scripted_replies_repeat_turn_by_turn() -> None:
    length = len(scenario.REPLIES)
    assert [scenario.reply(index) for index in range(2 * length)] == list(scenario.REPLIES * 2)
    assert scenario.runtime_config(turns=2).model.turns == scenario.REPLIES * 2
