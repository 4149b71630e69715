# SPDX-License-Identifier: Apache-2.0
"""Actions of users on their servers, and notifications to managers."""

import dataclasses

from blazar_sched.domain import window
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.flavor import PREEMPTIBLE
from blazar_sched.domain.reservation import LIFETIME_ON_END
from tests.simulation import features
from tests.simulation import scheduler
from tests.simulation.actions import registry

SIZES = (1, 1, 2, 4, 8)


@registry.action(5)
def boot(world):
    """Boot a server without an end."""
    world.boot(request(world))


@registry.action(16)
def boot_bound(world):
    """Boot a server in an open reservation.

    The server names the reservation by its flavor, by a hint, or not at all if
    the reservation draws the servers of its project.
    """
    open_ = _open(world)
    if open_:
        boot_in(world, world.random.choice(open_))


def _open(world):
    """Return the reservations that are open now."""
    return [
        r for r in world.book.reservations.values()
        if r.opened and r.instance_id is None and not r.is_over(world.time)
    ]


def boot_in(world, reservation):
    project = world.random.choice(sorted(reservation.projects))
    flavor = world.cloud.flavors_.get(reservation.id)
    if (
        flavor is not None
        and project in world.cloud.projects[reservation.id]
        and world.happens(0.7)
    ):
        world.boot(request(world, project, flavor))
    elif reservation.magnetic and world.happens(0.7):
        world.boot(request(world, project))
    else:
        world.boot(request(world, project, hint=reservation.id))


@registry.action(6, features.LIFETIMES)
def boot_bounded(world):
    """Boot a server that declares its end and the action at the end."""
    lives = world.random.choice((60, 300, 1000, 4000))
    world.boot(request(
        world, end=world.time + lives,
        on_end=world.random.choice((None, *LIFETIME_ON_END)),
    ))


@registry.action(4, features.PREEMPTIBLE)
def boot_preemptible(world):
    world.boot(request(world, specs={PREEMPTIBLE: 'true'}))


@registry.action(2, features.FORCED)
def force(world):
    """Boot a server on a chosen host, past all filters.

    The host is often one that is reserved for the project.
    """
    open_ = [r for r in _open(world) if r.nodes]
    if open_ and world.happens(0.6):
        r = world.random.choice(open_)
        asked = request(world, world.random.choice(sorted(r.projects)))
        node = world.random.choice(sorted(r.nodes))
    else:
        asked = request(world)
        node = world.some_node()
    if scheduler.has_room(world.cloud, node, asked):
        world.put(asked, node)


@registry.action(4)
def remove(world):
    """Delete a server, as its owner."""
    server = world.some_server()
    if server is not None and server.task is None:
        world.tell(f'server {server.uuid} is removed by its owner')
        world.cloud.remove(server)


@registry.action(5, features.LIFETIMES)
def replace(world):
    """Delete a server, as its owner, and boot another server at once."""
    old = world.some_server()
    if old is None or old.task is not None:
        return
    world.tell(f'server {old.uuid} is replaced')
    world.cloud.remove(old)
    asked = world.requests[old.uuid]
    hint = world.random.choice((None, asked.reservation_id))
    world.boot(request(world, old.project_id, hint=hint))


@registry.action(2)
def move(world):
    """Move a server to another host, as an operator."""
    server = world.some_server()
    if server is None or server.node is None or server.task is not None:
        return
    node = world.place(world.requests[server.uuid], world.random.choice)
    if node not in (None, server.node):
        world.tell(f'server {server.uuid} moves to {node}')
        world.cloud.move(server, node)


@registry.action(5, features.RESIZES)
def resize(world):
    """Resize a server to another flavor on another host, as its owner.

    The flavor is that of an open reservation, or an ordinary flavor, mostly of
    the same size.
    """
    server = world.some_server()
    bound = [
        s for s in world.cloud.servers_.values()
        if world.cloud.slots_of[s.uuid]
    ]
    if bound and world.happens(0.7):
        server = world.random.choice(bound)
    if server is None or server.node is None or server.task is not None:
        return
    flavors = [
        world.cloud.flavors_[r.id] for r in _open(world)
        if r.id in world.cloud.flavors_
        and server.project_id in world.cloud.projects[r.id]
    ]
    if not flavors or world.happens(0.5):
        vcpus = world.requests[server.uuid].flavor.vcpus
        flavors = [request(
            world, vcpus=vcpus if world.happens(0.7) else None
        ).flavor]
    asked = dataclasses.replace(
        world.requests[server.uuid], flavor=world.random.choice(flavors)
    )
    node = world.admit(asked, lambda names: world.random.choice(
        [name for name in names if name != server.node] or names
    ))
    if node in (None, server.node):
        # Nova does not resize on the same host by default.
        world.let_in = None
        return
    world.tell(
        f'server {server.uuid} is resized to {asked.flavor.name} on {node}'
    )
    world.requests[server.uuid] = asked
    world.cloud.resize_server(
        server, node, asked.slots, amounts=asked.amounts,
        reservation_id=asked.claim, preemptible=asked.preemptible,
        features=asked.features,
    )
    world.check()


@registry.action(4)
def hear(world):
    """Notify a manager of a server, possibly of a deleted server."""
    known = {i.uuid for i in world.ledger.instances()}
    heard = sorted(known.union(world.cloud.servers_))
    if heard:
        world.hear(world.random.choice(heard))


@registry.action(6)
def sync(world):
    """Have a manager synchronize all servers."""
    world.quietly(world.some_member(), lambda m: m.instances.sync())


@registry.action(2)
def restore(world):
    """Have a manager unshelve the servers that were vacated."""
    world.quietly(world.some_member(), lambda m: m.restorer.step())


def request(
    world, project=None, flavor=None, hint=None, end=window.FOREVER,
    on_end=None, specs=None, vcpus=None,
):
    """Draw a request to nova-api, with the given fields.

    :param vcpus: the size; memory and disk are in proportion
    """
    if flavor is None:
        vcpus = vcpus or world.random.choice(SIZES)
        flavor = Flavor(
            f'{vcpus}', f'{vcpus}', vcpus, vcpus * 512, 1,
            extra_specs=specs or {},
        )
    return scheduler.Request(
        world.cloud.new_id(), project or world.some_project(), flavor, hint,
        end, on_end,
    )
