"""`sayso chat`: finds the agent, carries the conversation, and turns a pause into questions."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sayso_cli.chat.asking import Known, Paint, how_to_decide, picture, question, ran
from sayso_cli.chat.client import Client, Refused
from sayso_cli.chat.wire import ENDED, Ask, Reply, Shown, decision_parts, text_part
from sayso_cli.dev.state import StateDir, find
from sayso_cli.errors import PENDING, REFUSED, USAGE, CliError
from sayso_cli.output import painter, safe


def resolve(state: StateDir, name: str) -> tuple[str, tuple[str, ...]]:
    """The agent that `name` means, and its replicas. CliError that lists the agents there are."""
    endpoints = state.endpoints()
    if endpoints is None:
        raise CliError(
            f"no sayso dev is ready with the state directory {state.root}; start it, or name another with --state-dir"
        )
    found = [path for path in endpoints.agents if name in (path, path.partition("/")[2])]
    if len(found) == 1:
        return found[0], endpoints.agents[found[0]]
    what = "more than one agent is called" if found else "there is no agent"
    raise CliError(f"{what} {safe(name)!r}; there are: {', '.join(endpoints.agents)}", USAGE)


@dataclass(slots=True)
class Chat:
    """One conversation. `interactive`: somebody can be asked."""

    client: Client
    state: StateDir
    agent: str
    session: str
    interactive: bool
    paint: Paint
    later: set[str] = field(default_factory=set)  # ids put off in this conversation: not asked twice

    def say(self, text: str) -> None:
        """Prints a line at once."""
        print(text, flush=True)

    def turn(self, text: str) -> int:
        """One message and everything that follows from it. Returns the exit code it would end with."""
        self.later.clear()
        try:
            reply = self.client.send([text_part(text)], context_id=self.session)
            return self._follow(reply)
        except Refused as refused:
            self.say(self.paint(f"Refused: {refused}", "red"))
            return REFUSED

    def _follow(self, reply: Reply) -> int:
        while reply.state not in ENDED:
            if not reply.asks:
                self.say((reply.note and safe(reply.note, lines=True)) or f"The run is {safe(reply.state)}.")
                return PENDING
            parts = self._decide(reply.asks)
            if parts is None:
                return PENDING
            reply = self.client.send(parts, context_id=self.session, task_id=reply.task_id)
        text = reply.text or reply.note
        if text:
            self.say(safe(text, lines=True))
        if reply.state == "completed":
            return 0
        if not text:
            self.say(self.paint(f"The run is {safe(reply.state)}.", "red"))
        return REFUSED

    def _decide(self, asks: Sequence[Ask]) -> list[dict[str, object]] | None:
        """The decision to send; None where nothing is decided now."""
        known = lookup(self.state, self.session, asks)
        fresh = [ask for ask in asks if ask.id not in self.later]
        for ask in fresh:
            self.say("\n" + picture(ask, known.get(ask.id), self.paint))
        if not self.interactive:
            self.say("\n" + how_to_decide(asks, known, self.session, self.agent))
            return None
        decided = question(fresh, input, self.say)
        self.later.update(ask.id for ask in asks if ask.id not in decided.verdicts)
        if not decided.verdicts:
            self.say(f"Left pending; go on with: sayso chat {safe(self.agent)} --session {safe(self.session)}")
            return None
        return decision_parts(decided.verdicts, decided.reasons, decided.answers)


def lookup(state: StateDir, session: str, asks: Sequence[Ask]) -> dict[str, Known]:
    """What the ledger knows about each ask. A store that does not answer leaves it empty: the chat goes on without."""
    from sayso_approvals.forwarding import inner_of
    from sayso_cli.approvals.rows import expiry
    from sayso_cli.approvals.store import opened
    from sayso_cli.output import timestamp

    async def read() -> dict[str, Known]:
        async with opened(state.root, None) as store:
            rows = await store.rows(done=False)
        found: dict[str, Known] = {}
        for row in rows:
            if row.view.pause.session_id != session or not row.view.intact:
                continue
            known = Known(row.short, row.view.call.server, row.view.call.gated_by, timestamp(expiry(row.view)))
            found |= {one.id: known for one in inner_of(row.view)}
            found[row.view.call.call_id] = found[row.view.outcome_id] = known
        return found

    try:
        rows = asyncio.run(read())
    except CliError:
        return {}
    return {ask.id: rows[ask.id] for ask in asks if ask.id in rows}


def run(agent: str, text: str | None, *, session: str | None, state_dir: Path | None) -> int:
    """The command. Exit code 0: answered; 1: failed or refused; 3: something waits for a person."""
    state = find(state_dir)
    path, urls = resolve(state, agent)
    paint = painter()

    def show(shown: Shown) -> None:
        print(ran(shown.name, shown.value, result=shown.result, is_error=shown.is_error, paint=paint), flush=True)

    client = Client(path, urls, show, lambda note: print(safe(note), file=sys.stderr, flush=True))
    interactive = sys.stdin.isatty()
    chat = Chat(client, state, path, session or f"chat-{uuid.uuid4().hex[:12]}", interactive, paint)
    try:
        if text is None and not interactive:
            text = sys.stdin.read().strip()
            if not text:
                raise CliError("there is nothing to say: give TEXT, or write it to standard input", USAGE)
        if text is not None:
            return chat.turn(text)
        return _conversation(chat)
    finally:
        client.close()


def _conversation(chat: Chat) -> int:
    import readline  # noqa: F401  gives input() its line editing and history

    chat.say(chat.paint(f"{chat.agent}, session {safe(chat.session)}. Ctrl-D ends the chat.", "dim"))
    code = 0
    while True:
        try:
            text = input("you > ").strip()
        except EOFError:
            chat.say("")
            return code
        if text:
            code = chat.turn(text)
