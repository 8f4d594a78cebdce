"""The example's order book: money is never paid twice, and its tools say what they refuse."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mcp import Client

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "refund-desk"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The example's files, which are scripts beside each other and no package."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    found = {}
    for name in ("order_book", "orders_server"):
        spec = importlib.util.spec_from_file_location(name, EXAMPLE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        found[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found[name])
    yield found
    for name in found:
        del sys.modules[name]


@pytest.fixture
def book(tmp_path: Path, modules: dict[str, ModuleType]) -> Any:
    """A new order book."""
    return modules["order_book"].OrderBook(tmp_path / "orders.sqlite")


def test_opening_it_again_changes_nothing(tmp_path: Path, modules: dict[str, ModuleType], book: Any) -> None:
    book.refund("A-1001", Decimal("5.50"), "a scratch")
    again = modules["order_book"].OrderBook(tmp_path / "orders.sqlite")
    assert again.order("A-1001")["refunded"] == "5.50"
    assert [line["what"] for line in again.history("A-1001")] == ["refund"]


@pytest.mark.parametrize("amount", ["25.51", "0", "-1", "0.001", "NaN", "Infinity"])
def test_an_amount_that_cannot_be_refunded_is_refused(modules: dict[str, ModuleType], book: Any, amount: str) -> None:
    with pytest.raises(modules["order_book"].OrderError):
        book.refund("A-1001", Decimal(amount), "")
    assert book.order("A-1001")["refunded"] == "0.00"
    assert book.history("A-1001") == []


def test_refunds_at_the_same_moment_never_pay_more_than_was_paid(modules: dict[str, ModuleType], book: Any) -> None:
    def once(_: int) -> bool:
        try:
            book.refund("A-1001", Decimal("10.00"), "race")
        except modules["order_book"].OrderError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(once, range(8))) == 2
    assert book.order("A-1001")["refunded"] == "20.00"


def test_only_an_open_order_can_be_cancelled(modules: dict[str, ModuleType], book: Any) -> None:
    assert book.cancel("A-1003", "changed my mind")["status"] == "cancelled"
    for order in ("A-1003", "A-1001", "A-9"):
        with pytest.raises(modules["order_book"].OrderError):
            book.cancel(order, "")


async def test_its_tools_answer_and_refuse_over_mcp(modules: dict[str, ModuleType], book: Any) -> None:
    async with Client(modules["orders_server"].server(book)) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"get_order", "refund", "cancel_order"}
        paid = await client.call_tool("refund", {"order_id": "A-1002", "amount": 29.99, "reason": "late"})
        assert not paid.is_error
        for arguments in ({"order_id": "A-1002", "amount": 9999}, {"order_id": "'; --", "amount": 1}, {"amount": 1}):
            assert (await client.call_tool("refund", arguments)).is_error
    assert book.order("A-1002")["refunded"] == "29.99"


@pytest.mark.parametrize("name", ["agent.yaml", "gemini/agent.yaml"])
def test_its_manifests_have_no_faults(name: str) -> None:
    from sayso_api.compile import validate
    from sayso_api.manifests import load

    assert validate(load([EXAMPLE / name])) == []


def test_both_variants_gate_the_same_tools() -> None:
    from sayso_api.manifests import load

    one, other = (load([EXAMPLE / name]).agents["shop/refund-desk"] for name in ("agent.yaml", "gemini/agent.yaml"))
    assert one.spec.tools == other.spec.tools
    assert one.spec.instruction == other.spec.instruction
