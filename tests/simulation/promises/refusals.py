# SPDX-License-Identifier: Apache-2.0
"""No lease is refused for lack of room while there is room."""

from blazar_sched.domain import inventory
from tests.simulation import looks
from tests.simulation import occupancy
from tests.simulation.promises import registry

_WHOLE = 'physical:host'


@registry.promise
def a_refused_lease_finds_no_room(world):
    """A refused lease with one reservation, open to any host, finds no room.
    """
    asked = world.refused
    if asked is None or len(asked['reservations']) != 1:
        return
    if world.conf.manager.group_limit:
        # There may be room beyond the limit.
        return
    [r] = asked['reservations']
    if r['resource_properties']:
        return
    start = int(world.time)
    if 'start_date' in asked:
        start = max(start, looks.time(asked['start_date']))
    seconds = 60 * world.conf.manager.cleaning_time
    start -= seconds
    end = looks.time(asked['end_date']) + seconds
    rooms = {
        node: _room(world, node, r, start, end)
        for node in _open(world)
    }
    if _is_enough(r, list(rooms.values())):
        yield f'{asked} was refused, and there is room: {rooms}'


def _open(world):
    """Return the hostnames of the hosts that new leases may get."""
    return [
        host.hypervisor_hostname for host in world.ledger.hosts()
        if host.takes_leases
    ]


def _room(world, node, r, start, end):
    """Return how many hosts or instances find room on a host."""
    free = dict.fromkeys(inventory.RESOURCE_CLASSES, float('inf'))
    known = {i.uuid: i for i in world.ledger.instances()}
    for _, taken in occupancy.levels_at_most(world, node, known, start, end):
        if r['resource_type'] == _WHOLE and any(taken.values()):
            return 0
        for c in free:
            size = world.cloud.sizes[node][c].capacity
            free[c] = min(free[c], size - taken[c])
    if r['resource_type'] == _WHOLE:
        return 1
    return max(0, min(
        free[inventory.VCPU] // r['vcpus'],
        free[inventory.MEMORY_MB] // r['memory_mb'],
        free[inventory.DISK_GB] // r['disk_gb'],
    ))


def _is_enough(r, rooms):
    if r['resource_type'] == _WHOLE:
        return sum(rooms) >= r['min']
    if r['affinity'] is None:
        return sum(rooms) >= r['amount']
    if r['affinity']:
        return max(rooms, default=0) >= r['amount']
    return sum(1 for room in rooms if room) >= r['amount']
