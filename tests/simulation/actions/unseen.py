# SPDX-License-Identifier: Apache-2.0
"""Actions on servers and hosts that no manager has seen yet."""

from blazar_sched.domain import flavor
from blazar_sched.domain import inventory
from blazar_sched.domain import reservation
from tests.simulation import features
from tests.simulation import looks
from tests.simulation.actions import leases
from tests.simulation.actions import registry
from tests.simulation.actions import servers
from tests.simulation.cloud import nodes

HALF = nodes.VCPUS // 2


@registry.action(4, features.UNSEEN)
def end_late(world):
    """Boot servers of a project whose lease has ended without its end event.

    The event is late because no manager runs it, or Nova is unreachable.
    """
    own = _open_host(world, 120)
    if own is None:
        return
    world.live(own.end + 1 - world.time)
    if world.happens(0.3):
        _stay_away(world)
        world.step_all()
        world.check()
    _come_after(world, own)


@registry.action(4, features.UNSEEN)
def delete_late(world):
    """Boot servers of a project while its lease is being deleted."""
    own = _open_host(world, leases.HOUR)
    if own is None:
        return
    _stay_away(world)
    world.delete(own.lease_id)
    world.check()
    world.pass_time(2)
    _come_after(world, own)


@registry.action(4, features.UNSEEN)
def come_before(world):
    """Boot a server, without a record, on a host that is then reserved."""
    node = _emptiest(world)
    there = servers.request(world)
    if world.boot(there, node, heard=False) is None:
        return
    node = world.cloud.servers_[there.uuid].node
    if _open_host(world, 300, there.project_id, leases.is_on(node)):
        _look(world)
        servers.sync(world)


@registry.action(4, features.LIFETIMES)
def follow_lifetime(world):
    """Start a lease on a host at the end of the lifetime of a server there."""
    world.start_all()
    end = world.time + 300
    there = servers.request(
        world, end=end, on_end=world.random.choice(reservation.LIFETIME_ON_END)
    )
    node = world.boot(there)
    if node is None:
        return
    world.hear(there.uuid)
    leases.ask(world, {
        'start_date': looks.date(end),
        'end_date': looks.date(end + leases.HOUR),
        'reservations': [{
            **leases.whole_host(world), 'min': 1, 'max': 1,
            'resource_properties': leases.is_on(node),
        }],
    })
    world.live(end + world.random.choice((-1, 1)) - world.time)
    _look(world)


@registry.action(4, features.UNSEEN)
def replace_unseen(world):
    """Replace a server on a host just before a lease starts there.

    The new server takes all free capacity. No manager looks in between.
    """
    world.start_all()
    node = _emptiest(world)
    start = world.time + leases.HOUR
    lease = leases.ask(world, {
        'start_date': looks.date(start),
        'end_date': looks.date(start + leases.HOUR),
        'reservations': [{
            **leases.slots(world, vcpus=HALF, amount=1, affinity=None),
            'resource_properties': leases.is_on(node),
        }],
    })
    if lease is None:
        return
    old = _who_yields(world)
    if world.boot(old, node) != node:
        return
    world.hear(old.uuid)
    world.check()
    for scheduler in world.schedulers:
        world.pull(scheduler)
    _leave(world, old, node)
    free = nodes.VCPUS - _taken(world, node)
    if free:
        world.boot(servers.request(world, vcpus=free), node)


def _open_host(world, seconds, project=None, properties=''):
    """Return a reservation of whole hosts that was just started, or None.

    None if it was not.
    """
    world.start_all()
    lease = leases.ask(world, {
        'end_date': looks.date(world.time + seconds),
        'reservations': [{
            **leases.whole_host(world), 'min': 1, 'max': 1,
            'resource_properties': properties,
        }],
    }, project)
    if lease is None:
        return None
    world.pass_time(1)
    world.step_all()
    world.check()
    own = world.book.reservations[lease['reservations'][0]['id']]
    if not own.opened:
        return None
    servers.boot_in(world, own)
    return own


def _stay_away(world):
    """Make Nova unreachable for a moment."""
    world.cloud.away_until = max(world.cloud.away_until, world.time + 30)


def _come_after(world, own):
    """Boot servers where a reservation was, before the end event is done."""
    for node in sorted(own.nodes):
        _move_to(world, own.project_id, node)
        world.boot(servers.request(world, own.project_id), node)
    for _ in range(3):
        _look(world)


def _look(world):
    world.pass_time(15)
    world.step_all()
    world.check()


def _move_to(world, project, node):
    """Move a server of a project from another node to a node."""
    for id_, server in sorted(world.cloud.servers_.items()):
        if (
            server.project_id == project
            and server.node not in (None, node)
            and server.task is None
            and world.place(world.requests[id_], _rather(node)) == node
        ):
            world.tell(f'server {id_} moves to {node}')
            world.cloud.move(server, node)
            return


def _rather(node):
    """Return a function that prefers the nodes in `some`."""
    return lambda found: node if node in found else found[0]


def _emptiest(world):
    return min(sorted(world.cloud.nodes), key=lambda n: _taken(world, n))


def _taken(world, node):
    """Return how many VCPUs servers use on a node."""
    return sum(s.amounts[inventory.VCPU] for s in world.cloud.on(node))


def _who_yields(world):
    """Draw a request for a server that yields when the lease starts."""
    if features.PREEMPTIBLE in world.features and world.happens(0.5):
        return servers.request(
            world, specs={flavor.PREEMPTIBLE: 'true'}, vcpus=HALF
        )
    return servers.request(
        world, end=world.time + leases.HOUR // 2, vcpus=HALF
    )


def _leave(world, request, node):
    """Delete a server, or move the server to another host."""
    server = world.cloud.servers_[request.uuid]
    other = None
    if world.happens(0.3):
        other = world.place(request, world.random.choice)
    if other not in (None, node):
        world.tell(f'server {server.uuid} moves to {other}')
        world.cloud.move(server, other)
    else:
        world.tell(f'server {server.uuid} is removed by its owner')
        world.cloud.remove(server)
    world.check()
