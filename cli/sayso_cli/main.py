"""The program: commands, and how each of them ends.

What a command needs is imported when it runs, so that `--help` and completion answer at once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from sayso_cli.approvals.commands import StateDirOption
from sayso_cli.approvals.commands import app as approvals_app
from sayso_cli.errors import USAGE, CliError

app = typer.Typer(
    name="sayso",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: loading rich for it would cost half of the start
    context_settings={"help_option_names": ["-h", "--help"]},
    help="AI agents on Kubernetes that act on a person's say-so.",
)
app.add_typer(approvals_app, name="approvals")

FilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILES…", help="Manifests: YAML files, or folders with such files.")
]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"sayso {version('sayso')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """AI agents on Kubernetes that act on a person's say-so."""


@app.command("validate")
def validate(
    files: FilesArgument,
    online: Annotated[bool, typer.Option("--online", help="Also ask the tool servers what they offer.")] = False,
    output: Annotated[str, typer.Option("--output", "-o", help="table or json.")] = "table",
) -> None:
    """Check manifests: every fault of every file in one message."""
    from sayso_cli.validate import run as run_validate

    raise typer.Exit(run_validate(files, online=online, output=output))


@app.command("dev")
def dev(
    files: FilesArgument,
    replicas: Annotated[int, typer.Option("--replicas", min=1, max=32, help="Processes for each agent.")] = 1,
    state_dir: StateDirOption = None,
    redis_url: Annotated[
        str | None, typer.Option("--redis-url", help="A Redis that runs already, instead of one of our own.")
    ] = None,
    port_base: Annotated[
        int | None, typer.Option("--port-base", help="P: inbox, P+1: store, from P+10: agents. Default: free ports.")
    ] = None,
) -> None:
    """Run the agents of these manifests on this machine, with a store of their own."""
    from sayso_cli.dev.command import Options
    from sayso_cli.dev.command import run as run_dev

    options = Options(
        files=tuple(files), replicas=replicas, state_dir=state_dir, redis_url=redis_url, port_base=port_base
    )
    raise typer.Exit(run_dev(options))


@app.command("chat")
def chat(
    agent: Annotated[str, typer.Argument(help="The agent: <namespace>/<name>, or the name where that is enough.")],
    text: Annotated[str | None, typer.Argument(help="What to say; without it, a conversation.")] = None,
    session: Annotated[str | None, typer.Option("--session", help="Go on with this session.")] = None,
    state_dir: StateDirOption = None,
) -> None:
    """Talk to an agent; where it waits for a say-so, decide."""
    from sayso_cli.chat.command import run as run_chat

    raise typer.Exit(run_chat(agent, text, session=session, state_dir=state_dir))


@app.command("completion")
def completion(shell: Annotated[str, typer.Argument(help="bash, zsh or fish.")]) -> None:
    """Print the completion script of a shell: `source <(sayso completion bash)`."""
    from typer._completion_shared import get_completion_script

    if shell not in ("bash", "zsh", "fish"):
        raise CliError(f"there is no completion for {shell!r}: name bash, zsh or fish", USAGE)
    name = program_name()
    variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
    typer.echo(get_completion_script(prog_name=name, complete_var=variable, shell=shell))


def program_name() -> str:
    """`sayso`, or `kubectl-sayso` where it was called so."""
    name = Path(sys.argv[0]).name
    return name if name in ("sayso", "kubectl-sayso") else "sayso"


def run(arguments: list[str] | None = None) -> None:
    """The entry point; `arguments` None: those of the process.

    Errors are one message on standard error; a broken pipe and Ctrl-C end without one.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupted)
    try:
        app(args=arguments, prog_name=program_name())
    except CliError as error:
        sys.stderr.write(f"sayso: {error.message}\n")
        sys.exit(error.code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read us has enough, as `head` does. The interpreter must not try to flush once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _interrupted(number: int, frame: object) -> None:
    """Ctrl-C, once: pressed again while the program is ending, it would break off the ending."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    run()
