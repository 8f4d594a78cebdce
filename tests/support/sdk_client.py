"""The A2A SDK's own client, held to one generation of the protocol."""

from __future__ import annotations

import uuid
from typing import Any

from a2a.client import ClientConfig, create_client
from a2a.types import AgentCard, AgentInterface, Message, Part, Role, SendMessageRequest, StreamResponse
from google.protobuf.json_format import ParseDict


async def client_of(door: Any, version: str, *, streaming: bool) -> Any:
    """The SDK's client for the agent, as its card describes it, held to one generation."""
    config = ClientConfig(httpx_client=door.http, streaming=streaming)
    if version == "1.0":
        return await create_client(door.url, config)
    async with await create_client(door.url, ClientConfig(httpx_client=door.http)) as full:
        card = AgentCard()
        card.CopyFrom(full._card)
    del card.supported_interfaces[:]
    card.supported_interfaces.append(AgentInterface(url=door.url, protocol_binding="JSONRPC", protocol_version=version))
    return await create_client(card, config)


def request(*parts: Part, **ids: str) -> SendMessageRequest:
    return SendMessageRequest(message=Message(message_id=uuid.uuid4().hex, role=Role.ROLE_USER, parts=parts, **ids))


def data(value: Any, metadata: Any = None) -> Part:
    return ParseDict({"data": value, "metadata": metadata or {}}, Part())


async def all_of(client: Any, message: SendMessageRequest) -> list[StreamResponse]:
    return [event async for event in client.send_message(message)]
