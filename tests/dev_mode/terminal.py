"""A program on a real terminal (a pty), read and typed at as a person would."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import subprocess
import termios
from collections.abc import Mapping, Sequence
from types import TracebackType


class Terminal:
    """Runs a command on a terminal of its own. `text` is everything shown so far, line ends as LF."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        ours, theirs = pty.openpty()
        settings = {"TERM": "xterm", "NO_COLOR": "1"} | dict(env or {})
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # its own: Ctrl-C is for this program
            env=os.environ | settings,
        )
        os.close(theirs)
        self._terminal = ours
        self._seen = 0
        self.text = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._terminal)

    def sees(self, words: str) -> None:
        """Reads until `words` are shown after what was seen before. AssertionError where the program ends first."""
        while words not in self.text[self._seen :]:
            assert self._read(), f"ended without {words!r}:\n{self.text}"
        self._seen = self.text.index(words, self._seen) + len(words)

    def types(self, line: str) -> None:
        """Types a line and Enter."""
        os.write(self._terminal, f"{line}\n".encode())

    def presses(self, key: bytes) -> None:
        """Presses a key: b"\\x04" is Ctrl-D."""
        os.write(self._terminal, key)

    def interrupts(self) -> int:
        """Presses Ctrl-C as impatient people do, until the program has ended; the exit code.

        Once is not enough for a test: a program that is just about to read its input would notice at the next key.
        """
        while self.process.poll() is None:
            self.presses(b"\x03")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.2)
        return self.ends()

    def ends(self) -> int:
        """Reads to the end; the exit code."""
        while self._read():
            pass
        return self.process.wait()

    def _read(self) -> bool:
        try:
            data = os.read(self._terminal, 65_536)
        except OSError:  # the other side is closed: how Linux says that nobody writes any more
            return False
        self.text += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)
