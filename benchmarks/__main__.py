"""`python -m benchmarks`: measures everything in one run, prints one report and writes it to `results/`."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks import profiling, report
from benchmarks.run import QUICK, Size, run

RESULTS = Path(__file__).resolve().parent / "results"


def main() -> int:
    """0 when everything could be measured, whatever the numbers are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few samples, to see that it works; writes no file")
    parser.add_argument("--profile", action="store_true", help="instead, show where Sayso's CPU time goes")
    options = parser.parse_args()
    if options.profile:
        print(asyncio.run(profiling.run(_say)))
        return 0
    result = asyncio.run(run(QUICK if options.quick else Size(), _say))
    result["goals"] = [asdict(goal) | {"reached": goal.reached} for goal in report.goals(result)]
    print(report.render(result))
    if not options.quick:
        path = RESULTS / f"{result['taken_at'].replace(':', '').split('+')[0]}.json"
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(f"\nwritten to {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    return 0


def _say(what: str) -> None:
    print(f"… {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
