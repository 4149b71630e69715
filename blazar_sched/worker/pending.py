# SPDX-License-Identifier: Apache-2.0
"""Requests that this process has placed and the feed does not include yet.

A HostState is updated when the compute service has reported, and the feed
when the manager has polled. Until one of the two includes an instance, or
`until` has come, the instance counts by the record kept here.
"""

from collections.abc import Callable
import dataclasses
import threading
import time

from blazar_sched.replica import state
from blazar_sched.worker.request import Request


@dataclasses.dataclass(frozen=True, slots=True)
class PendingInstance:
    """A request that was given a host; `until` is in monotonic seconds."""

    host: str
    request: Request
    until: float


class Pending:
    """The requests that were placed; safe to share between threads.

    :param monotonic: returns seconds of a clock that never goes back
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._placed: dict[str, PendingInstance] = {}

    def __bool__(self) -> bool:
        return bool(self._placed)

    def add(self, host: str, request: Request, ttl: float) -> None:
        """Note that an instance has been placed on a host.

        The last host counts, because an instance may be placed again.
        """
        until = self._monotonic() + ttl
        with self._lock:
            self._placed[request.instance_uuid] = PendingInstance(
                host, request, until
            )

    def by_host(
        self, replica: state.Replica
    ) -> dict[str, list[PendingInstance]]:
        """Return the placed requests that still count; forget the others.

        :param replica: the replica that the feed maintains
        """
        if not self._placed:
            return {}
        found: dict[str, list[PendingInstance]] = {}
        now = self._monotonic()
        with self._lock:
            for uuid, placed in tuple(self._placed.items()):
                known = replica.instances.get(uuid)
                there = known is not None and known.host == placed.host
                if there or placed.until <= now:
                    del self._placed[uuid]
                else:
                    found.setdefault(placed.host, []).append(placed)
        return found
