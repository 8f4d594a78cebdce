"""One small client for each door, all with the same few words, for tests that ask the same of every door."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from support.agui_client import Client, kinds
from support.desks import Desk, events

Verdict = tuple[str, Any]  # ("approve" | "reject" | "cancel" | "value" | "result", reason or value)


@dataclass
class Heard:
    """What a client heard. `state`: done, paused or refused; `open`: ids and names of what waits; `code`: why not."""

    state: str
    open: dict[str, str] = field(default_factory=dict)
    text: str = ""
    code: str = ""


class Speaker(Protocol):
    """A client of one door, in one session."""

    async def say(self, text: str, key: str = "") -> Heard: ...

    async def decide(self, verdicts: Mapping[str, Verdict], key: str = "") -> Heard: ...


class A2A:
    """Plain JSON of either generation."""

    def __init__(self, desk: Desk, version: str) -> None:
        self.desk = desk
        self.new = version == "1.0"

    async def say(self, text: str, key: str = "") -> Heard:
        return await self._send([{"text": text}], key)

    async def decide(self, verdicts: Mapping[str, Verdict], key: str = "") -> Heard:
        if any(word in ("cancel", "result") for word, _ in verdicts.values()):
            raise NotImplementedError("A2A has no word for it")
        if any(word == "value" for word, _ in verdicts.values()):
            parts = [
                {
                    "data": {"id": name, "name": "colour", "response": value},
                    "metadata": {"adk_type": "function_response"},
                }
                for name, (_, value) in verdicts.items()
            ]
            return await self._send(parts, key)
        reasons = {name: why for name, (word, why) in verdicts.items() if word == "reject" and why}
        said = {
            "decision_type": "batch",
            "decisions": {name: word for name, (word, _) in verdicts.items()},
            "rejection_reasons": reasons,
        }
        return await self._send([{"data": said}], key)

    async def uniform(self, word: str) -> Heard:
        """A verdict without ids."""
        return await self._send([{"data": {"decision_type": word}}], "")

    async def _send(self, parts: list[dict[str, Any]], key: str) -> Heard:
        if not self.new:
            parts = [{"kind": "data" if "data" in part else "text", **part} for part in parts]
        message = {"messageId": key or uuid.uuid4().hex, "contextId": "s1", "parts": parts}
        message |= {"role": "ROLE_USER"} if self.new else {"role": "user", "kind": "message"}
        answer = await self.desk.door.http.post(
            self.desk.door.url,
            json={
                "jsonrpc": "2.0",
                "id": 1,
                "method": "SendMessage" if self.new else "message/send",
                "params": {"message": message},
            },
            headers={"A2A-Version": "1.0"} if self.new else {},
        )
        body = answer.json()
        if "error" in body:
            data = body["error"].get("data")
            return Heard("refused", code=data["code"], text=body["error"]["message"])
        task = body["result"]["task"] if self.new else body["result"]
        asked = task["status"].get("message", {}).get("parts", [])
        calls = [part["data"]["args"]["originalFunctionCall"] for part in asked if "data" in part]
        paused = task["status"]["state"].lower().replace("_", "-").endswith("input-required")
        text = "".join(part["text"] for part in (task.get("artifacts") or [{"parts": []}])[-1]["parts"])
        return Heard("paused" if paused else "done", {call["id"]: call["name"] for call in calls}, text)


class Rest:
    """JSON, or the same as a stream."""

    _words = {"approve": "approved", "reject": "denied", "cancel": "cancelled"}  # noqa: RUF012

    def __init__(self, desk: Desk, *, stream: bool = False) -> None:
        self.desk = desk
        self.stream = stream

    async def say(self, text: str, key: str = "") -> Heard:
        return await self._send({"prompt": text}, key)

    async def decide(self, verdicts: Mapping[str, Verdict], key: str = "") -> Heard:
        decisions = []
        for name, (word, more) in verdicts.items():
            if word in ("value", "result"):
                decisions.append({"id": name, "payload": more} | ({"status": "approved"} if word == "result" else {}))
            else:
                decisions.append({"id": name, "status": self._words[word], "message": more})
        return await self._send({"resume": {"decisions": decisions}}, key)

    async def _send(self, said: dict[str, Any], key: str) -> Heard:
        headers = {"Idempotency_Key": key} if key else {}
        answer = await self.desk.post("api/v1/chat", {"session_id": "s1", "stream": self.stream, **said}, **headers)
        streamed = answer.headers["content-type"] == "text/event-stream"
        body = events(answer.text)[-1] if streamed else answer.json()
        if "code" in body and body["code"] != "model_failed":
            return Heard("refused", code=body["code"], text=body["detail"])
        waiting = {one["id"]: one["tool_name"] for one in body.get("interruptions", ())}
        return Heard("paused" if waiting else "done", waiting, body.get("result", ""))


class Agui:
    """A front end."""

    def __init__(self, desk: Desk) -> None:
        self.client = Client(desk.door, "s1")

    async def say(self, text: str, key: str = "") -> Heard:
        return self._heard(await self.client.say(text, run_id=key or uuid.uuid4().hex))

    async def decide(self, verdicts: Mapping[str, Verdict], key: str = "") -> Heard:
        entries = []
        for name, (word, more) in verdicts.items():
            match word:
                case "cancel":
                    entries.append({"interruptId": name, "status": "cancelled"})
                case "value":
                    entries.append({"interruptId": name, "status": "resolved", "payload": more})
                case "result":
                    payload: dict[str, Any] = {"approved": True, "result": more}
                    entries.append({"interruptId": name, "status": "resolved", "payload": payload})
                case _:
                    payload = {"approved": word == "approve", "reason": more}
                    entries.append({"interruptId": name, "status": "resolved", "payload": payload})
        return self._heard(await self.client.answer(*entries, run_id=key or uuid.uuid4().hex))

    def _heard(self, found: list[Any]) -> Heard:
        if kinds(found)[-1] == "RUN_ERROR":
            return Heard("refused", code=found[-1].code, text=found[-1].message)
        names = {
            call["id"]: call["function"]["name"] for m in self.client.messages for call in m.get("toolCalls") or ()
        }
        waiting = {one.id: names.get(one.id, "") for one in self.client.interrupts}
        text = "".join(event.delta for event in found if event.type == "TEXT_MESSAGE_CONTENT")
        return Heard("paused" if waiting else "done", waiting, text)
