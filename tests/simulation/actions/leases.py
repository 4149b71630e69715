# SPDX-License-Identifier: Apache-2.0
"""Actions of projects on their leases, through the API."""

from blazar_sched.domain import states
from blazar_sched.domain.demand import Slots
from blazar_sched.domain.reservation import ON_END
from tests.simulation import features
from tests.simulation import looks
from tests.simulation.actions import registry
from tests.simulation.actions import servers
from tests.simulation.cloud import nodes

HOUR = 3600


@registry.action(14)
def create(world):
    """Request a lease."""
    draw = world.random
    start = world.time + draw.choice((0, 0, 60, 300, 900))
    end = start + draw.choice((60, 120, 600, 1500, HOUR, 3 * HOUR))
    body = {
        'start_date': looks.date(start),
        'end_date': looks.date(end),
        'reservations': [
            reservation(world) for _ in range(draw.choice((1, 1, 2)))
        ],
    }
    if world.happens(0.3):
        del body['start_date']
    ask(world, body)


@registry.action(6)
def open_now(world):
    """Request a lease that starts at once, and have the lease started."""
    world.start_all()
    hours = world.random.choice((1, 3))
    draw = world.random.choice((small, whole_host))
    ask(world, {
        'end_date': looks.date(world.time + hours * HOUR),
        'reservations': [draw(world)],
    })
    world.pass_time(1)
    world.step_all()
    world.check()


@registry.action(3)
def create_again(world):
    """Repeat a request, as a client without a response or a double click does.
    """
    if world.keys:
        world.create(world.random.choice(list(world.keys)))


@registry.action(6)
def follow_on(world):
    """Request a whole host from the moment at which another lease ends."""
    held = [
        a for _, a in sorted(world.book.allocations.items())
        if a.end > world.time
    ]
    if not held:
        return
    before = world.random.choice(held)
    node = world.cloud.name_of(before.host)
    ask(world, {
        'start_date': looks.date(before.end),
        'end_date': looks.date(before.end + HOUR),
        'reservations': [{
            **whole_host(world),
            'min': 1,
            'max': 1,
            'resource_properties': is_on(node),
        }],
    })


