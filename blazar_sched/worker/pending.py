# SPDX-License-Identifier: Apache-2.0
"""Instances that workers have placed and HostStates do not include yet.

A HostState is updated when the compute service has reported, and the record in
the feed tells whether Nova names the host of the instance already. Until then,
or until `until` has come, the instance counts by the record kept here. An
instance whose record is deleted does not count any more: Nova has given the
instance up. The records kept here are those of this worker, and those that
other workers have announced.
"""

from collections.abc import Callable
import dataclasses
import threading
import time

from blazar_sched.domain.instance import Instance
from blazar_sched.replica import state


@dataclasses.dataclass(frozen=True, slots=True)
class PendingInstance:
    """An instance that was given a host.

    :ivar until: monotonic seconds
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

    def __bool__(self) -> bool:
        return bool(self._placed)

    def add(self, instance: Instance, ttl: float) -> None:
        """Note that an instance has been placed on its host.

        The last host counts, because an instance may be placed again.
        """
        until = self._monotonic() + ttl
        with self._lock:
            self._placed[instance.uuid] = PendingInstance(instance, until)

    def by_host(self, replica: state.Replica) -> dict[str, list[Instance]]:
        """Return the placed instances that still count; forget the others.

        An instance is listed under its host, and until the replica has its
        record also under the later hosts of its relocation path.

        :param replica: the replica that the feed maintains
        :returns: the instances by the uuid of the host
        """
        if not self._placed:
            return {}
        found: dict[str, list[Instance]] = {}
        now = self._monotonic()
        with self._lock:
            for uuid, placed in tuple(self._placed.items()):
                host = placed.instance.host
                known = replica.instances.get(uuid)
                there = (
                    known is not None
                    and known.host == host
                    and not known.building
                )
                gone = known is None and placed.recorded
                if there or gone or placed.until <= now:
                    del self._placed[uuid]
                    continue
                if known is not None:
                    self._placed[uuid] = dataclasses.replace(
                        placed, recorded=True
                    )
                hosts = [host]
                if known is None:
                    hosts += (s.host for s in placed.instance.relocations)
                for each in dict.fromkeys(hosts):
                    found.setdefault(each, []).append(placed.instance)
        return found
