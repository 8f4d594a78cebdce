"""Would this Redis forget? One named warning for each way in which it might.

That an approved call runs at most once hangs on Redis remembering that it was started: a crash that loses the last
second of writes can run a tool twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from redis.exceptions import ResponseError

Name = Literal["Unknown", "AppendOnlyOff", "FsyncNotAlways", "Evicts", "ReplicasNotAwaited"]


@dataclass(frozen=True, slots=True)
class DurabilityWarning:
    """What can be forgotten, and what to do about it."""

    name: Name
    detail: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.name}: {self.detail} {self.remedy}"


async def check(redis: Any) -> list[DurabilityWarning]:
    """Every way in which the server behind `redis` may lose what it confirmed. Raises redis' own connection errors."""
    warnings: list[DurabilityWarning] = []
    try:
        found: dict[str, str] = {}
        for name in ("appendonly", "appendfsync", "maxmemory-policy"):  # several at once only since Redis 7
            found |= await redis.config_get(name)
        replicas = int((await redis.info("replication")).get("connected_slaves", 0))
    except ResponseError as error:  # renamed, forbidden by an access rule, or a service without CONFIG
        detail = f"Its settings cannot be read ({error}), so nobody knows what it would forget."
        return [
            DurabilityWarning("Unknown", detail, "Allow CONFIG GET and INFO, or see to appendfsync always yourself.")
        ]
    if found.get("appendonly") != "yes":
        detail = "It keeps no append-only file: a restart forgets pauses, decisions and which calls have run."
        warnings.append(DurabilityWarning("AppendOnlyOff", detail, "Set appendonly yes and appendfsync always."))
    elif (fsync := found.get("appendfsync")) != "always":
        detail = (
            f"It writes to disk with appendfsync {fsync}: a crash can forget that a call was started, and run it twice."
        )
        warnings.append(DurabilityWarning("FsyncNotAlways", detail, "Set appendfsync always."))
    if (policy := found.get("maxmemory-policy", "noeviction")) != "noeviction":
        detail = f"When memory is short it drops keys (maxmemory-policy {policy}): open pauses too."
        warnings.append(DurabilityWarning("Evicts", detail, "Set maxmemory-policy noeviction."))
    if replicas:
        detail = f"Writes are confirmed before its {replicas} replica(s) have them: a fail-over can forget the newest."
        remedy = "Keep the primary's disk through a fail-over, or accept that a call may run twice after one."
        warnings.append(DurabilityWarning("ReplicasNotAwaited", detail, remedy))
    return warnings
