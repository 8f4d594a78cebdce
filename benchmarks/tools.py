"""The gated tool of every system under measurement."""

from __future__ import annotations

from typing import Any


def refund(order_id: str, amount: int) -> dict[str, Any]:
    """Pays `amount` euros back for an order."""
    return {"order_id": order_id, "refunded": amount}
