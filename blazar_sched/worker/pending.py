# SPDX-License-Identifier: Apache-2.0
"""Instances that workers have placed and HostStates do not include yet.

A HostState is updated when the compute service has reported, and the record in
the feed tells whether Nova names the host of the instance already. Until then
the instance counts by the record kept here, for each figure that nobody else
counts: see worker.consumption. An instance whose record is deleted does not
count any more: Nova has given the instance up. The records kept here are those
of this worker, and those that other workers have announced.

An instance of which no record comes is forgotten after its time to live. Only
time in which the replica follows the ledger counts as such: while no manager
answers, no record can come, and the replica may be used for decisions.
"""

from collections.abc import Callable
import dataclasses
import threading
import time

from blazar_sched.domain.instance import Instance
from blazar_sched.replica import state

# The most seconds between two refreshes in which the replica counts as
# refreshed.
MAX_REFRESH_INTERVAL = 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class PendingInstance:
    """An instance that was given a host.

    :ivar until: seconds of the time in which the replica was refreshed
    :ivar recorded: whether a replica has had a record of the instance
    """

    instance: Instance
    until: float
    recorded: bool = False


class Pending:
    """The instances that were placed; safe to share between threads.

    :param monotonic: returns seconds of a clock that never goes back
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._placed: dict[str, PendingInstance] = {}
        # When the replica was refreshed last, and for how long it has been.
        self._refreshed_at = float('-inf')
        self._followed = 0.0

    def __bool__(self) -> bool:
        return bool(self._placed)

    def add(self, instance: Instance, ttl: float) -> None:
        """Note that an instance has been placed on its host.

        The last host counts, because an instance may be placed again.
        """
        with self._lock:
            until = self._followed + self._since_refresh() + ttl
            self._placed[instance.uuid] = PendingInstance(instance, until)

    def forget(self, uuid: str) -> None:
        """Count an instance no more, as its record was deleted.

        The record may have come and gone between two uses of the replica.
        """
        with self._lock:
            self._placed.pop(uuid, None)

    def refresh(self) -> None:
        """Note that the replica has all changes of the ledger up to now."""
        with self._lock:
            self._followed += self._since_refresh()
            self._refreshed_at = self._monotonic()

    def _since_refresh(self) -> float:
        since = self._monotonic() - self._refreshed_at
        return min(since, MAX_REFRESH_INTERVAL)

    def by_host(self, replica: state.Replica) -> dict[str, list[Instance]]:
        """Return the placed instances that still count; forget the others.

        An instance is listed under its host, and until the replica has its
        record there also under the later hosts of its relocation path.

        :param replica: the replica that the feed maintains
        :returns: the instances by the uuid of the host
        """
        if not self._placed:
            return {}
        found: dict[str, list[Instance]] = {}
        with self._lock:
            for uuid, placed in tuple(self._placed.items()):
                known = replica.instances.get(uuid)
                gone = known is None and placed.recorded
                if (
                    gone
                    or placed.until <= self._followed
                    or _is_complete(placed.instance, known)
                ):
                    del self._placed[uuid]
                    continue
                if known is not None and not placed.recorded:
                    self._placed[uuid] = dataclasses.replace(
                        placed, recorded=True
                    )
                host, path = placed.instance.host, placed.instance.relocations
                found.setdefault(host, []).append(placed.instance)
                if path and (known is None or known.host != host):
                    for later in {stay.host for stay in path} - {host}:
                        found.setdefault(later, []).append(placed.instance)
        return found


def _is_complete(placed: Instance, known: Instance | None) -> bool:
    """Tell whether a record has all that a placed instance counts.

    The record of an instance that is resized on its host has less at first.
    """
    return (
        known is not None
        and known.host == placed.host
        and not known.building
        and all(
            known.amounts.get(name, 0) >= amount
            for name, amount in placed.amounts.items()
        )
    )