@registry.action(4, features.CLEANING)
def follow_together(world):
    """Request two halves of a host a minute after another lease ends there."""
    slots_ = [
        a for _, a in sorted(world.book.allocations.items())
        if a.end > world.time and not a.whole
    ]
    if not slots_:
        return
    before = world.random.choice(slots_)
    half = {
        **slots(world, nodes.VCPUS // 2, amount=1, affinity=None),
        'resource_properties': is_on(world.cloud.name_of(before.host)),
    }
    ask(world, {
        'start_date': looks.date(before.end + 60),
        'end_date': looks.date(before.end + HOUR),
        'reservations': [half, half],
    })


@registry.action(5)
def update(world):
    """Change the end or the name of a lease."""
    lease_id = world.some_lease()
    if lease_id is not None:
        end = world.time + world.random.choice((5, 120, 600, 2 * HOUR))
        world.change(lease_id, world.random.choice(
            ({'end_date': looks.date(end)}, {'name': 'renamed'})
        ))


@registry.action(5)
def move_near_end(world):
    """Extend or shorten the lease that ends next, when the end is near."""
    open_ = [
        r for r in world.book.reservations.values()
        if r.lease_id in world.promised
        and r.lease_status == states.LEASE_ACTIVE and r.end > world.time
    ]
    if not open_:
        return
    next_ = min(open_, key=lambda r: (r.end, r.id))
    if next_.end - world.time > 60 and world.happens(0.7):
        world.live(next_.end - world.time - world.random.choice((2, 30)))
        world.step_all()
    end = next_.end + world.random.choice((-1, 60, 600, HOUR))
    if end > world.time:
        world.change(next_.lease_id, {'end_date': looks.date(end)})


@registry.action(8, features.BEFORE_END)
def change_once_announced(world):
    """Extend a lease whose end was just announced, or add a reservation."""
    active = [
        lease for _, lease in sorted(world.book.leases.items())
        if lease.status == states.LEASE_ACTIVE and lease.id in world.promised
        and lease.end > world.time and lease.before_end is not None
    ]
    if not active:
        return
    lease = world.random.choice(active)
    for r in lease.reservations:
        if r.status == states.RESERVATION_ACTIVE:
            servers.boot_in(world, world.book.reservations[r.id])
    if lease.before_end >= world.time:
        world.live(lease.before_end - world.time + 1)
        world.step_all()
        world.live(30)
        world.step_all()
    end = lease.end + world.random.choice((300, HOUR))
    world.change(lease.id, world.random.choice((
        {'end_date': looks.date(end)},
        {'reservations': [{
            **small(world),
            'before_end': world.random.choice(('email', 'snapshot')),
        }]},
    )))


@registry.action(2)
def end_now(world):
    lease_id = world.some_lease()
    if lease_id is not None:
        world.change(lease_id, {'end_date': looks.date(world.time)})


@registry.action(5)
def reshape(world):
    """Add, remove, grow or shrink a reservation of a lease."""
    lease_id = world.some_lease()
    if lease_id in world.book.leases:
        reshape_lease(world, world.book.leases[lease_id])


def reshape_lease(world, lease):
    change = reservation(world)
    if lease.reservations and world.happens(0.6):
        known = world.random.choice(lease.reservations)
        change = {'id': known.id, 'remove': True}
        if isinstance(known.demand, Slots) and world.happens(0.7):
            change = {
                'id': known.id, 'amount': world.random.choice((1, 2, 3, 5)),
            }
    world.change(lease.id, {'reservations': [change]})


@registry.action(4)
def delete(world):
    lease_id = world.some_lease()
    if lease_id is not None:
        world.delete(lease_id)


@registry.action(2, features.AWAY)
def delete_failed(world):
    """Delete a lease that is degraded or in ERROR."""
    failed = sorted({
        lease.id for lease in world.book.leases.values()
        if lease.status == states.LEASE_ERROR and lease.id in world.promised
    })
    if failed:
        world.delete(world.random.choice(failed))


@registry.action(3, features.LIFETIMES)
def move_own_end(world):
    """Change the end of the lease of a server's lifetime."""
    own = sorted({
        r.lease_id for r in world.book.reservations.values()
        if r.instance_id and not r.is_over(world.time)
    })
    if own:
        end = world.time + world.random.choice((60, 1000, 2 * HOUR))
        world.change(world.random.choice(own), {'end_date': looks.date(end)})


def ask(world, body, project=None):
    """Request a lease under a key of its own.

    :param project: None for a random project
    :returns: the lease as the API shows the lease, None if no lease is created
    """
    key = f'key-{len(world.keys)}'
    named = {'name': f'lease {len(world.keys)}', **body}
    world.keys[key] = (project or world.some_project(), named)
    return world.create(key)


def reservation(world):
    """Draw a request for a reservation."""
    if world.happens(0.5):
        return whole_host(world)
    draw = world.random
    return slots(
        world, draw.choice((1, 2, 4)), draw.choice((1, 2, 5)),
        draw.choice((None, None, True, False)),
    )


def small(world):
    """Draw a request for a reservation that nearly always finds room."""
    return slots(world, vcpus=1, amount=1, affinity=None)


def slots(world, vcpus, amount, affinity):
    return {
        'resource_type': 'virtual:instance',
        'vcpus': vcpus,
        'memory_mb': 512,
        'disk_gb': 1,
        'amount': amount,
        'affinity': affinity,
        'resource_properties': '',
        **_use(world),
    }


def whole_host(world):
    least = world.random.choice((1, 1, 2))
    asked = {
        'resource_type': 'physical:host',
        'min': least,
        'max': least,
        'hypervisor_properties': '',
        'resource_properties': '',
        **_use(world),
    }
    if features.MAGNETIC in world.features and world.happens(0.6):
        asked['magnetic'] = True
    return asked


def is_on(node):
    """Return the requirement for one host."""
    return f'["==", "$hypervisor_hostname", "{node}"]'


def _use(world):
    asked = {}
    if features.ON_END in world.features:
        asked['on_end'] = world.random.choice(ON_END)
    if features.SHARING in world.features and world.happens(0.6):
        asked['projects'] = world.some_projects()
    if features.BEFORE_END in world.features:
        asked['before_end'] = world.random.choice(
            ('', 'snapshot', 'snapshot', 'email', 'webhook')
        )
    return asked
