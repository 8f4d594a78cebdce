"""The process' HTTP application: every door on one port, as one small ASGI callable.

POST /                              A2A, both generations
POST /api/v1/chat, GET /api/v1/…    REST
POST /agui                          AG-UI
GET  /.well-known/agent-card.json   the agent card (also under 0.2's name, agent.json)
GET  /healthz                       the process answers
GET  /readyz                        the agent can take a message; 503 with the reasons while it cannot
GET  /metrics                       Prometheus text
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError, version

from sayso_api.runtimeconfig import RuntimeConfig
from sayso_runtime.interfaces import metrics as metrics_module
from sayso_runtime.interfaces.a2a.card import agent_card, valid_host
from sayso_runtime.interfaces.a2a.door import A2ADoor
from sayso_runtime.interfaces.agui.door import AguiDoor
from sayso_runtime.interfaces.asgi import (
    PROBLEM,
    TEXT,
    App,
    ClientGone,
    Receive,
    Request,
    Scope,
    Send,
    problem,
)
from sayso_runtime.interfaces.identity import Identify, loopback_user
from sayso_runtime.interfaces.metrics import Metrics
from sayso_runtime.interfaces.rest.door import RestDoor
from sayso_runtime.service_api import Service

__all__ = ["build_app", "dispatcher", "loopback_user", "routes"]

_log = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[None]]
#: path -> method -> handler; a path that ends in `/*` is for any one last segment
Routes = dict[str, dict[str, Handler]]


def build_app(service: Service, config: RuntimeConfig, metrics: Metrics, *, identify: Identify) -> App:
    """The application. `identify` tells who sends a request, or raises `NotIdentified`."""
    return dispatcher(routes(service, config, metrics, identify))


def routes(service: Service, config: RuntimeConfig, metrics: Metrics, identify: Identify) -> Routes:
    """What is answered where."""
    release = _release()

    async def card(request: Request) -> None:
        hosts = request.headers(b"host")
        if len(hosts) != 1 or not valid_host(hosts[0]):
            await request.respond(400, problem(400, "bad host", "the Host header names no host"), PROBLEM)
            return
        document = agent_card(config, scheme=request.scope["scheme"], host=hosts[0], version=release)
        await request.respond_json(200, document)

    async def health(request: Request) -> None:
        await request.respond(200, b"ok\n", TEXT)

    async def readiness(request: Request) -> None:
        try:
            reasons = list(await service.ready())
        except Exception as error:  # noqa: BLE001  whatever it is, the agent is not ready
            _log.exception("readiness could not be told")
            reasons = [f"readiness could not be told: {type(error).__name__}"]
        if reasons:
            await request.respond_json(503, {"ready": False, "reasons": reasons})
        else:
            await request.respond(200, b"ready\n", TEXT)

    async def measures(request: Request) -> None:
        await request.respond(200, metrics.render(), metrics_module.CONTENT_TYPE)

    agent = config.agent
    rest = RestDoor(service, agent.namespace, agent.name, metrics, identify, release)

    def get(handler: Handler) -> dict[str, Handler]:
        return {"GET": handler, "HEAD": handler}

    return {
        "/": {"POST": A2ADoor(service, metrics, identify)},
        "/api/v1/chat": {"POST": rest.chat},
        "/api/v1/runs/*": get(rest.run),
        "/api/v1/pauses": get(rest.pauses),
        "/api/v1/openapi.json": get(rest.openapi),
        "/agui": {"POST": AguiDoor(service, agent.name, metrics, identify)},
        "/.well-known/agent-card.json": get(card),
        "/.well-known/agent.json": get(card),
        "/healthz": get(health),
        "/readyz": get(readiness),
        "/metrics": get(measures),
    }


def dispatcher(table: Routes) -> App:
    """An ASGI application that answers from `table`, and everything else with a problem document."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"only HTTP is spoken here, not {scope['type']}")
        request = Request(scope, receive, send)
        try:
            path = scope["path"]
            methods = table.get(path) or table.get(path.rpartition("/")[0] + "/*")
            if methods is None:
                await request.respond(404, problem(404, "not found", "nothing is served here"), PROBLEM)
                return
            handler = methods.get(request.method)
            if handler is None:
                allowed = ", ".join(methods)
                document = problem(405, "method not allowed", f"use {allowed}")
                await request.respond(405, document, PROBLEM, [(b"allow", allowed.encode())])
                return
            await handler(request)
        except ClientGone:
            _log.debug("the client left before its answer was complete")

    return app


def _release() -> str:
    try:
        return version("sayso")
    except PackageNotFoundError:  # run from sources that were never installed
        return "0"
