# SPDX-License-Identifier: Apache-2.0
"""What Nova's HostState says is used of a host now, by resource class.

It reads the attributes of nova.scheduler.host_manager.HostState, None as 0,
and notes one of its own there; it does not import Nova.
"""

from __future__ import annotations

from typing import Any


def used_now(host_state: Any, resource_class: str) -> int:
    """Return what is used of a class; 0 of one that HostState has not."""
    match resource_class:
        case 'VCPU':
            return host_state.vcpus_used or 0
        case 'MEMORY_MB':
            total = host_state.total_usable_ram_mb or 0
            return total - (host_state.free_ram_mb or 0)
        case 'DISK_GB':
            return _disk_gb(host_state)
        case _:
            return 0


def _disk_gb(host_state: Any) -> int:
    # Nova's consume_from_request lowers free_disk_mb and leaves disk_mb_used
    # as it is. A HostState lives for one request, so what its free disk has
    # lost since it was first seen here is what the request has consumed.
    free = host_state.free_disk_mb or 0
    first = getattr(host_state, 'blazar_sched_seen', None)
    if first is None:
        host_state.blazar_sched_seen = first = free
    used = (host_state.disk_mb_used or 0) + max(first - free, 0)
    return -(-used // 1024)
