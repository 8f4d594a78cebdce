"""Aliases: one name per tool, the same on every replica, and never given to two tools."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sayso_runtime.tools.aliases import assign, usable

keys = st.sampled_from(["shop/orders", "shop/stock", "other/orders", "a.b/c d"])
names = st.one_of(st.sampled_from(["refund", "get", "transfer_to_agent", "with.dot", "with_dot"]), st.text(max_size=80))
targets = st.lists(st.tuples(keys, names), max_size=12, unique=True)


def test_a_name_that_one_server_offers_stays_as_it_is() -> None:
    assert assign([("shop/orders", "refund")]) == {("shop/orders", "refund"): "refund"}


def test_a_name_that_two_servers_offer_gets_the_servers_names_before_it() -> None:
    given_names = assign([("shop/orders", "get"), ("shop/stock", "get")])

    assert set(given_names.values()) == {"orders_get", "stock_get"}


def test_two_servers_of_one_name_are_told_apart_by_their_namespaces() -> None:
    given_names = assign([("shop/orders", "get"), ("other/orders", "get")])

    assert set(given_names.values()) == {"shop_orders_get", "other_orders_get"}


def test_a_name_that_a_server_that_is_down_is_expected_to_offer_counts_already() -> None:
    given_names = assign([("shop/orders", "get")], expected=[("shop/stock", "get")])

    assert given_names == {("shop/orders", "get"): "orders_get"}


def test_a_tool_cannot_take_the_engines_own_names() -> None:
    assert assign([("shop/orders", "transfer_to_agent")]) == {
        ("shop/orders", "transfer_to_agent"): "orders_transfer_to_agent"
    }


def test_a_name_that_a_waiting_call_holds_stays_with_its_tool() -> None:
    pinned = {"get": ("shop/orders", "get")}

    given_names = assign([("shop/orders", "get"), ("shop/stock", "get")], pinned=pinned)

    assert given_names == {("shop/orders", "get"): "get", ("shop/stock", "get"): "stock_get"}


@given(targets)
def test_every_tool_gets_a_name_of_its_own_that_every_provider_takes(offered: list[tuple[str, str]]) -> None:
    given_names = assign(offered)

    assert set(given_names) == set(offered)
    assert len(set(given_names.values())) == len(offered)
    assert all(usable(alias) for alias in given_names.values())


@given(targets, st.randoms())
def test_the_order_in_which_servers_answer_changes_no_name(offered: list[tuple[str, str]], random: object) -> None:
    shuffled = list(offered)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert assign(shuffled) == assign(offered)


@given(targets, st.data())
def test_a_held_name_is_never_given_to_another_tool(offered: list[tuple[str, str]], data: st.DataObject) -> None:
    before = assign(offered)
    held = {alias: target for target, alias in before.items() if data.draw(st.booleans())}
    more = [*offered, *data.draw(targets)]

    after = assign(more, pinned=held)

    assert all(after[target] == alias for alias, target in held.items())
    assert len(set(after.values())) == len(after)
