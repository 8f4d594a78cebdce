"""ADK's own A2A server over the gated agent, everything in memory: `python -m benchmarks.a2a_server PORT`.

The runner is passed in because `to_a2a` makes one without resumability, which would call the model while it waits.
"""

from __future__ import annotations

import logging
import sys

import uvicorn
from google.adk.a2a.utils.agent_to_a2a import to_a2a

from benchmarks.adk_agent import agent, runner


def main(port: int) -> None:
    """Serves on loopback until it is told to stop."""
    root = agent()
    app = to_a2a(root, host="127.0.0.1", port=port, runner=runner(root))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    main(int(sys.argv[1]))
