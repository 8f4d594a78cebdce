"""Runs a program in place of this process, tied to its parent: when the parent dies, the kernel ends the program.

    python -I -S tether.py PARENT-PID PROGRAM ARGUMENT…

A file of its own that needs the standard library only, because it starts before every program that it ties.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Replaces this process by the program; the process id stays the same."""
    parent, program = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the line above
            sys.exit(1)
    os.execv(program[0], program)  # noqa: S606  that is what this file is for


if __name__ == "__main__":
    main()
