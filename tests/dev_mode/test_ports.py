"""Which port each process gets, and that the same call gets the same ones."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso_cli.dev.ports import chosen, from_base, is_free, unused
from sayso_cli.errors import CliError

AGENTS = st.lists(st.from_regex(r"[a-z]{1,3}/[a-z]{1,3}", fullmatch=True), unique=True, min_size=1, max_size=4)


def test_a_base_gives_the_inbox_the_store_and_agents_in_the_order_of_the_manifests() -> None:
    assert from_base(7000, ["shop/b", "shop/a"], 2) == {
        "inbox": 7000,
        "redis": 7001,
        "shop/b#0": 7010,
        "shop/b#1": 7011,
        "shop/a#0": 7012,
        "shop/a#1": 7013,
    }


@pytest.mark.parametrize("base", [0, -1, 65_530, 70_000])
def test_a_base_whose_ports_are_none_is_refused(base: int) -> None:
    with pytest.raises(CliError, match="--port-base") as caught:
        from_base(base, ["shop/a"], 1)
    assert caught.value.code == 2


@given(AGENTS, st.integers(1, 3))
def test_the_same_call_gets_the_same_ports_and_no_two_share_one(agents: list[str], replicas: int) -> None:
    first = chosen({}, agents, replicas, free=lambda port: True)
    assert len(set(first.values())) == len(first) == 2 + len(agents) * replicas
    assert chosen(first, agents, replicas, free=lambda port: True) == first


def test_a_remembered_port_that_somebody_took_is_replaced_and_the_others_stay() -> None:
    first = chosen({}, ["shop/a", "shop/b"], 1, free=lambda port: True)
    again = chosen(first, ["shop/a", "shop/b"], 1, free=lambda port: port != first["shop/a#0"])
    changed = {name for name in first if again[name] != first[name]}
    assert changed == {"shop/a#0"}


def test_an_agent_that_is_left_out_for_once_finds_its_port_again() -> None:
    first = chosen({}, ["shop/a", "shop/b"], 1, free=lambda port: True)
    second = chosen(first, ["shop/b", "shop/c"], 1, free=lambda port: True)
    third = chosen(first | second, ["shop/a", "shop/b"], 1, free=lambda port: True)
    assert third == first


def test_a_port_on_which_somebody_listens_is_not_free() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        assert not is_free(server.getsockname()[1])
    assert is_free(unused())
