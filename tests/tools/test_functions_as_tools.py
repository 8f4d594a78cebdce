"""Python functions in the agent's image as tools."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.tools.function_tool import FunctionTool

from sayso_api.runtimeconfig import FunctionBinding
from sayso_runtime.tools.fence import FenceLost, fence
from sayso_runtime.tools.functions import load_function
from sayso_runtime.tools.outcome import ConfigProblem


@pytest.fixture(autouse=True)
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`shop_tools`, importable by its name as in an agent's image."""
    source = Path(__file__).parents[1] / "support" / "shop_tools.py"
    spec = importlib.util.spec_from_file_location("shop_tools", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "shop_tools", module)
    spec.loader.exec_module(module)
    return module


class Context:
    """What ADK hands to a tool, as far as these functions look."""

    function_call_id = "c1"
    tool_confirmation = None


async def test_a_plain_function_is_called_with_its_arguments(shop: Any) -> None:
    tool = load_function(FunctionBinding(ref="shop_tools:send_voucher"))

    assert await tool.run_async(args={"customer": "Ada"}, tool_context=Context()) == {"sent": 5, "to": "Ada"}
    assert shop.CALLS == [("send_voucher", ("Ada", 5))]


async def test_a_coroutine_function_gets_the_tool_context(shop: Any) -> None:
    tool = load_function(FunctionBinding(ref="shop_tools:look_up"))

    answer = await tool.run_async(args={"customer": "Ada"}, tool_context=Context())

    assert answer == {"customer": "Ada", "call": "c1"}


def test_the_model_is_shown_the_function_as_it_would_be_without_us(shop: Any) -> None:
    for name in ("send_voucher", "look_up"):
        ours = load_function(FunctionBinding(ref=f"shop_tools:{name}"))._get_declaration()
        assert ours == FunctionTool(getattr(shop, name))._get_declaration()


def test_a_function_carries_what_a_say_so_is_bound_to() -> None:
    tool = load_function(FunctionBinding(ref="shop_tools:send_voucher", idempotent=True))

    facts = (tool.server, tool.endpoint, tool.tool, tool.idempotent)
    assert facts == ("function", "function:shop_tools:send_voucher", "send_voucher", True)


@pytest.mark.parametrize("name", ["send_voucher", "look_up", "slow_wipe"])
async def test_a_lost_lease_keeps_the_function_from_being_entered(shop: Any, name: str) -> None:
    tool = load_function(FunctionBinding(ref=f"shop_tools:{name}"))

    def over() -> None:
        raise RuntimeError("turn 7 is over")

    token = fence.set(over)
    try:
        with pytest.raises(FenceLost, match="turn 7 is over"):
            await tool.run_async(args={"customer": "Ada"}, tool_context=Context())
    finally:
        fence.reset(token)
    assert shop.CALLS == []


def test_a_ready_made_tool_keeps_what_it_is_and_the_modules_own_stays_untouched(shop: Any) -> None:
    slow = load_function(FunctionBinding(ref="shop_tools:slow_wipe"))
    confirmed = load_function(FunctionBinding(ref="shop_tools:confirmed_wipe"))

    assert slow.is_long_running
    assert confirmed._require_confirmation is True
    assert shop.confirmed_wipe.func is shop.wipe
    assert not hasattr(shop.confirmed_wipe, "server")


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        ("shop_tools", "write it as module:attribute"),
        ("shop_tolls:wipe", "there is no module shop_tolls"),
        ("shop_tools:wpie", "module shop_tools has no wpie"),
        ("shop_tools:NUMBER", "it is of type int"),
        ("shop_tools:FunctionTool", "it is a class"),
    ],
)
def test_a_wrong_reference_says_which_half_is_wrong(ref: str, says: str) -> None:
    with pytest.raises(ConfigProblem, match=f"function {ref}: .*{says}"):
        load_function(FunctionBinding(ref=ref))


def test_a_module_that_fails_on_import_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_tools.py").write_text("import a_library_nobody_has\n")
    (tmp_path / "bad_tools.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ConfigProblem, match="needs a_library_nobody_has, which is not installed"):
        load_function(FunctionBinding(ref="half_tools:x"))
    with pytest.raises(ConfigProblem, match="importing bad_tools failed: ZeroDivisionError"):
        load_function(FunctionBinding(ref="bad_tools:x"))
