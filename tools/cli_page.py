"""The page of the command line, from the program's own commands, options and their help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from markdown import code, table
from sayso_cli import errors
from sayso_cli.main import app


def page(name: str = "sayso") -> str:
    """The whole page."""
    text = [
        "# Command line",
        "`kubectl sayso` is the same program. `-h` or `--help` explains every command.",
        "## Exit codes",
        table(
            ("code", "meaning"),
            [
                ("0", "Done."),
                (str(errors.REFUSED), "Understood and refused, or it could not be carried out."),
                (str(errors.USAGE), "The request itself is wrong: faulty manifests, a missing secret, an unknown id."),
                (str(errors.PENDING), "Something waits for a person, and nobody was there to ask."),
            ],
        ),
    ]
    for path, command in _commands(get_command(app), name):
        text += [f"## {path}", command.help or "", *_parameters(path, command)]
    return "\n\n".join(block for block in text if block) + "\n"


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from _commands(child, f"{path} {name}")


def _parameters(path: str, command: Any) -> list[str]:
    shown = [parameter for parameter in command.params if not parameter.hidden]
    arguments = [parameter for parameter in shown if parameter.param_type_name == "argument"]
    options = [parameter for parameter in shown if parameter.param_type_name == "option"]
    words = [_argument(argument) for argument in arguments]
    usage = " ".join([path, *(["[OPTIONS]"] if options else []), *words])
    if getattr(command, "commands", None):
        usage += " COMMAND …"
    rows = [
        *(
            (code(_argument(argument)), "*required*" if argument.required else "", argument.help)
            for argument in arguments
        ),
        *((", ".join(code(flag) for flag in option.opts), _default(option), option.help) for option in options),
    ]
    return [f"```\n{usage}\n```", table(("", "default", "meaning"), rows) if rows else ""]


def _argument(argument: Any) -> str:
    word = str(argument.metavar or argument.name.upper())
    return word if argument.required else f"[{word}]"


def _default(option: Any) -> str:
    if option.required:
        return "*required*"
    value = option.default
    return "" if value in (None, "", False) or not isinstance(value, str | int | float) else code(str(value))
