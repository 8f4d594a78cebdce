"""The metrics that an agent's process shows at `/metrics` (Prometheus text), each with one typed method.

One `Metrics` has a registry of its own, so that several agents can live in one process and tests see only theirs.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from sayso_approvals.refusals import Code

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
# Seconds. A pause costs milliseconds without a model and minutes with a slow one.
_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """Counts what happens. Tool and server names are those of the configured servers, so labels stay few."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._model_calls = Counter(
            "sayso_model_calls_total",
            "Replies that a model gave. A failed attempt is none.",
            registry=self.registry,
        )
        self._tool_executions = Counter(
            "sayso_tool_executions_total",
            "Tool calls that were sent to their server, by how they ended.",
            ["server", "tool", "outcome"],
            registry=self.registry,
        )
        self._open = Gauge("sayso_pauses_open", "Pauses that wait for a person.", registry=self.registry)
        self._decisions = Counter("sayso_decisions_total", "Verdicts recorded.", ["verdict"], registry=self.registry)
        self._refusals = Counter("sayso_refusals_total", "Requests refused, by code.", ["code"], registry=self.registry)
        self._unmatched = Gauge(
            "sayso_gate_entries_unmatched",
            "Entries of requireApproval that match no tool.",
            registry=self.registry,
        )
        pause = Histogram(
            "sayso_pause_seconds",
            "From a message's arrival to its pause being stored.",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        resume = Histogram(
            "sayso_resume_seconds",
            "From a decision's arrival to the end of the run that it continued, or its next pause.",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._durations = {"pause": pause, "resume": resume}

    def model_called(self) -> None:
        """A model replied."""
        self._model_calls.inc()

    def tool_executed(self, server: str, tool: str, outcome: str) -> None:
        """A call was sent to `server` (its key) and ended in `success`, `error` or `unknown`."""
        self._tool_executions.labels(server, tool, outcome).inc()

    def pauses_open(self, count: int) -> None:
        """How many pauses wait now."""
        self._open.set(count)

    def decided(self, verdict: str) -> None:
        """A verdict about one call was recorded: `approved`, `rejected`, …, or how an unknown outcome was settled."""
        self._decisions.labels(verdict).inc()

    def refused(self, code: Code) -> None:
        """A door refused a request. Doors count this, nobody else."""
        self._refusals.labels(code).inc()

    def gate_entries_unmatched(self, count: int) -> None:
        """How many gate entries match no tool."""
        self._unmatched.set(count)

    def observe(self, what: str, seconds: float) -> None:
        """How long a message took to its stored `pause`, or a decision's run to its end or next pause (`resume`).
        Raises `KeyError` for anything else."""
        self._durations[what].observe(seconds)

    def render(self) -> bytes:
        """Prometheus' text format."""
        return generate_latest(self.registry)
