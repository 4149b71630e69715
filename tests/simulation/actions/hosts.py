# SPDX-License-Identifier: Apache-2.0
"""Actions on hosts, and on the cloud as a whole."""

from blazar_sched.domain import inventory
from blazar_sched.domain import states
from tests.simulation import features
from tests.simulation.actions import leases
from tests.simulation.actions import registry
from tests.simulation.cloud import nodes


@registry.action(4, features.FAILURES)
def fail(world):
    """Make a host fail, or recover."""
    name = world.some_node()
    world.cloud.set_up(name, not world.cloud.nodes[name].up)


@registry.action(5)
def watch(world):
    """Have a manager check which hosts are up, and heal leases."""
    world.quietly(world.some_member(), lambda m: m.monitor.step())


@registry.action(2)
def sync_hosts(world):
    """Have a manager synchronize the hosts with Nova and Placement."""
    world.quietly(world.some_member(), lambda m: m.hosts.sync())


@registry.action(4, features.LARGE)
def resize(world):
    """Resize a resource of a host to more than 2**31, or to its usual size."""
    name = world.some_node()
    large = world.random.choice((
        {}, {inventory.DISK_GB: nodes.LARGE},
        {inventory.MEMORY_MB: nodes.LARGE},
    ))
    world.tell(f'{name} has {large or "its usual size"}')
    world.cloud.resize(name, large)
    if world.happens(0.7):
        sync_hosts(world)


@registry.action(4, features.AWAY)
def go_away(world):
    """Make Nova and Placement unreachable for some time."""
    if not world.cloud.is_away:
        seconds = world.random.choice((60, 400, 1200))
        world.cloud.away_until = world.time + seconds
        world.tell(f'nova cannot be reached for {seconds} s')


@registry.action(3, features.AWAY)
def change_while_away(world):
    """Change an open lease while Nova is away, until the change is given up.
    """
    world.cloud.away_until = 0
    leases.open_now(world)
    active = [
        lease for _, lease in sorted(world.book.leases.items())
        if lease.status == states.LEASE_ACTIVE
        and lease.end > world.time + leases.HOUR / 2 and not lease.is_lifetime
    ]
    if not active:
        return
    go_away(world)
    lease = world.random.choice(active)
    if world.happens(0.7):
        world.change(lease.id, {'reservations': [leases.small(world)]})
    else:
        leases.reshape_lease(world, lease)
    for _ in range(6):
        world.live(world.random.choice((12, 25)))
        world.step_all()
