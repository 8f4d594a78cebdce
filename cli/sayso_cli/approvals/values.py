"""JSON that a person types on the command line."""

from __future__ import annotations

import json

from sayso_approvals.digest import NotCanonical, loads_strict
from sayso_cli.errors import USAGE, CliError


def strict_json(text: str, option: str) -> str:
    """`text` again, as compact JSON. CliError (usage) where it is not JSON or can be read in two ways."""
    try:
        return json.dumps(loads_strict(text), ensure_ascii=False, separators=(",", ":"))
    except NotCanonical as error:
        raise CliError(f"{option} wants JSON: {error}", USAGE) from error


def as_json_text(text: str) -> str:
    """JSON as it is; anything else as a JSON string: `--answer yes` and `--answer '"yes"'` mean the same."""
    try:
        return strict_json(text, "--answer")
    except CliError:
        return json.dumps(text, ensure_ascii=False)
