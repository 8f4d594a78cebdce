"""The one table, and the goals beside what was measured. Pure functions from a result to text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.run import BARE, DEEP, SAYSO, SAYSO_TWO, TO_A2A


@dataclass(frozen=True, slots=True)
class Goal:
    """A number that was measured, the bound that it has to keep and the one it aims for."""

    name: str
    value: float
    at_most: float | None = None
    at_least: float | None = None
    aim: float | None = None

    @property
    def reached(self) -> bool:
        """Whether the bound is kept."""
        if self.at_most is not None:
            return self.value <= self.at_most
        assert self.at_least is not None
        return self.value >= self.at_least

    @property
    def bound(self) -> str:
        """The bound as text."""
        text = f"<= {self.at_most:g}" if self.at_most is not None else f">= {self.at_least:g}"
        return text if self.aim is None else f"{text} (aim {self.aim:g})"


def goals(result: dict[str, Any]) -> list[Goal]:
    """Every goal, with its value in this result."""
    latency, load, start = result["latency"], result["throughput"], result["start"][SAYSO]
    found: list[Goal] = []
    for step in ("pause", "resume"):
        for turn in ("1", str(DEEP)):
            ratio = _p50(latency, SAYSO, turn, step) / _p50(latency, TO_A2A, turn, step)
            found.append(Goal(f"{step} at turn {turn}, Sayso / to_a2a", ratio, at_most=1.0, aim=0.7))
    for step in ("pause", "resume"):
        ratio = _p50(latency, SAYSO, str(DEEP), step) / _p50(latency, BARE, str(DEEP), step)
        found.append(Goal(f"{step} at turn {DEEP}, Sayso / bare ADK", ratio, at_most=1.3, aim=1.0))
    one = load[SAYSO]["16"]["cycles_per_second"]
    two = load[SAYSO_TWO]["16"]["cycles_per_second"]
    found.append(Goal("cycles a second, 16 clients, one replica", one, at_least=40))
    found.append(Goal("two replicas / one, 16 clients (two free cores)", two / one, at_least=1.8))
    found.append(Goal("CPU seconds until ready", start["ready_cpu"], at_most=2.0))
    found.append(Goal("MiB resident after the first cycle", start["resident_mib"], at_most=110.0))
    return found


def render(result: dict[str, Any]) -> str:
    """The result as text, one section per question."""
    lines = [_machine(result["machine"], result["taken_at"]), ""]
    lines += ["ms, p50 / p95 (samples)", *_latency(result["latency"], result["disk"]), ""]
    lines += ["cycles a second", *_throughput(result["throughput"]), ""]
    lines += ["start and memory", *_start(result["start"]), ""]
    lines += ["goals", *_goals(goals(result))]
    return "\n".join(lines)


def table(rows: list[list[str]]) -> list[str]:
    """Rows with aligned columns; the first row is the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    text = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [line.rstrip() for line in (text[0], "  " + "  ".join("-" * width for width in widths), *text[1:])]


def _p50(latency: dict[str, Any], system: str, turn: str, step: str) -> float:
    return float(latency[system][turn][step]["p50"])


def _machine(machine: dict[str, Any], taken_at: str) -> str:
    return (
        f"{taken_at}: {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}, "
        f"Python {machine['python']}, ADK {machine['google_adk']}, "
        f"Redis {machine['redis']} (appendfsync {machine['appendfsync']}), "
        f"load {machine['load_before']} before and {machine['load_after']} after"
    )


def _cell(summary: dict[str, float]) -> str:
    return f"{summary['p50']:.1f} / {summary['p95']:.1f} ({summary['n']})"


def _latency(latency: dict[str, Any], disk: dict[str, Any]) -> list[str]:
    head = ["", *(f"{step}, turn {turn}" for turn in (1, DEEP) for step in ("pause", "resume"))]
    rows = [head]
    for system, turns in latency.items():
        rows.append([system, *(_cell(turns[str(t)][step]) for t in (1, DEEP) for step in ("pause", "resume"))])
    alone = [["", "ms"]] + [
        [label, f"{disk[key]['p50']:.2f} / {disk[key]['p95']:.2f} ({disk[key]['n']})"]
        for key, label in (
            ("ping", "Redis PING"),
            ("write", "Redis SET, synced"),
            ("fsync", "fsync of 512 bytes"),
        )
    ]
    return [*table(rows), "", *table(alone)]


def _throughput(load: dict[str, Any]) -> list[str]:
    rows = [["", "1 client", "16 clients", "server CPU ms a cycle, 1 / 16", "load generator's cores at 16"]]
    for system, clients in load.items():
        rows.append(
            [
                system,
                f"{clients['1']['cycles_per_second']:.1f}",
                f"{clients['16']['cycles_per_second']:.1f}",
                f"{clients['1']['server_cpu_ms']:.1f} / {clients['16']['server_cpu_ms']:.1f}",
                f"{clients['16']['client_cores']:.2f}",
            ]
        )
    return table(rows)


def _start(start: dict[str, Any]) -> list[str]:
    rows = [["", "ready, s", "ready, CPU s", "first cycle, s", "first cycle ended, CPU s", "resident, MiB"]]
    for system, row in start.items():
        rows.append(
            [
                system,
                f"{row['ready_wall']:.2f}",
                f"{row['ready_cpu']:.2f}",
                f"{row['first_cycle_wall']:.2f}",
                f"{row['first_cycle_cpu']:.2f}",
                f"{row['resident_mib']:.0f}",
            ]
        )
    return table(rows)


def _goals(found: list[Goal]) -> list[str]:
    rows = [["", "measured", "goal", ""]]
    rows += [[g.name, f"{g.value:.2f}", g.bound, "reached" if g.reached else "MISSED"] for g in found]
    return table(rows)
