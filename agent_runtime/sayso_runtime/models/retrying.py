"""The same time-out, retries, limits and errors around every model.

Providers' libraries each retry in their own way; theirs are turned off, so that attempts are what the ModelConfig says
they are. A reply of which something has been seen is never asked for again: the reader would see it twice.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable

from google.adk.models import LlmCapabilities
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from pydantic import PrivateAttr

from sayso_api.runtimeconfig import ModelSettings
from sayso_runtime.models.errors import ModelError, ModelFailed

log = logging.getLogger(__name__)

FIRST_DELAY = 0.1  # seconds before the second attempt; doubled each time, with jitter
LONGEST_DELAY = 10.0
WHY_LIMIT = 500  # characters of a provider's own words
#: HTTP statuses after which another attempt may succeed, beside all from 500 on.
PASSING = frozenset({408, 409, 429})
#: Providers' errors without an HTTP status, by the names of their classes: their libraries are not imported here.
_CONNECTION = frozenset(
    {"APIConnectionError", "APITimeoutError", "TransportError", "ClientConnectionError", "ServerDisconnectedError"}
)


class Retrying(BaseLlm):
    """A model under its ModelConfig's `parameters`. `on_call` hears of every attempt."""

    _inner: BaseLlm = PrivateAttr()
    _settings: ModelSettings = PrivateAttr()
    _on_call: Callable[[], None] = PrivateAttr()
    _secrets: tuple[str, ...] = PrivateAttr()

    def __init__(
        self, inner: BaseLlm, settings: ModelSettings, on_call: Callable[[], None], secrets: tuple[str, ...] = ()
    ) -> None:
        super().__init__(model=inner.model)
        self._inner = inner
        self._settings = settings
        self._on_call = on_call
        self._secrets = tuple(secret for secret in secrets if secret)

    @property
    def inner(self) -> BaseLlm:
        """The provider's model."""
        return self._inner

    @property
    def capabilities(self) -> LlmCapabilities:
        """Those of the provider's model."""
        return self._inner.capabilities

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """The model's reply. Raises ModelFailed when there is none, or when it breaks off."""
        config, settings = llm_request.config, self._settings
        if config.temperature is None:
            config.temperature = settings.temperature
        if config.max_output_tokens is None:
            config.max_output_tokens = settings.max_output_tokens
        attempt = 0
        while True:
            attempt += 1
            started = False
            try:
                async for response in self._attempt(llm_request, stream):
                    started = True
                    yield response
                return
            except Exception as error:
                why = self._why(error)
                if started:
                    raise self._failed(f"{why}, in the middle of its reply") from error
                if attempt > settings.retries or not passing(error):
                    tries = f" ({attempt} attempts)" if attempt > 1 else ""
                    raise self._failed(f"{why}{tries}") from error
                log.info("%s: %s; attempt %d of %d follows", self.model, why, attempt + 1, settings.retries + 1)
            delay = min(FIRST_DELAY * 2 ** (attempt - 1), LONGEST_DELAY)
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311  not a secret

    async def _attempt(self, llm_request: LlmRequest, stream: bool) -> AsyncGenerator[LlmResponse, None]:
        self._on_call()
        replies = self._inner.generate_content_async(llm_request, stream)
        try:
            while True:
                # Bounds the silence, not the whole of a long reply that keeps coming.
                async with asyncio.timeout(self._settings.timeout_seconds):
                    response = await anext(replies, None)
                if response is None:
                    return
                yield response
        finally:
            await replies.aclose()

    def _failed(self, why: str) -> ModelFailed:
        return ModelFailed(self._settings.provider, self._settings.model, why)

    def _why(self, error: Exception) -> str:
        status = status_of(error)
        if status in (401, 403):
            # The provider's own words often quote the key, or a part of it.
            return f"HTTP {status}: the key was refused. Check the Secret that the ModelConfig's apiKeySecretRef names"
        if isinstance(error, TimeoutError):
            return f"no reply within {self._settings.timeout_seconds:g} s"
        text = str(error) or type(error).__name__
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        text = text if len(text) <= WHY_LIMIT else f"{text[:WHY_LIMIT]}…"
        return text if status is None or str(status) in text else f"HTTP {status}: {text}"


def status_of(error: BaseException) -> int | None:
    """The HTTP status within a provider's error, whichever library raised it."""
    for holder, name in ((error, "status_code"), (error, "code"), (getattr(error, "response", None), "status_code")):
        status = getattr(holder, name, None)
        if isinstance(status, int) and 100 <= status <= 599:
            return status
    return None


def passing(error: BaseException) -> bool:
    """Whether another attempt may succeed."""
    if isinstance(error, ModelError | ConnectionError | TimeoutError):
        return True
    status = status_of(error)
    if status is not None:
        return status in PASSING or status >= 500
    return not _CONNECTION.isdisjoint(kind.__name__ for kind in type(error).__mro__)
