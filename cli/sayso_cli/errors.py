"""The one way in which a command fails: a sentence for people and an exit code.

1  the request was understood and refused, or could not be carried out
2  the request itself is wrong: faulty manifests, missing secrets, an unknown id
3  something waits for a person, and nobody was there to ask
"""

from __future__ import annotations

REFUSED = 1
USAGE = 2
PENDING = 3


class CliError(Exception):
    """Ends the command: `message` goes to standard error, `code` is the exit code."""

    def __init__(self, message: str, code: int = REFUSED) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
