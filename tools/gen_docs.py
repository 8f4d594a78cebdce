"""Writes docs/reference from the code, or with `--check` says which pages are stale (exit code 1).

What a page says about a field, an option or a key is what the code says about itself, so that the two cannot drift
apart. Pages that nobody generates any more are removed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import cli_page
import resource_pages
import wire_pages

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTE = "<!-- Written by `make docs`. Change the code it describes, not this page. -->\n\n"


def pages() -> dict[str, str]:
    """File name -> text of every page."""
    return {
        **resource_pages.pages(),
        "cli.md": cli_page.page(),
        "refusals.md": wire_pages.refusals(),
        "metrics.md": wire_pages.metrics(),
        "redis-keys.md": wire_pages.redis_keys(),
    }


def stale(wanted: dict[str, str], folder: Path) -> list[str]:
    """Names of pages that are missing, differ, or are not wanted any more."""
    found = {path.name: path.read_text() for path in folder.glob("*.md")}
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, and fail when a page is stale")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="where the pages are")
    given = parser.parse_args()
    check, folder = bool(given.check), Path(given.folder)
    wanted = {name: NOTE + text.rstrip("\n") + "\n" for name, text in pages().items()}
    names = stale(wanted, folder)
    if check:
        if names:
            print(f"{folder} is not what the code says ({', '.join(names)}): run 'make docs'", file=sys.stderr)
        return 1 if names else 0
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in wanted:
            (folder / name).write_text(wanted[name])
        else:
            (folder / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
