"""An agent that lacks its store, or its right key, says so and what to do; and goes on when the store is there."""

from __future__ import annotations

import json
from pathlib import Path

import httpx

from support.a2a03 import client
from support.agents import says
from support.held_agent import script
from support.processes import prepare, until


async def test_an_agent_that_starts_while_redis_is_away_is_not_ready_and_goes_on_when_it_comes(tmp_path: Path) -> None:
    shop = prepare(tmp_path / "s", script(says("hello")))
    try:
        shop.a.process.start()
        async with client() as http:

            async def names_it() -> bool:
                if not shop.a.process.runs:
                    raise AssertionError(shop.a.process.log.read_text())
                try:
                    answer = await http.get(f"{shop.a.url}/readyz")
                except httpx.TransportError:
                    return False
                return answer.status_code == 503 and "Redis at 127.0.0.1" in answer.text

            await until(names_it, "a readiness that names Redis")
        await shop.redis.start()
        await shop.a.ready()
        assert (await shop.a.say("Hello", "s1"))["status"]["state"] == "completed"
        assert "Traceback" not in shop.a.process.log.read_text()
    finally:
        await shop.close()


async def test_a_key_that_others_can_read_ends_the_start_with_one_sentence(tmp_path: Path) -> None:
    shop = prepare(tmp_path / "s", script(says("hello")))
    key = tmp_path / "s" / "agent.key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o644)
    try:
        await shop.redis.start()
        shop.a.process.start()
        assert await shop.a.process.ended() == 2
        log = shop.a.process.log.read_text()
        assert "agent.key" in log
        assert "Traceback" not in log
    finally:
        await shop.close()


async def test_a_configuration_that_does_not_fit_ends_the_start_with_one_sentence_naming_file_and_field(
    tmp_path: Path,
) -> None:
    shop = prepare(tmp_path / "s", script(says("hello")))
    (config,) = (tmp_path / "s").glob("*.json")
    document = json.loads(config.read_text())
    config.write_text(json.dumps(document | {"while_paused": "Perhaps", "surprise": 1}))
    try:
        shop.a.process.start()
        assert await shop.a.process.ended() == 2
        log = shop.a.process.log.read_text()
        assert str(config) in log
        assert "surprise" in log
        assert "while_paused" in log
        assert "Traceback" not in log
        assert len(log.strip().splitlines()) == 1
    finally:
        await shop.close()
