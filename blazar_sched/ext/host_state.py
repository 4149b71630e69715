# SPDX-License-Identifier: Apache-2.0
"""The usage of a host by resource class, as Nova's HostState reports it.

The attributes of nova.scheduler.host_manager.HostState are read, None as 0,
and one attribute is added: ``blazar_sched_seen``. Nova is not imported.
"""

from __future__ import annotations

import array
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Protocol

from blazar_sched.ext import errors


class HostState(Protocol):
    """What is read of nova.scheduler.host_manager.HostState.

    Nova may have None in place of a figure, and of `instances`.
    """

    uuid: str
    nodename: str
    vcpus_used: int
    total_usable_ram_mb: int
    free_ram_mb: int
    free_disk_mb: int
    disk_mb_used: int
    instances: Collection[str] | None


class OnHost(Protocol):
    """What a replica knows about a host: see replica.present."""

    room: list[int]
    reserved: int
    instances: dict[str, Any]
    given_back: set[str]


def used_now(host_state: HostState, resource_class: str) -> int:
    """Return the usage of a class; 0 for a class that HostState lacks.

    :raises InvalidAmount: a figure is not an integer or above FIGURE_LIMIT
    """
    match resource_class:
        case 'VCPU':
            return _figure(host_state, 'vcpus_used')
        case 'MEMORY_MB':
            total = _figure(host_state, 'total_usable_ram_mb')
            return total - _figure(host_state, 'free_ram_mb')
        case 'DISK_GB':
            return _disk_gb(host_state)
        case _:
            return 0


def unconfirmed(
    host_states: Sequence[HostState], on_hosts: Mapping[str, OnHost],
    room: array.array[int], width: int,
) -> list[int]:
    """Return the positions of the HostStates that contradict the replica.

    A HostState confirms what the replica knows about the host if it leaves no
    more room than the known instances do, lists every instance whose usage is
    given back, and, on a host with `reserved`, lists no unknown instance. The
    HostState of a host that is not in `on_hosts` is never returned.

    :param on_hosts: what the replica knows about hosts, by UUID
    :param room: the room of each HostState, from `TimelineIndex.headroom`
    :param width: the number of resource classes in `room`
    """
    found = []
    for position, state in enumerate(host_states):
        on = on_hosts.get(state.uuid)
        if on is None:
            continue
        named = state.instances or ()
        left = room[position * width:(position + 1) * width]
        if (
            any(map(int.__gt__, left, on.room))
            or any(uuid not in named for uuid in on.given_back)
            or on.reserved
            and any(uuid not in on.instances for uuid in named)
        ):
            found.append(position)
    return found


def _disk_gb(host_state: Any) -> int:
    # Nova's consume_from_request decreases free_disk_mb but does not change
    # disk_mb_used. A HostState exists for one request only, so the decrease
    # of free_disk_mb since it was first read is the usage of that request.
    free = _figure(host_state, 'free_disk_mb')
    first = getattr(host_state, 'blazar_sched_seen', None)
    if first is None:
        host_state.blazar_sched_seen = first = free
    used = _figure(host_state, 'disk_mb_used') + max(first - free, 0)
    return -(-used // 1024)


def _figure(host_state: Any, name: str) -> int:
    value = getattr(host_state, name)
    if value is None:
        return 0
    limit = errors.FIGURE_LIMIT
    if type(value) is not int or not -limit <= value <= limit:
        raise errors.InvalidAmount(name, value)
    return value
