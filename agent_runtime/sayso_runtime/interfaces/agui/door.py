"""The AG-UI door: it reads, hands on and renders; what a message or an answer means is the service's.

What is no run's input gets a status and a problem document. Everything else is a run, and a refusal is its RUN_ERROR.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sayso_runtime import logs
from sayso_runtime.interfaces.a2a.streams import KEEP_ALIVE_SECONDS, EventStream, until_gone
from sayso_runtime.interfaces.answering import answered, check_taken_up
from sayso_runtime.interfaces.asgi import ClientGone, Request
from sayso_runtime.interfaces.identity import Identify
from sayso_runtime.interfaces.metrics import Metrics
from sayso_runtime.interfaces.problems import explain, refuse, take_in
from sayso_runtime.messages import Began, Ended, Inbound
from sayso_runtime.service_api import Run, Service

if TYPE_CHECKING:
    from sayso_runtime.interfaces.agui.events import Telling


class AguiDoor:
    """Answers AG-UI clients of one agent."""

    def __init__(self, service: Service, agent: str, metrics: Metrics, identify: Identify) -> None:
        self._service = service
        self._agent = agent
        self._metrics = metrics
        self._identify = identify

    async def __call__(self, request: Request) -> None:
        """One run, answered completely. Raises `ClientGone`."""
        try:
            requester, parsed = await take_in(request, self._identify)
            events, reading = await asyncio.to_thread(_types)
            incoming = reading.read(parsed, requester)
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001  a door answers every request
            return await refuse(request, error, self._metrics)
        stream, telling = EventStream(request), events.Telling(incoming.input)
        try:
            if incoming.refused is not None:
                raise incoming.refused
            run = await self._service.send(incoming.inbound)
            try:
                logs.bind(session=run.task.context_id, run=run.task.run_id)
                await self._follow(request, stream, run, incoming.inbound, telling, events)
            finally:
                await answered(run)
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001  a door answers every request
            problem = explain(error, self._metrics)[1]
            await stream.write(events.chunk(telling.broken(problem)), last=True)

    async def _follow(
        self, request: Request, stream: EventStream, run: Run, inbound: Inbound, telling: Telling, events: Any
    ) -> None:
        async with aclosing(until_gone(request, run.events(), KEEP_ALIVE_SECONDS)) as happening:
            async for event in happening:
                if event is None:
                    await stream.comment()
                elif isinstance(event, Began):
                    check_taken_up(event.task, inbound, self._agent, "runId")
                    await stream.write(events.chunk([telling.started()]))
                else:
                    last = isinstance(event, Ended)
                    out = events.chunk(telling.events(event))
                    if out or last:
                        await stream.write(out, last=last)
                    if last:
                        return
        raise RuntimeError("a run stopped without an end")


def _types() -> tuple[ModuleType, ModuleType]:
    """What needs the protocol's own types, loaded with the first run: they take longer than the rest of the doors
    together, and most agents have no such front end."""
    from sayso_runtime.interfaces.agui import events, reading

    return events, reading
