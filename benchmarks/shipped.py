"""The environment that servers are measured in: what an image would hold, and no tools of ours beside it.

The virtual environment that tests use has more in it than an agent needs, and some libraries load what they find (a
terminal's colours, another HTTP client, the A2A SDK), which costs memory and start-up that no agent in service would
pay. So each system runs from an environment with what it needs alone, at the locked versions and compiled as in an
image: Sayso from the `runtime` extra, ADK's own server from that and a2a-sdk.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
A2A_SDK = "a2a-sdk[http-server]"
_PINNED = re.compile(r"^([A-Za-z0-9_.\[\]-]+==[^ ;\\]+)( *;[^\\]*)?", re.MULTILINE)


@cache
def python(*more: str) -> Path:
    """The interpreter of the environment with `more` packages; made once for each lock file.

    Raises `CalledProcessError` where that fails.
    """
    inputs = LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes() + " ".join(more).encode()
    state = hashlib.sha256(inputs).hexdigest()[:12]
    home = ROOT / "build" / f"shipped-{state}"
    interpreter = home / "bin" / "python"
    done = home / "done"
    if not done.exists():
        home.parent.mkdir(exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        constraints = home / "constraints.txt"
        pinned = _PINNED.findall(LOCK.read_text())
        constraints.write_text("\n".join(f"{name}{marker}" for name, marker in pinned) + "\n")
        wanted = ["-c", str(constraints), "-e", f"{ROOT}[runtime]", *more]
        quick = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(interpreter), *wanted]
        if subprocess.run(quick, check=False).returncode:  # uv does not read pip's configuration; pip does
            subprocess.run([str(interpreter), "-m", "pip", "install", "--quiet", *wanted], check=True)
        subprocess.run([str(interpreter), "-m", "compileall", "-q", str(home / "lib")], check=False)
        done.touch()
    return interpreter
