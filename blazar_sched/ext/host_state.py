# SPDX-License-Identifier: Apache-2.0
"""What Nova's HostState says is used of a host now, by resource class.

It reads the attributes of nova.scheduler.host_manager.HostState, None as 0,
and notes one of its own there; it does not import Nova.
"""

from __future__ import annotations

import array
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Protocol

from blazar_sched.ext import errors


class OnHost(Protocol):
    """What is known of a host and its instances: see replica.present."""

    room: list[int]
    reserved: int
    instances: dict[str, Any]
    given_back: set[str]


def used_now(host_state: Any, resource_class: str) -> int:
    """Return what is used of a class; 0 of one that HostState has not.

    :raises InvalidAmount: a figure is no integer, or beyond FIGURE_LIMIT
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
    host_states: Sequence[Any],
    on_hosts: Mapping[str, OnHost],
    room: array.array[int],
    width: int,
) -> list[int]:
    """Return the positions of the HostStates that need a closer look.

    A HostState confirms what is known of its host if it leaves no more room
    than all of the host's instances do, names every instance that something
    is given back for, and, on a host with `reserved`, no unknown one. A host
    of which nothing is known needs no look.

    :param on_hosts: what is known of hosts, by uuid
    :param room: what each HostState leaves, as of `TimelineIndex.headroom`
    :param width: how many resource classes `room` has
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
    # Nova's consume_from_request lowers free_disk_mb and leaves disk_mb_used
    # as it is. A HostState lives for one request, so what its free disk has
    # lost since it was first seen here is what the request has consumed.
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
