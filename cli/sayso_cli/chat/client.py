"""A2A over HTTP to whichever replica answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from sayso_cli.chat.wire import Reply, Shown, absorb, message
from sayso_cli.errors import CliError
from sayso_cli.output import safe

#: A run may take as long as its tools and its model do; only connecting is bounded.
_TIMEOUT = httpx.Timeout(None, connect=3.0)
ROUNDS = 20  # times to go through all replicas while none answers
PAUSE = 0.5  # seconds between two rounds


class Refused(Exception):  # noqa: N818  as in the domain: an answer, not a failure
    """The agent refused the message and changed nothing. The text is for people."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


@dataclass(slots=True)
class Client:
    """Speaks to one agent. `urls` are its replicas; the one that answered last is asked first."""

    agent: str
    urls: Sequence[str]
    show: Callable[[Shown], None]
    note: Callable[[str], None]
    http: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=_TIMEOUT, trust_env=False))
    at: int = 0

    def send(self, parts: Sequence[Mapping[str, Any]], *, context_id: str, task_id: str | None = None) -> Reply:
        """Sends a message and follows its stream to the end.

        A replica that is down, or goes down on the way, is replaced by the next; the message keeps its id, so it
        counts once however often it is sent. Raises Refused, and CliError where no replica answers.
        """
        params = {"message": message(parts, context_id=context_id, task_id=task_id)}
        return self._anywhere(lambda url: self._stream(url, "message/stream", params))

    def task(self, task_id: str) -> Reply:
        """How a task stands. Raises as `send` does."""
        return self._anywhere(lambda url: self._stream(url, "tasks/get", {"id": task_id}))

    def close(self) -> None:
        """Lets go of the connections."""
        self.http.close()

    def _anywhere(self, step: Callable[[str], Reply]) -> Reply:
        problem: Exception | None = None
        for attempt in range(ROUNDS):
            for _ in self.urls:
                url = self.urls[self.at % len(self.urls)]
                try:
                    return step(url)
                except httpx.TransportError as error:
                    if problem is None:
                        self.note(f"{url} does not answer ({type(error).__name__}); trying the next replica")
                    problem = error
                    self.at += 1
            if attempt < ROUNDS - 1:
                time.sleep(PAUSE)
        raise CliError(
            f"no replica of {self.agent} answers at {', '.join(self.urls)} ({problem}); "
            "look whether sayso dev still runs"
        )

    def _stream(self, url: str, method: str, params: Mapping[str, Any]) -> Reply:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        reply = Reply()
        headers = {"Accept": "text/event-stream, application/json"}
        with self.http.stream("POST", url + "/", json=body, headers=headers) as response:
            kind = response.headers.get("content-type", "")
            if not kind.startswith("text/event-stream"):
                response.read()
                self._take(reply, _json(response))
                return reply
            for data in events(response.iter_text()):
                self._take(reply, _parsed(data))
        if not reply.state or reply.state in ("submitted", "working"):
            # The stream ended, the run did not: the replica went away. Sending again gets the rest.
            raise httpx.ReadError("the stream ended before the run did")
        return reply

    def _take(self, reply: Reply, document: Mapping[str, Any]) -> None:
        error = document.get("error")
        if isinstance(error, Mapping):
            raise refusal(error)
        result = document.get("result")
        if not isinstance(result, Mapping):
            raise CliError(f"{self.agent} answered with something that is not A2A: {safe(json.dumps(document))[:200]}")
        for shown in absorb(reply, result):
            self.show(shown)


def refusal(error: Mapping[str, Any]) -> Refused:
    """A JSON-RPC error in words, with who, when and why where the agent says so."""
    data = error.get("data")
    details: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    text = str(details.get("detail") or error.get("message") or "refused without a reason")
    known = [
        f"{word} {details[name]}"
        for word, name in (("", "verdict"), ("by", "decidedBy"), ("at", "decidedAt"), ("reason:", "reason"))
        if details.get(name) and str(details[name]) not in text
    ]
    if known:
        text += f" ({', '.join(part.strip() for part in known)})"
    return Refused(safe(text), str(details.get("code") or ""))


def events(chunks: Iterator[str]) -> Iterator[str]:
    """The data of each server-sent event in a stream of text, however it is cut into pieces.

    An event that is not closed by an empty line is left out: it is not known to be whole.
    """
    rest, data = "", []
    for chunk in chunks:
        *lines, rest = (rest + chunk).split("\n")
        for line in lines:
            line = line.removesuffix("\r")
            if line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
            elif not line and data:
                yield "\n".join(data)
                data = []


def _json(response: httpx.Response) -> Mapping[str, Any]:
    found = _parsed(response.text)
    if response.status_code >= 400 and "error" not in found:
        raise CliError(f"the agent answered HTTP {response.status_code}: {safe(response.text)[:200]}")
    return found


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise CliError(f"the agent answered with something that is not JSON: {safe(text)[:200]}") from error
    if not isinstance(found, Mapping):
        raise CliError(f"the agent answered with something that is not JSON-RPC: {safe(text)[:200]}")
    return found
