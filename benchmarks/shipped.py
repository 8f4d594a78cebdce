"""The environment that servers are measured in: what an image would hold, and no tools of ours beside it.

The virtual environment that tests use has more in it than an agent needs, and some libraries load what they find (a
terminal's colours, another HTTP client), which costs memory and start-up that no agent in service would pay. So both
systems run from an environment made of the `runtime` extra and a2a-sdk's server alone, at the locked versions.
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
_PINNED = re.compile(r"^([A-Za-z0-9_.\[\]-]+==[^ ;\\]+)( *;[^\\]*)?", re.MULTILINE)


@cache
def python() -> Path:
    """The environment's interpreter; made once for each lock file. Raises `CalledProcessError` where that fails."""
    state = hashlib.sha256(LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()[:12]
    home = ROOT / "build" / f"shipped-{state}"
    interpreter = home / "bin" / "python"
    done = home / "done"
    if not done.exists():
        home.parent.mkdir(exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        constraints = home / "constraints.txt"
        pinned = _PINNED.findall(LOCK.read_text())
        constraints.write_text("\n".join(f"{name}{marker}" for name, marker in pinned) + "\n")
        wanted = ["-c", str(constraints), "-e", f"{ROOT}[runtime]", "a2a-sdk[http-server]"]
        quick = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(interpreter), *wanted]
        if subprocess.run(quick, check=False).returncode:  # uv does not read pip's configuration; pip does
            subprocess.run([str(interpreter), "-m", "pip", "install", "--quiet", *wanted], check=True)
        subprocess.run([str(interpreter), "-m", "compileall", "-q", str(home / "lib")], check=False)
        done.touch()
    return interpreter
