# SPDX-License-Identifier: Apache-2.0
"""Preemptible instances that use what open reservations hold."""

from collections.abc import Iterable

from blazar_sched.domain.window import Window
from blazar_sched.placing import relocation
from blazar_sched.replica import state
from blazar_sched.replica.indexes import peaks_of
from blazar_sched.replica.indexes import SHARED
from blazar_sched.replica.indexes import WHOLE


def overfull(
    replica: state.Replica, hosts: Iterable[str], now: int
) -> dict[str, bool]:
    """Return the hosts on which preemptible instances use what is reserved.

    :param hosts: the uuids of hosts
    :returns: by the uuid of the host, whether a preemptible instance is still
        on the way to the host
    """
    with_any = [
        host for host in hosts
        if host in replica.preemptible and host in replica.hosts
    ]
    main = replica.indexes.main
    peaks = peaks_of(main, main.rows(with_any), Window(now, now + 1))
    return {
        host: any(
            replica.instances[uuid].building
            for uuid in replica.preemptible[host]
        )
        for host, whole, shared in zip(
            with_any, peaks[WHOLE], peaks[SHARED], strict=True
        )
        if whole or (shared and _is_short(replica, host, now))
    }


def _is_short(replica: state.Replica, host: str, now: int) -> bool:
    taken = relocation.taken_now(replica, host, now)
    return any(
        amount > replica.hosts[host].capacity(c) for c, amount in taken.items()
    )
