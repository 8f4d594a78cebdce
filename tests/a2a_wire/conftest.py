"""A real server on loopback, with a scripted service behind the real doors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
import pytest_asyncio

from sayso_runtime.interfaces.asgi import App
from support.scripted_service import ScriptedService
from support.serving import Door
from support.serving import running as serving


@asynccontextmanager
async def running(wrap: Callable[[App], App] = lambda app: app) -> AsyncIterator[Door]:
    """A server with a scripted service of its own."""
    service = ScriptedService()
    async with serving(service, wrap) as door:
        yield door
        await service.close()


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    """A server of this test's own."""
    async with running() as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lasting_door() -> AsyncIterator[Door]:
    """One server for all tests of a module that ask for much and keep nothing."""
    async with running() as made:
        yield made


@pytest.fixture
def running_door() -> Callable[..., AbstractAsyncContextManager[Door]]:
    """Starts a server with something between it and the application."""
    return running
