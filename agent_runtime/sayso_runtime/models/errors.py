"""What a model can fail with.

ModelError      one attempt failed in a way that another attempt may mend (also what a scripted failure raises)
ModelFailed     the model gave no reply, all attempts included; the only one that leaves this package
"""

from __future__ import annotations

from sayso_runtime.engine import api


class ModelError(Exception):
    """One attempt failed, and trying again may help."""


class ModelFailed(api.ModelFailed):
    """No reply. `why` holds no key; the text names provider, model and what to do."""

    def __init__(self, provider: str, model: str, why: str) -> None:
        super().__init__(f"{provider} model {model}: {why}" if model else f"{provider} model: {why}")
        self.provider = provider
        self.model = model
        self.why = why
