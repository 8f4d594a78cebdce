"""The commands of `sayso approvals`, as typer sees them."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sayso_cli.errors import REFUSED, USAGE, CliError
from sayso_cli.output import Format, parse_format

if TYPE_CHECKING:
    from sayso_cli.approvals.deciding import Outcome
    from sayso_cli.approvals.store import Store

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="See what waits for a say-so, and decide it.")

StateDirOption = Annotated[
    Path | None,
    typer.Option("--state-dir", help="Where sayso dev keeps its state. Default: SAYSO_STATE_DIR or .sayso."),
]
RedisOption = Annotated[str | None, typer.Option("--redis-url", help="The store, where it is not that of sayso dev.")]
OutputOption = Annotated[str, typer.Option("--output", "-o", help="table, wide, json or yaml.")]
ReasonOption = Annotated[
    str, typer.Option("--reason", "-m", help="Why; goes on record, and to the model on a rejection.")
]
IdsArgument = Annotated[list[str], typer.Argument(metavar="ID…", help="Short names as `list` shows them, or call ids.")]


def _run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


@app.command("list")
def list_calls(
    output: OutputOption = "table",
    pending: Annotated[
        bool, typer.Option("--pending", "-p", help="Only those with which something may happen.")
    ] = False,
    agent: Annotated[str | None, typer.Option("--agent", help="Only this one: <namespace>/<name>.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep showing it as it changes.")] = False,
    state_dir: StateDirOption = None,
    redis_url: RedisOption = None,
) -> None:
    """Every call that paused: waiting, decided, carried out or over."""
    form = parse_format(output)

    async def work() -> None:
        from sayso_cli.approvals import listing
        from sayso_cli.approvals.store import agent_id, opened

        only = agent_id(agent) if agent else None
        async with opened(state_dir, redis_url) as store:
            if watch:
                await listing.watch(lambda: store.rows(done=not pending, agent=only), form)
            rows = await store.rows(done=not pending, agent=only)
            sys.stdout.write(listing.listed(rows, form, time.time()))

    _run(work())


@app.command("show")
def show(
    ids: IdsArgument,
    output: OutputOption = "table",
    state_dir: StateDirOption = None,
    redis_url: RedisOption = None,
) -> None:
    """One call with all of its arguments, and what can be done about it."""
    form = parse_format(output)

    async def work() -> None:
        from sayso_cli.approvals import listing
        from sayso_cli.approvals.deciding import picked
        from sayso_cli.approvals.store import opened
        from sayso_cli.output import document

        async with opened(state_dir, redis_url) as store:
            rows = picked(await store.rows(done=True), ids)
        if len(rows) > 1 and form in (Format.JSON, Format.YAML):
            sys.stdout.write(document([row.details() for row in rows], form))
            return
        sys.stdout.write("\n".join(listing.shown(row, form) for row in rows))

    _run(work())


def _decided(
    step: Callable[[Store], Awaitable[list[Outcome]]], output: str, state_dir: Path | None, redis_url: str | None
) -> None:
    """Runs `step` on the store and prints what became of each id. Ends with 1 where one was refused."""
    form = parse_format(output)

    async def work() -> None:
        from sayso_cli.approvals.deciding import summary
        from sayso_cli.approvals.store import opened
        from sayso_cli.output import document

        async with opened(state_dir, redis_url) as store:
            outcomes = await step(store)
        if form in (Format.JSON, Format.YAML):
            sys.stdout.write(document([one.document() for one in outcomes], form))
            if any(one.error for one in outcomes):
                raise typer.Exit(REFUSED)
            return
        refused = [one for one in outcomes if one.error]
        if len(outcomes) == 1 and refused:
            raise CliError(refused[0].error)
        sys.stdout.write(summary(outcomes) + "\n")
        if refused:
            raise typer.Exit(REFUSED)

    _run(work())


@app.command("approve")
def approve(
    ids: IdsArgument,
    reason: ReasonOption = "",
    answer: Annotated[
        str | None,
        typer.Option("--answer", help="The value or the answer that is wanted: JSON, or plain text."),
    ] = None,
    output: OutputOption = "table",
    state_dir: StateDirOption = None,
    redis_url: RedisOption = None,
) -> None:
    """Approve calls: exactly these arguments run, at most once."""
    from sayso_cli.approvals.values import as_json_text

    payload = as_json_text(answer) if answer is not None else None
    _decided(lambda store: _decide(store, ids, "approved", reason, payload), output, state_dir, redis_url)


@app.command("reject")
def reject(
    ids: IdsArgument,
    reason: ReasonOption = "",
    output: OutputOption = "table",
    state_dir: StateDirOption = None,
    redis_url: RedisOption = None,
) -> None:
    """Reject calls: they do not run, and the model is told who refused and why."""
    _decided(lambda store: _decide(store, ids, "rejected", reason), output, state_dir, redis_url)


@app.command("cancel")
def cancel(
    ids: IdsArgument,
    reason: ReasonOption = "",
    output: OutputOption = "table",
    state_dir: StateDirOption = None,
    redis_url: RedisOption = None,
) -> None:
    """Cancel calls: they do not run, and count as decided by nobody."""
    _decided(lambda store: _decide(store, ids, "cancelled", reason), output, state_dir, redis_url)


@app.command("settle")
def settle(
    ids: IdsArgument,
    retry: Annotated[bool, typer.Option("--retry", help="Run it once more.")] = False,
    result: Annotated[str | None, typer.Option("--result", help="It ran: this is what it returned, as JSON.")] = None,
    abandon: Annotated[bool, typer.Option("--abandon", help="Leave it; the model is told that nobody knows.")] = False,
    reason: ReasonOption = "",
    output: OutputOption = "table",
    state_dir: StateDirOption = None,
    redis_url: RedisOption = None,
) -> None:
    """Settle a call of which nobody knows whether it ran: look for yourself first."""
    from sayso_cli.approvals.values import strict_json

    chosen = [name for name, on in (("retry", retry), ("result", result is not None), ("abandon", abandon)) if on]
    if len(chosen) != 1:
        raise CliError("say what is to become of it: exactly one of --retry, --result JSON and --abandon", USAGE)
    text = strict_json(result, "--result") if result is not None else None

    async def step(store: Store) -> list[Outcome]:
        from sayso_cli.approvals import deciding

        return await deciding.settle(store, ids, chosen[0], result=text, reason=reason)

    _decided(step, output, state_dir, redis_url)


async def _decide(store: Store, ids: list[str], verdict: str, reason: str, payload: str | None = None) -> list[Outcome]:
    from sayso_approvals.records import Verdict
    from sayso_cli.approvals import deciding

    return await deciding.decide(store, ids, Verdict(verdict), reason=reason, payload=payload)
