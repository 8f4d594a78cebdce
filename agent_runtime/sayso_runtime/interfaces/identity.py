"""Who is asking, where no authentication is set up: the person at this machine.

    NotIdentified  the door does not know who asks and answers nothing

Local mode believes whoever reaches the loopback interface to be the operating system's user. Web pages reach it too:
through a form or script of a foreign site, or by a name that is rebound to 127.0.0.1. So the `Host` must be a loopback
name, and an `Origin`, which browsers send with every POST across sites and programs do not, must be one as well.
"""

from __future__ import annotations

import getpass
import ipaddress
from collections.abc import Callable
from urllib.parse import urlsplit

from sayso_runtime.interfaces.asgi import Scope

Identify = Callable[[Scope], str]


class NotIdentified(Exception):  # noqa: N818  an answer, not a failure of the program
    """Nobody vouches for the one who asks. The message says why and what would help."""


def loopback_user(name: str | None = None) -> Identify:
    """Identifies every request from this machine as the operating system's user (or as `name`)."""
    user = name if name is not None else getpass.getuser()

    def identify(scope: Scope) -> str:
        client = scope.get("client")
        if not client or not is_loopback(str(client[0])):
            raise NotIdentified("without authentication only requests from this machine are answered")
        headers = scope["headers"]
        hosts = [value.decode("latin-1") for key, value in headers if key == b"host"]
        if len(hosts) != 1 or not is_loopback(_hostname("//" + hosts[0])):
            raise NotIdentified("without authentication the Host has to be localhost or a loopback address")
        for key, value in headers:
            if key == b"origin" and not is_loopback(_hostname(value.decode("latin-1"))):
                raise NotIdentified("without authentication pages of other sites are not answered")
        return user

    return identify


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only mean this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
