"""The ledger against a model of it: whatever is done in whatever order, both say the same.

The model is a page of plain Python; what it leaves out (leases that end, time) has tests of its own.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from ledger.desk import Desk, choice, completion
from sayso_approvals.connect import connect
from sayso_approvals.ledger import Ledger, TurnLost
from sayso_approvals.records import Begin, Commit, Kind, Turn, Verdict
from sayso_approvals.refusals import Refusal


@dataclass
class Call:
    """One call as the model sees it."""

    pause_id: str
    call_id: str
    kind: Kind
    verdict: str = ""
    by: str = ""
    journal: str = ""
    start: int = 0
    token: int = 0
    done: bool = False
    runs: int = 0


class LedgerMachine(RuleBasedStateMachine):
    """One session, two replicas, at most one turn at a time."""

    url = ""
    calls = Bundle("calls")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.redis = connect(self.url)
        self.do(self.redis.flushall())
        self.desk = Desk(self.redis)
        self.replicas = [self.desk.replica(), self.desk.replica()]
        self.turn: Turn | None = None
        self.old: list[Turn] = []
        self.model: list[Call] = []
        self.ids = itertools.count()
        self.events = 0

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Runs one step of the real ledger."""
        return self.loop.run_until_complete(work)

    def tries(self, work: Coroutine[Any, Any, Any]) -> str:
        """`ok`, or how the step was refused."""
        try:
            self.do(work)
        except Refusal as refusal:
            return refusal.code
        except TurnLost:
            return "lost"
        return "ok"

    def teardown(self) -> None:
        self.do(self.redis.aclose())
        self.loop.close()

    def view(self, call: Call, ledger: Ledger) -> Any:
        """The call as the ledger shows it."""
        return next(v for v in self.do(ledger.view(call.pause_id)) if v.call.call_id == call.call_id)

    @precondition(lambda self: self.turn is None)
    @rule(replica=st.integers(0, 1))
    def take(self, replica: int) -> None:
        self.turn = self.do(self.replicas[replica].take("s1", requester="ann"))
        assert self.turn is not None
        assert not self.turn.dirty
        assert self.turn.length == self.events
        assert all(self.turn.token > old.token for old in self.old)

    @precondition(lambda self: self.turn is not None)
    @rule(replica=st.integers(0, 1))
    def another_take(self, replica: int) -> None:
        """The waiter stays in the queue for two seconds; it is taken out here so that the next taker need not wait."""
        ledger = self.replicas[replica]
        assert self.tries(ledger.take("s1", requester="ann", wait_seconds=0)) == "busy"
        self.do(self.redis.delete(ledger._session("s1")[3]))

    @precondition(lambda self: self.turn is not None)
    @rule(replica=st.integers(0, 1))
    def release(self, replica: int) -> None:
        assert self.turn is not None
        self.do(self.replicas[replica].release(self.turn))
        self.old.append(self.turn)
        self.turn = None

    @precondition(lambda self: self.turn is not None and len(self.model) < 8)
    @rule(
        target=calls,
        replica=st.integers(0, 1),
        kind=st.sampled_from([Kind.TOOL_CALL, Kind.TOOL_CALL, Kind.CONFIRMATION, Kind.INPUT_REQUIRED]),
    )
    def pause(self, replica: int, kind: Kind) -> Call:
        assert self.turn is not None
        number = next(self.ids)
        call = Call(f"p{number}", f"c{number}", kind)
        pause = self.desk.pause(self.turn, self.desk.call(call.call_id, kind), pause_id=call.pause_id)
        self.do(self.replicas[replica].commit(self.turn, Commit(events=("{}",), pause=pause)))
        self.events += 1
        self.model.append(call)
        return call

    @rule(call=calls, replica=st.integers(0, 1), verdict=st.sampled_from(list(Verdict)), by=st.sampled_from("xyz"))
    def decide(self, call: Call, replica: int, verdict: Verdict, by: str) -> None:
        ledger = self.replicas[replica]
        result = self.tries(
            ledger.decide([choice(self.view(call, ledger), verdict)], by=by, via="chat", decision_id="d")
        )
        yes_no = {Verdict.APPROVED, Verdict.REJECTED}
        sayable = {Verdict.ANSWERED} if call.kind is Kind.INPUT_REQUIRED else yes_no
        if verdict not in sayable | {Verdict.CANCELLED, Verdict.SUPERSEDED}:
            assert result == "malformed_decision"
        elif call.verdict:
            late = {"cancelled": "cancelled", "superseded": "superseded"}
            assert result == late.get(call.verdict, "already_decided")
        else:
            assert result == "ok"
            call.verdict, call.by = str(verdict), by

    @precondition(lambda self: self.turn is not None)
    @rule(replica=st.integers(0, 1))
    def claim(self, replica: int) -> None:
        assert self.turn is not None
        claimed = {view.call.call_id for view in self.do(self.replicas[replica].claim(self.turn))}
        expected = [c for c in self.model if c.verdict and not c.done and c.journal != "unknown"]
        assert claimed == {c.call_id for c in expected}
        for call in expected:
            call.token = self.turn.token

    @precondition(lambda self: self.turn is not None)
    @rule(call=calls, replica=st.integers(0, 1))
    def begin(self, call: Call, replica: int) -> None:
        assert self.turn is not None
        ledger = self.replicas[replica]
        view = self.view(call, ledger)
        if call.verdict != "approved":
            assert self.tries(ledger.begin(self.turn, view)) == "integrity"
            return
        answer, _, _ = self.do(ledger.begin(self.turn, view))
        if call.token != self.turn.token or call.done:
            assert answer is Begin.LOST
        elif call.journal == "":
            assert answer is Begin.RUN
            call.journal, call.start, call.runs = "started", self.turn.token, call.runs + 1
        elif call.journal == "finished":
            assert answer is Begin.FINISHED
        else:
            assert answer is Begin.UNKNOWN
            call.journal = "unknown"

    @rule(call=calls, replica=st.integers(0, 1), data=st.data())
    def finish(self, call: Call, replica: int, data: st.DataObject) -> None:
        turns = self.old + ([self.turn] if self.turn else [])
        if not turns:
            return
        turn = data.draw(st.sampled_from(turns))
        ledger = self.replicas[replica]
        counts = call.journal in ("started", "unknown") and call.start == turn.token
        assert self.do(ledger.finish(turn, self.view(call, ledger), "1", is_error=False)) is counts
        if counts:
            call.journal = "finished"

    @precondition(lambda self: self.turn is not None)
    @rule(call=calls, replica=st.integers(0, 1))
    def doubt(self, call: Call, replica: int) -> None:
        assert self.turn is not None
        ledger = self.replicas[replica]
        result = self.tries(ledger.doubt(self.turn, self.view(call, ledger), "?"))
        assert result == ("ok" if call.token == self.turn.token else "lost")
        self.turn.deadline = 1e12  # a refused step says that the turn is over; here it is not
        if call.token == self.turn.token == call.start and call.journal == "started":
            call.journal = "unknown"

    @precondition(lambda self: self.turn is not None)
    @rule(call=calls, replica=st.integers(0, 1))
    def reopen(self, call: Call, replica: int) -> None:
        assert self.turn is not None
        ledger = self.replicas[replica]
        result = self.tries(ledger.reopen(self.turn, self.view(call, ledger), "again"))
        if call.token != self.turn.token or call.done:
            assert result == "lost"
        elif call.journal:
            assert result == "already_decided"
        else:
            assert result == "ok"
            call.verdict, call.by, call.token = "", "", 0

    @precondition(lambda self: self.turn is not None)
    @rule(call=calls, replica=st.integers(0, 1))
    def unsent(self, call: Call, replica: int) -> None:
        assert self.turn is not None
        ledger = self.replicas[replica]
        result = self.tries(ledger.unsent(self.turn, self.view(call, ledger), "not sent"))
        if call.journal == "started" and call.start == call.token == self.turn.token and not call.done:
            assert result == "ok"
            call.verdict, call.by, call.token, call.journal, call.start = "", "", 0, "", 0
            call.runs -= 1
        else:
            assert result == "lost"

    @precondition(lambda self: self.turn is not None)
    @rule(call=calls, replica=st.integers(0, 1))
    def complete(self, call: Call, replica: int) -> None:
        assert self.turn is not None
        ledger = self.replicas[replica]
        done = completion(self.turn, self.view(call, ledger))
        result = self.tries(ledger.commit(self.turn, Commit(events=("{}",), completions=(done,))))
        free = call.kind in (Kind.CONFIRMATION, Kind.INPUT_REQUIRED) and call.journal == ""
        if call.token != self.turn.token or call.done:
            assert result == "lost"
        elif call.verdict == "approved" and call.journal != "finished" and not free:
            assert result == "integrity"
        else:
            assert result == "ok"
            call.done = True
            self.events += 1

    @rule(data=st.data())
    def a_turn_that_is_over_changes_nothing(self, data: st.DataObject) -> None:
        if not self.old:
            return
        turn = data.draw(st.sampled_from(self.old))
        for work in (
            self.replicas[0].commit(turn, Commit(events=("{}",))),
            self.replicas[1].claim(turn),
            self.replicas[0].renew(turn),
            self.replicas[1].release(turn),
        ):
            assert self.tries(work) == "lost"

    @invariant()
    def both_say_the_same(self) -> None:
        ledger = self.desk.replica()
        seen = {view.call.call_id: view for view in self.do(ledger.calls(include_done=True))}
        assert set(seen) == {call.call_id for call in self.model}
        for call in self.model:
            view = seen[call.call_id]
            record = view.state.verdict
            assert view.intact
            assert (str(record.verdict), record.by) == (call.verdict, call.by) if record else not call.verdict
            assert (view.state.journal, view.state.done) == (call.journal, call.done)
            assert call.runs <= 1
        assert self.do(ledger.open_count()) == sum(not call.verdict for call in self.model)
        assert len(self.do(ledger.events("s1"))) == self.events


@pytest.mark.timeout(300)
def test_the_ledger_does_what_its_model_does(redis_url: str) -> None:
    machine = type("Machine", (LedgerMachine,), {"url": redis_url})
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
