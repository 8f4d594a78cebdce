"""A real server on loopback, with a service behind the real doors."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from sayso_api.runtimeconfig import AgentIdentity, AgentNode, ModelSettings, RuntimeConfig
from sayso_runtime.interfaces.asgi import App
from sayso_runtime.interfaces.http import build_app, loopback_user
from sayso_runtime.interfaces.identity import Identify
from sayso_runtime.interfaces.metrics import Metrics
from sayso_runtime.interfaces.serve import serve


@dataclass
class Door:
    """A running server and what is behind it."""

    url: str
    port: int
    service: Any
    metrics: Metrics
    http: httpx.AsyncClient

    async def rpc(self, method: str, params: object, **more: object) -> httpx.Response:
        """One JSON-RPC request; `more` replaces members of the envelope."""
        return await self.http.post(
            self.url, json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params, **more}
        )


def config(**more: object) -> RuntimeConfig:
    """An agent's configuration."""
    return RuntimeConfig.model_validate(
        {
            "agent": AgentIdentity(namespace="shop", name="refund-desk"),
            "root": AgentNode(name="refund_desk", description="Answers refund questions.", instruction="Help."),
            "model": ModelSettings(provider="Scripted"),
            **more,
        }
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def running(
    service: Any, wrap: Callable[[App], App] = lambda app: app, *, identify: Identify | None = None
) -> AsyncIterator[Door]:
    """A server, stopped at the end. `wrap` may look at what goes between it and the application; who asks is ada,
    unless `identify` says otherwise."""
    metrics, port = Metrics(), free_port()
    app = build_app(service, config(), metrics, identify=identify or loopback_user("ada"))
    taking = asyncio.Event()

    async def ready() -> None:
        taking.set()

    serving = asyncio.create_task(serve(wrap(app), "127.0.0.1", port, on_ready=ready, drain_seconds=1))
    await taking.wait()
    async with httpx.AsyncClient(timeout=30) as http:
        yield Door(f"http://127.0.0.1:{port}/", port, service, metrics, http)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
