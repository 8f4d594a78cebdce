"""The end of an answer, alike in every door."""

from __future__ import annotations

import logging

from sayso_runtime.service_api import Run

_log = logging.getLogger(__name__)


async def answered(run: Run) -> None:
    """Tells the run that its answer is out, or its client gone. Awaited as it is, in the same step as the last write:
    were it a task of its own, a client that reads the answer and decides again at once could be taken for a late one.
    Raises nothing: nobody is left to tell."""
    try:
        await run.answered()
    except Exception:  # noqa: BLE001
        _log.exception("a run could not be told that its answer is out")
