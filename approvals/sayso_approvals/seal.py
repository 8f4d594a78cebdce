"""Seals: what the ledger keeps is believed only with the agent's own mark on it.

A seal is an HMAC-SHA256 over the stored text itself, with the kind of record in front, so that a verdict's seal can
never pass for a pause's. The key never goes to Redis: whoever can write there can change a record and its digest
together, but cannot seal it.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from sayso_approvals.records import AgentId, Kind, Pause, PausedCall, Verdict, VerdictRecord

KEY_BYTES = 32
Domain = Literal["pause", "verdict"]


class BadKey(Exception):  # noqa: N818
    """The agent's key cannot be used: the message says why and what to do."""


class BadRecord(ValueError):  # noqa: N818
    """The text is not a record of this kind: something is missing, unknown or of another type."""


def new_key() -> bytes:
    """A fresh key for one agent."""
    return secrets.token_bytes(KEY_BYTES)


def load_or_create_key(path: Path) -> bytes:
    """The key kept in `path` as hexadecimal text; made, readable by its owner only, where there is none.

    Two processes that come here at once end up with the same key. Raises `BadKey`.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(new_key().hex())
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                path.hardlink_to(fresh)  # whole or not at all, and only one of two wins
        finally:
            fresh.unlink()
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise BadKey(f"{path}: others may read or write this key. Make it yours alone (chmod 600), or replace it")
        text = file.read(4 * KEY_BYTES)
    try:
        key = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise BadKey(f"{path}: not a key of {KEY_BYTES} bytes in hexadecimal. Remove it: open pauses become void")
    return key


def seal(key: bytes, domain: Domain, text: str) -> str:
    """The seal of a record's text, in hexadecimal."""
    message = b"sayso/v1/" + domain.encode() + b"\0" + text.encode("utf-8", "surrogateescape")
    return hmac.digest(key, message, "sha256").hex()


def holds(key: bytes, domain: Domain, text: str, mac: str) -> bool:
    """Whether this agent sealed exactly this text."""
    return hmac.compare_digest(seal(key, domain, text).encode(), mac.encode("utf-8", "surrogateescape"))


def dump_pause(pause: Pause) -> str:
    """The one text of a pause that is stored and sealed."""
    document = {name: getattr(pause, name) for name in _PAUSE}
    document["agent"] = [pause.agent.namespace, pause.agent.name]
    document["calls"] = [{name: getattr(call, name) for name in _CALL} for call in pause.calls]
    return _dump(document)


def load_pause(text: str) -> Pause:
    """Raises `BadRecord` for anything that `dump_pause` would not have written."""
    document = _load(text, _PAUSE)
    agent = document["agent"]
    if not (isinstance(agent, list) and len(agent) == 2 and all(isinstance(part, str) for part in agent)):
        raise BadRecord("agent: not a namespace and a name")
    if not isinstance(document["calls"], list):
        raise BadRecord("calls: not a list")
    document["agent"] = AgentId(*agent)
    document["calls"] = tuple(_call(_typed(call, _CALL)) for call in document["calls"])
    document["path"] = tuple(document["path"])
    return Pause(**document)


def dump_verdict(record: VerdictRecord) -> str:
    """The one text of a verdict that is stored and sealed."""
    return _dump({name: getattr(record, name) for name in _VERDICT})


def load_verdict(text: str) -> VerdictRecord:
    """Raises `BadRecord` for anything that `dump_verdict` would not have written."""
    document = _load(text, _VERDICT)
    document["verdict"] = _word(Verdict, document["verdict"])
    return VerdictRecord(**document)


def _call(document: dict[str, Any]) -> PausedCall:
    document["kind"] = _word(Kind, document["kind"])
    document["gated_by"] = tuple(document["gated_by"])
    document["editable"] = tuple(document["editable"])
    return PausedCall(**document)


def _word(words: Any, word: str) -> Any:
    try:
        return words(word)
    except ValueError as error:
        raise BadRecord(str(error)) from None


def _dump(document: dict[str, Any]) -> str:
    return _encode(document)


def _load(text: str, shape: dict[str, str]) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"not JSON ({error})") from None
    return _typed(document, shape)


def _typed(document: Any, shape: dict[str, str]) -> dict[str, Any]:
    if not isinstance(document, dict) or document.keys() != shape.keys():
        raise BadRecord(f"not an object with exactly {', '.join(shape)}")
    for name, kind in shape.items():
        if not _IS[kind](document[name]):
            raise BadRecord(f"{name}: not a {kind}")
    return document


_encode = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode

_IS: dict[str, Any] = {
    "text": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "count": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "flag": lambda value: isinstance(value, bool),
    "list of texts": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "record": lambda value: True,  # looked at by its own loader
}
_KINDS = {
    "str": "text",
    "Kind": "text",
    "Verdict": "text",
    "float": "number",
    "int": "count",
    "bool": "flag",
    "tuple[str, ...]": "list of texts",
    "AgentId": "record",
    "tuple[PausedCall, ...]": "record",
}


def _shape(record: type) -> dict[str, str]:
    return {field.name: _KINDS[str(field.type)] for field in fields(record)}


_PAUSE, _CALL, _VERDICT = _shape(Pause), _shape(PausedCall), _shape(VerdictRecord)
