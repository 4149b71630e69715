# SPDX-License-Identifier: Apache-2.0
"""Actions around servers that are relocated."""

from blazar_sched.domain import window
from blazar_sched.domain.flavor import MOVABLE
from blazar_sched.service.upkeep.relocation import MOVE_AT
from tests.simulation import features
from tests.simulation import looks
from tests.simulation.actions import leases
from tests.simulation.actions import registry
from tests.simulation.actions import servers

SIZES = (1, 2, 2, 4, 6)


@registry.action(12, features.RELOCATION)
def boot_lasting(world):
    """Boot a server without an end, or one that lives long.

    Some of these servers cannot be live-migrated.
    """
    end = window.FOREVER
    if world.happens(0.2):
        end = world.time + world.random.choice((1000, 4000, 20000))
    specs = {} if world.happens(0.9) else {MOVABLE: 'false'}
    if features.COLD in world.features and world.cold_chance.random() < 0.5:
        specs = {MOVABLE: 'cold'}
    vcpus = world.random.choice(SIZES)
    world.boot(
        servers.request(world, end=end, specs=specs, vcpus=vcpus), heard=True
    )


@registry.action(12, features.LEAVING)
def boot_fixed(world):
    """Boot a server without an end that cannot be moved."""
    vcpus = world.random.choice(SIZES)
    world.quietly(world.some_member(), lambda m: m.leavable_hosts.step())
    world.boot(
        servers.request(world, specs={MOVABLE: 'false'}, vcpus=vcpus),
        heard=True,
    )


@registry.action(8, features.LEAVING)
def reserve_later(world):
    """Request any host at a time that leaves leases time to move."""
    start = world.time + 2 * world.setting.lead + world.random.choice(
        (600, 3600)
    )
    leases.ask(world, {
        'start_date': looks.date(start),
        'end_date': looks.date(start + world.random.choice((300, 3600))),
        'reservations': [leases.whole_host(world)],
    })


@registry.action(8, features.RELOCATION)
def reserve_occupied(world):
    """Request a host on which a server is, or another in its place."""
    there = sorted({
        s.node for s in world.cloud.servers_.values() if s.node is not None
    })
    if not there:
        return
    lead = world.setting.lead
    start = world.time + lead + world.random.choice((1, lead, 600, 1200))
    wanted = world.random.choice((
        leases.whole_host(world),
        leases.slots(world, vcpus=6, amount=1, affinity=None),
    ))
    if world.happens(0.7):
        wanted['resource_properties'] = leases.is_on(
            world.random.choice(there)
        )
        wanted |= {'min': 1, 'max': 1} if 'min' in wanted else {}
    leases.ask(world, {
        'start_date': looks.date(start),
        'end_date': looks.date(start + world.random.choice((300, 3600))),
        'reservations': [wanted],
    })


@registry.action(16, features.RELOCATION)
def reach_move(world):
    """Advance time until some time after the next move has begun."""
    starts = [each.relocations[0].start for _, each in _planned(world)]
    next_ = min((at for at in starts if at > world.time), default=None)
    if next_ is not None and next_ < world.time + leases.HOUR:
        lead = world.setting.lead
        after = world.random.choice((0, 5, lead / 2, lead, lead + 5))
        if features.COLD in world.features:
            after += world.cold_chance.choice((0, lead))
        world.live(next_ - world.time + after)
    world.step_all()


@registry.action(6, features.COLD)
def choose_time(world):
    """Choose when a server is moved, or write nonsense, as its owner."""
    told = [
        each for each in world.cloud.servers_.values()
        if MOVE_AT in each.metadata
    ]
    if told:
        server = world.cold_chance.choice(told)
        lead = world.setting.lead
        text = world.cold_chance.choice((
            'soon', *(
                looks.date(world.time + n) for n in (0, lead / 2, 9 * lead)
            ),
        ))
        world.tell(f'server {server.uuid} may be moved at {text}')
        world.cloud.set_server_metadata(server, {MOVE_AT: text})


@registry.action(4, features.RELOCATION)
def move_planned(world):
    """Move a server that has a path to another host, as an operator."""
    found = _planned(world)
    if not found:
        return
    server, known = world.random.choice(found)
    node = world.place(world.requests[server.uuid], world.random.choice)
    if server.task is None and node not in (None, server.node):
        world.tell(f'server {server.uuid} moves to {node}, beside its path')
        world.cloud.move(server, node)
        if world.happens(0.7):
            world.hear(server.uuid)


@registry.action(4, features.RELOCATION)
def remove_planned(world):
    """Delete a server that has a path, as its owner; often while it moves."""
    found = _planned(world)
    moving = [each for each in found if each[0].task is not None]
    if not found:
        return
    server, _ = world.random.choice(moving or found)
    world.tell(f'server {server.uuid} is removed by its owner')
    world.cloud.remove(server)
    if world.happens(0.7):
        world.hear(server.uuid)


@registry.action(2, features.RELOCATION)
def fail_target(world):
    """Make a host fail to which a path leads, in a world with failures."""
    if features.FAILURES not in world.features:
        return
    found = _planned(world)
    if found:
        _, known = world.random.choice(found)
        name = world.cloud.name_of(known.relocations[0].host)
        world.cloud.set_up(name, False)
        if world.happens(0.7):
            world.quietly(world.some_member(), lambda m: m.monitor.step())


@registry.action(2, features.RELOCATION)
def close(world):
    """Close a host to servers that are relocated, or open a closed host."""
    hosts = [host for host in world.ledger.hosts() if not host.spare]
    if not hosts:
        return
    closed = [h for h in hosts if not h.takes_relocated]
    host = world.random.choice(closed or hosts)
    change = {'disabled': False, 'unbounded': None}
    if not closed:
        change = world.random.choice((
            {'disabled': True}, {'unbounded': 'never'},
            {'unbounded': 'relocate'},
        ))
    world.ask('PUT', f'/v1/os-hosts/{host.id}', change, 'admin')


def _planned(world):
    """Return the servers that have a path, each with its record."""
    found = []
    for known in world.ledger.instances():
        server = world.cloud.servers_.get(known.uuid)
        if known.path and server is not None and server.task != 'deleting':
            found.append((server, known))
    return found
