"""ADK's RemoteA2aAgent as a parent of an agent under test."""

from __future__ import annotations

import warnings
from typing import Any


class Parent:
    """An ADK runner whose root agent is the remote one."""

    def __init__(self, door: Any, *, legacy: bool) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
            from google.adk.runners import InMemoryRunner

            card = f"{door.url}.well-known/agent-card.json"
            agent = RemoteA2aAgent("refund_desk", card, httpx_client=door.http, use_legacy=legacy)
            self.runner = InMemoryRunner(agent, app_name="parent")

    async def __aenter__(self) -> Parent:
        self.session = await self.runner.session_service.create_session(app_name="parent", user_id="eve")
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.runner.close()

    async def say(self, *parts: Any) -> list[Any]:
        from google.genai import types

        content = types.Content(role="user", parts=list(parts))
        found = self.runner.run_async(user_id="eve", session_id=self.session.id, new_message=content)
        return [event async for event in found]


def texts(events: list[Any]) -> list[str]:
    """What a user reads: text that is not thinking."""
    parts = [part for event in events if event.content for part in event.content.parts or [] if not event.partial]
    return [part.text for part in parts if part.text and not part.thought]
