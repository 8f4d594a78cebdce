"""`python -m sayso_runtime`: one agent's process."""

from __future__ import annotations

import argparse
import gc
import getpass
import os
import sys
from pathlib import Path


def main(argv: list[str] | None = None) -> int:
    """Exit 0 after a clean stop, 2 when the configuration cannot work."""
    parser = argparse.ArgumentParser(prog="sayso-agent", description="Runs one Sayso agent.")
    parser.add_argument("--config", type=Path, required=True, help="RuntimeConfig as JSON")
    parser.add_argument("--redis-url", required=True)
    parser.add_argument("--key-file", type=Path, required=True, help="the agent's key (mode 0600)")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--replica", default="0", help="name of this replica, different for each")
    parser.add_argument("--user", default=None, help="who a caller on loopback is (default: the user of this process)")
    parser.add_argument(
        "--lease-seconds",
        type=_positive,
        default=10.0,
        help="how long a replica that has died keeps a session from the others (default: %(default)g)",
    )
    parser.add_argument(
        "--grace-seconds",
        type=_positive,
        default=15.0,
        help="how long calls that run at a stop may take beyond the longest time-out of a tool server "
        "(default: %(default)g)",
    )
    given = parser.parse_args(argv)

    gc.disable()  # what is imported now stays: looking for garbage in it costs a tenth of the start
    os.environ.setdefault("ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS", "false")  # arguments do not belong in traces
    from sayso_api.secretenv import PROVIDER_VARIABLES
    from sayso_runtime.logs import configure

    keys = {name for names in PROVIDER_VARIABLES.values() for name in names}
    configure(secrets=[v for k, v in os.environ.items() if k.startswith("SAYSO_SECRET_") or k in keys])
    from sayso_approvals.seal import BadKey
    from sayso_runtime.process import ProcessSettings, run
    from sayso_runtime.tools.outcome import ConfigProblem

    settings = ProcessSettings(
        config=given.config,
        redis_url=given.redis_url,
        key_file=given.key_file,
        host=given.host,
        port=given.port,
        replica=given.replica,
        user=given.user or getpass.getuser(),
        lease_seconds=given.lease_seconds,
        grace_seconds=given.grace_seconds,
    )
    try:
        import uvloop

        uvloop.run(run(settings))
    except (ConfigProblem, BadKey, ValueError, OSError) as problem:
        sys.stderr.write(f"sayso-agent cannot start: {problem}\n")
        return 2
    return 0


def _positive(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"a number of seconds above 0, not {text}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
