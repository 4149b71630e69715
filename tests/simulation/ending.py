# SPDX-License-Identifier: Apache-2.0
"""The end of a world: without faults, all work is completed."""

from blazar_sched.domain import states
from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.request import models
from blazar_sched.parts.request.manager import LeaseRequests
from blazar_sched.parts.series import models as series_models
from blazar_sched.parts.series.manager import AllSeries
from tests import looped
from tests.simulation import features
from tests.simulation import looks
from tests.simulation.actions import hosts
from tests.simulation.cloud.migrations import VERIFY_RESIZE
from tests.simulation.promises import lease_requests
from tests.simulation.promises import registry

# The rounds in which everything must be done, and the seconds for events of
# active leases that were given up.
ROUNDS = 200
PATIENCE = 900
PAUSE = 40


def end(world):
    """Run a world to its end.

    :raises Broken: if a promise does not hold
    """
    if features.AWAY in world.features:
        hosts.change_while_away(world)
        world.check()
    _calm(world)
    _open_what_is_active(world)
    for _ in range(ROUNDS):
        next_ = world.ledger.next_event()[0] or 0
        _pass(world, max(PAUSE, next_ - world.time))
        if not _to_do(world):
            break
    else:
        raise registry.Broken(f'never done: {_to_do(world)}')
    if world.ledger.offers(None):
        raise registry.Broken(f'still held: {world.ledger.offers(None)}')
    _clean_up(world)
    _check_records(world)
    if world.cloud.leftovers():
        raise registry.Broken(f'left over: {world.cloud.leftovers()}')
    _check_replicas(world)


def _calm(world):
    """Stop all faults: all managers run again with the right time."""
    world.tell('all is calm from here on')
    world.trouble = world.crashes = 0.0
    world.cloud.trouble = world.outside.trouble = 0.0
    world.cloud.away_until = 0
    for member in world.members:
        member.paused, member.skew = False, 0
    for name in world.cloud.nodes:
        world.cloud.set_up(name, True)
    world.start_all()


def _pass(world, seconds):
    world.live(seconds)
    for member in world.members:
        member.run(lambda m: m.runner.renew())
        member.run(lambda m: m.runner.step())
    world.members[0].run(lambda m: m.instances.sync())
    world.members[0].run(lambda m: m.monitor.step())
    if features.SERIES in world.features:
        world.members[0].run(lambda m: looped.of(m, AllSeries).step())
    if features.REQUESTS in world.features:
        world.members[0].run(lambda m: looped.of(m, LeaseRequests).step())
        lease_requests.check_first(world)
    world.check()


def _open_what_is_active(world):
    """Check that given-up starts in active leases are done now."""
    until = world.time + PATIENCE
    while waiting := _half_open(world):
        if world.time > until:
            raise registry.Broken(f'never opened: {waiting}')
        _pass(world, PAUSE)


def _half_open(world):
    """Return the reservations of active leases that are not complete.

    Leases that end soon are left out.
    """
    found = []
    for lease in world.ledger.leases():
        if (
            lease.status != states.LEASE_ACTIVE
            or lease.end <= world.time + 2 * PAUSE
        ):
            continue
        for r in lease.reservations:
            if r.status == states.RESERVATION_DELETED:
                continue
            if r.status != states.RESERVATION_ACTIVE or (
                r.resource_type == 'virtual:instance'
                and not _has_slots(world, lease, r)
            ):
                found.append(r.id)
    return found


def _has_slots(world, lease, r):
    """Tell whether Nova and Placement have what the ledger says.

    A failed host that was given up may still have slots, because its servers
    hold them.
    """
    name = f'CUSTOM_RESERVATION_{r.id.upper().replace("-", "_")}'
    own = [
        a for a in world.book.allocations.values() if a.reservation_id == r.id
    ]
    nodes = world.node_names()
    held = {nodes[a.host] for a in own}
    total = sum(
        n for (node, c), n in world.cloud.slots.items()
        if c == name and node in held
    )
    return (
        world.cloud.projects.get(r.id) == {lease.project_id, *r.projects}
        and total == looks.size(r, own)
    )


def _to_do(world):
    return [each.id for each in world.ledger.run(models.waiting)] + [
        each.id for each in world.ledger.run(series_models.list_)
        if each.booked_until != FOREVER
        and each.id not in world.series.faulty
    ] + [
        (lease.id, lease.status, e.event_type, e.status)
        for lease in (*world.ledger.leases(), *world.ledger.offers(None))
        for e in lease.events
        if e.status not in (states.EVENT_DONE, states.EVENT_ERROR)
    ] + [
        (server.uuid, server.status)
        for server in world.cloud.servers_.values()
        if server.status == VERIFY_RESIZE
    ]


def _clean_up(world):
    """Delete the leases that are in ERROR or degraded, as users do."""
    for lease in world.ledger.leases():
        if lease.status == states.LEASE_ERROR:
            world.delete(lease.id)
    _pass(world, PAUSE)


def _check_records(world):
    """Check that the instance records equal Nova's servers after one sync."""
    world.members[0].run(lambda m: m.instances.sync())
    hosts = {h.hypervisor_hostname: h.uuid for h in world.ledger.hosts()}
    true = {
        s.uuid: hosts[s.node] for s in world.cloud.servers_.values()
        if s.node in hosts
    }
    found = {i.uuid: i.host for i in world.ledger.instances()}
    if found != true:
        raise registry.Broken(f'records of servers: {found}, not {true}')


def _check_replicas(world):
    for scheduler in world.schedulers:
        scheduler.pull()
        scheduler.pull()
        if not scheduler.puller.is_fresh(scheduler.puller.copy):
            raise registry.Broken('a replica stays stale')
    world.check()
