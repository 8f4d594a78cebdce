"""Runs and pauses can be looked up by who began them, and the list is whole whatever happens between its pages."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from support.agents import call, calls, fails, says
from support.desks import Desk, approved, serving


async def test_a_run_is_found_under_each_of_its_ids_as_it_is_now(desk: Desk) -> None:
    first = (await desk.chat("go")).json()
    found = await desk.get(f"api/v1/runs/{first['run_id']}")
    assert (found.status_code, found.json()) == (200, first)
    second = (await desk.resume(approved("c1"))).json()
    done = (await desk.resume(approved("c2"))).json()
    for run_id in (first["run_id"], second["run_id"], done["run_id"], first["run_id"].partition("-")[0]):
        assert (await desk.get(f"api/v1/runs/{run_id}")).json() == done
    assert done["status"] == "COMPLETED"
    assert "interruptions" not in done


@pytest.mark.parametrize("run_id", ["nothing", "0" * 32, "%2e%2e", "a" * 3000, "%00", "%F0%9F%98%80", "-", ""])
async def test_a_run_that_does_not_exist_is_404(desk: Desk, run_id: str) -> None:
    answer = await desk.door.http.get(f"{desk.door.url}api/v1/runs/{run_id}")
    assert answer.status_code == 404


async def test_a_run_that_failed_says_why(redis: Redis) -> None:
    async with serving(Desk(redis, [fails()])) as desk:
        run_id = (await desk.chat("go")).json()["run_id"]
        found = (await desk.get(f"api/v1/runs/{run_id}")).json()
        assert found["status"] == "FAILED"
        assert "503 overloaded" in found["result"]


async def all_pages(desk: Desk, limit: int) -> list[list[str]]:
    """The sessions of each page."""
    pages, query = [], {"limit": str(limit)}
    while True:
        answer = (await desk.get("api/v1/pauses", **query)).json()
        pages.append([run["session_id"] for run in answer["pauses"]])
        if "next_cursor" not in answer:
            return pages
        query["cursor"] = answer["next_cursor"]


async def test_pauses_come_in_pages_oldest_first_each_once(redis: Redis) -> None:
    async with serving(Desk(redis, [calls(call("refund", "c1"), call("refund", "c2")), says("Done.")])) as desk:
        assert (await desk.get("api/v1/pauses")).json() == {"pauses": []}
        names = [f"session {n} ü:" for n in range(7)]
        for name in names:
            await desk.chat("go", session_id=name)
        await desk.resume(approved("c1"), session_id=names[1])  # partly decided: it still waits
        for limit in (1, 3, 7, 50):
            pages = await all_pages(desk, limit)
            assert [name for page in pages for name in page] == names
            assert all(len(page) <= limit for page in pages)
        listed = (await desk.get("api/v1/pauses")).json()["pauses"]
        assert [len(run["interruptions"]) for run in listed] == [2, 1, 2, 2, 2, 2, 2]
        assert all(run["status"] == "PAUSED" for run in listed)
        assert (await desk.get(f"api/v1/runs/{listed[3]['run_id']}")).json() == listed[3]


async def test_what_is_decided_between_two_pages_hides_nothing_else(redis: Redis) -> None:
    async with serving(Desk(redis, [calls(call("refund", "c1")), says("Done.")])) as desk:
        for n in range(6):
            await desk.chat("go", session_id=f"s{n}")
        page = (await desk.get("api/v1/pauses", limit="3")).json()
        for n in (0, 2, 3):
            assert (await desk.resume(approved("c1"), session_id=f"s{n}")).status_code == 200
        rest = (await desk.get("api/v1/pauses", limit="3", cursor=page["next_cursor"])).json()
        assert [run["session_id"] for run in rest["pauses"]] == ["s4", "s5"]


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"},
        {"limit": "201"},
        {"limit": "-1"},
        {"limit": "1e2"},
        {"limit": "²"},
        {"limit": ""},
        {"cursor": ""},
        {"cursor": "garbage"},
        {"cursor": "W10"},
        {"cursor": "WzEsMl0"},
        {"cursor": "é"},
    ],
)
async def test_a_page_that_cannot_be_meant_is_422(desk: Desk, query: dict[str, str]) -> None:
    answer = await desk.get("api/v1/pauses", **query)
    assert (answer.status_code, answer.json()["code"]) == (422, "malformed_request")
