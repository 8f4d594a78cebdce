"""How far an agent's process is: asked over HTTP, as Kubernetes would."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx

_TIMEOUT = httpx.Timeout(5.0, connect=1.0)


@dataclass(frozen=True, slots=True)
class Readiness:
    """`alive`: the process answers. `reasons`: why it is not ready; empty with `alive`: it is."""

    alive: bool
    reasons: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """It takes messages, and its tools work."""
        return self.alive and not self.reasons

    @property
    def only_tools_missing(self) -> bool:
        """It would be ready if its tool servers answered: it takes messages, and says what it cannot do."""
        return self.alive and bool(self.reasons) and all(is_about_tools(reason) for reason in self.reasons)


def is_about_tools(reason: str) -> bool:
    """Whether a reason names a tool server that does not answer, rather than the process' own state."""
    return reason.startswith("tool server ")


async def ask(client: httpx.AsyncClient, url: str) -> Readiness:
    """Asks one replica. A process that does not answer, or not sensibly, is not alive."""
    try:
        response = await client.get(f"{url}/readyz", timeout=_TIMEOUT)
    except httpx.HTTPError:
        return Readiness(alive=False, reasons=("it does not answer yet",))
    if response.status_code == 200:
        return Readiness(alive=True)
    try:
        reasons = response.json()["reasons"]
        found = tuple(str(reason) for reason in reasons)
    except (ValueError, KeyError, TypeError):
        found = ()
    return Readiness(alive=True, reasons=found or (f"GET /readyz answers {response.status_code}",))


async def ask_all(client: httpx.AsyncClient, urls: Mapping[str, str]) -> dict[str, Readiness]:
    """Asks every replica at once; `urls` by process name."""
    answers: Sequence[Readiness] = await asyncio.gather(*(ask(client, url) for url in urls.values()))
    return dict(zip(urls, answers, strict=True))
