"""What a log line says, and what it never says."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from sayso_runtime import logs

KEY = "sk-1234567890"


@pytest.fixture(autouse=True)
def untouched_root() -> Iterator[None]:
    """Logging is the process' own: whatever a test sets up is taken back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logs.bind(run="", session="", call="")


def configured(**more: Any) -> io.StringIO:
    stream = io.StringIO()
    logs.configure(stream=stream, **more)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object_with_the_ids_of_the_task_that_wrote_it() -> None:
    stream = configured()
    logs.bind(run="r1", session="s1")
    logging.getLogger("sayso.test").warning("gate entry %s matches nothing", "refnd", extra={"server": "shop/orders"})
    (line,) = lines(stream)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "sayso.test",
        "message": "gate entry refnd matches nothing",
        "run": "r1",
        "session": "s1",
        "server": "shop/orders",
    }


async def test_tasks_do_not_see_each_others_ids() -> None:
    stream = configured()
    both = asyncio.Barrier(2)

    async def work(name: str) -> None:
        logs.bind(session=name)
        await both.wait()
        logging.getLogger("sayso.test").info(name)

    await asyncio.gather(asyncio.create_task(work("one")), asyncio.create_task(work("two")))
    assert {(line["message"], line["session"]) for line in lines(stream)} == {("one", "one"), ("two", "two")}
    assert "session" not in logs.bound()


@pytest.mark.parametrize("human", [True, False])
def test_secrets_are_masked_in_messages_extras_and_traces(human: bool) -> None:
    stream = configured(secrets=[KEY, "sk-1234567890-longer", "x"], human=human)
    log = logging.getLogger("sayso.test")
    log.info("key %s and %s-longer", KEY, KEY, extra={"header": f"Bearer {KEY}"})
    try:
        raise ValueError(f"bad key {KEY}")
    except ValueError:
        log.exception("it failed")
    text = stream.getvalue()
    assert "key *** and ***" in text
    assert "bad key ***" in text
    assert "1234567890" not in text
    assert "longer" not in text


def test_arguments_are_outlined_and_never_written_out() -> None:
    stream = configured()
    arguments = {"order_id": "A-1", "note": "x" * 5_000}
    logging.getLogger("sayso.test").info("calling: %s", logs.outline(arguments), extra={"arguments": arguments})
    (line,) = lines(stream)
    assert line["message"] == "calling: note (5002), order_id (5)"
    assert line["arguments"] == "note (5002), order_id (5)"
    assert logs.outline({}) == "no arguments"


def test_long_messages_are_cut() -> None:
    stream = configured()
    logging.getLogger("sayso.test").info("y" * 1_000_000)
    assert len(stream.getvalue()) < 3_000


@pytest.mark.parametrize("human", [True, False])
def test_what_others_wrote_cannot_forge_a_line_or_steer_the_terminal(human: bool) -> None:
    stream = configured(human=human)
    logs.bind(session="s\n12:00:00 info all is well")
    logging.getLogger("sayso.test").info("hello \x1b[2Jthere\r\n12:00:00 info approved")
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert "\r" not in text


def test_people_get_a_short_line() -> None:
    stream = configured(human=True)
    logs.bind(run="r1")
    logging.getLogger("sayso.test").warning("redis: appendfsync is everysec")
    assert stream.getvalue()[8:] == " warning  redis: appendfsync is everysec  (run r1)\n"
