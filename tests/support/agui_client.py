"""An AG-UI front end on the protocol's own types: it keeps the conversation as events build it, and checks their order
as strict front ends do."""

from __future__ import annotations

import itertools
import json
from typing import Any

from ag_ui.core import Event, Interrupt, ResumeEntry, RunAgentInput
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter

from support.desks import events as read_events
from support.serving import Door

_EVENT: TypeAdapter[Any] = TypeAdapter(Event)


class Client:
    """One thread. `messages` is what it sends along; `interrupts` what waits."""

    def __init__(self, door: Door, thread_id: str = "t1") -> None:
        self.door = door
        self.thread_id = thread_id
        self.messages: list[dict[str, Any]] = []
        self.interrupts: list[Interrupt] = []
        self._runs = itertools.count(1)

    async def say(self, text: str, **more: Any) -> list[Any]:
        """A run that begins with a message."""
        self.messages.append({"id": f"u{len(self.messages)}", "role": "user", "content": text})
        return await self.run(**more)

    async def answer(self, *entries: dict[str, Any], **more: Any) -> list[Any]:
        """A run that answers interrupts."""
        resume = [ResumeEntry.model_validate(entry).model_dump(by_alias=True) for entry in entries]
        return await self.run(resume=resume, **more)

    async def run(self, *, run_id: str | None = None, **more: Any) -> list[Any]:
        """Sends the input, checks the stream and keeps what it says."""
        given = RunAgentInput(
            thread_id=self.thread_id,
            run_id=run_id or f"r{next(self._runs)}",
            state={},
            messages=self.messages,
            tools=[],
            context=[],
            forwarded_props={},
            **more,
        )
        answer = await self.door.http.post(
            self.door.url + "agui",
            content=given.model_dump_json(by_alias=True),
            headers={"content-type": "application/json", "accept": "text/event-stream"},
        )
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
        sent = read_events(answer.text)
        found = [_EVENT.validate_python(event) for event in sent]
        encoder = EventEncoder()
        assert [json.loads(encoder.encode(event)[6:]) for event in found] == sent
        check_order(found)
        self._keep(found)
        return found

    def _keep(self, found: list[Any]) -> None:
        for event in found:
            if event.type == "MESSAGES_SNAPSHOT":
                self.messages = [message.model_dump(by_alias=True, mode="json") for message in event.messages]
        outcome = getattr(found[-1], "outcome", None)
        if found[-1].type == "RUN_FINISHED":
            self.interrupts = list(outcome.interrupts) if outcome is not None and outcome.type == "interrupt" else []


def check_order(found: list[Any]) -> None:
    """A run starts, opens and closes texts and calls one after the other, and ends once with nothing open."""
    types = [event.type.value for event in found]
    assert types[0] in ("RUN_STARTED", "RUN_ERROR")
    assert types[-1] in ("RUN_FINISHED", "RUN_ERROR")
    assert sum(name in ("RUN_FINISHED", "RUN_ERROR") for name in types) == 1
    assert types.count("RUN_STARTED") == (1 if types != ["RUN_ERROR"] else 0)
    texts: set[str] = set()
    calls: set[str] = set()
    for event in found:
        match event.type.value:
            case "TEXT_MESSAGE_START":
                assert not texts
                assert not calls
                texts.add(event.message_id)
            case "TEXT_MESSAGE_CONTENT":
                assert event.message_id in texts
            case "TEXT_MESSAGE_END":
                texts.remove(event.message_id)
            case "TOOL_CALL_START":
                assert not texts
                calls.add(event.tool_call_id)
            case "TOOL_CALL_ARGS":
                assert event.tool_call_id in calls
            case "TOOL_CALL_END":
                calls.remove(event.tool_call_id)
            case "TOOL_CALL_RESULT":
                assert event.tool_call_id not in calls
            case "RUN_FINISHED" | "RUN_ERROR":
                assert not texts
                assert not calls


def kinds(found: list[Any]) -> list[str]:
    """The events' types."""
    return [event.type.value for event in found]


def yes(name: str, **payload: Any) -> dict[str, Any]:
    """An approval."""
    return {"interruptId": name, "status": "resolved", "payload": {"approved": True, **payload}}


def no(name: str, **payload: Any) -> dict[str, Any]:
    """A denial."""
    return {"interruptId": name, "status": "resolved", "payload": {"approved": False, **payload}}
