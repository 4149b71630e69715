# SPDX-License-Identifier: Apache-2.0
"""The filters protect leases, and let servers into their own reservations."""

from collections import Counter

from tests.simulation import occupancy
from tests.simulation import routes
from tests.simulation.promises import registry


@registry.promise
def who_is_let_in_leaves_room_for_leases(world):
    """An admitted server leaves room for leases while it stays.

    This holds for a scheduler that knows the newest revision.
    """
    let_in = world.let_in
    if let_in is None or not is_newest(world, let_in.by):
        return
    server = world.cloud.servers_.get(let_in.request.uuid)
    if server is None or server.node != let_in.node:
        return
    size = world.cloud.sizes[let_in.node]
    if _is_bound(world, server):
        yield from _bound(world, server)
        return
    # A server on a whole host that its project has reserved draws on the
    # reservation without naming it, and moves within the reservation.
    known = world.book.instances.get(server.uuid)
    if any(
        (r.magnetic or let_in.moves and known and known.claim == r.id)
        and _holds(world, r, let_in.node)
        for r in occupancy.drawn_on(world, server)
    ):
        # The use of the server is counted by its reservation.
        return
    end = server.end
    if server.preemptible:
        end = world.time + 1
    if _may_go_on(world, let_in) and routes.Search(
        world, server.uuid, server.amounts, end, routes.least,
        movable=let_in.request.movable,
    ).is_there(server.node, int(world.time)):
        return
    servers = [s for s in world.cloud.on(let_in.node) if s is not server]
    for at, taken in occupancy.levels(
        world, let_in.node, servers, int(world.time), end, server.uuid,
        _leaving(world, let_in),
    ):
        taken.update(server.amounts)
        over = {c: n for c, n in taken.items() if n > size[c].capacity}
        if over:
            yield f'{server} is let in, and at {at} {over} are in use'


def _leaving(world, let_in):
    """Return the ids of the reservations that leave the host of a server."""
    if world.setting is None or _may_go_on(world, let_in):
        return ()
    host, soon = world.cloud.nodes[let_in.node].uuid, (
        world.time + world.setting.lead
    )
    return {
        r.id for r in world.book.reservations.values()
        if host in r.leavable and r.start > soon
    }


@registry.promise
def what_is_kept_has_room_now(world):
    """An admitted server leaves the room of unused units.

    Preemptible servers count, too: they do not yield to a boot.
    """
    let_in = world.let_in
    if let_in is None or not is_newest(world, let_in.by):
        return
    server = world.cloud.servers_.get(let_in.request.uuid)
    if server is None or server.node != let_in.node or (
        _is_bound(world, server)
    ):
        return
    node = world.cloud.nodes[let_in.node]
    there = world.cloud.on(let_in.node)
    taken = sum((Counter(s.amounts) for s in there), Counter())
    for a in world.book.allocations.values():
        if a.host != node.uuid or not a.start <= world.time < a.end:
            continue
        r = world.book.reservations[a.reservation_id]
        if a.whole or r.instance_id is not None:
            continue
        kept = Counter(a.amounts)
        for s in there:
            if r.owns(s, world.cloud.came.get(s.uuid, world.time)):
                kept.subtract(s.amounts)
        # What is used beyond the reservation is counted above.
        taken.update({c: max(0, n) for c, n in kept.items()})
    size = world.cloud.sizes[let_in.node]
    over = {c: n for c, n in taken.items() if n > size[c].capacity}
    if over and any(s.preemptible for s in there):
        yield f'{server} is let in on {let_in.node}, and {over} are needed'


def _may_go_on(world, let_in):
    """Tell whether the room of a server may be on other hosts later."""
    return world.setting is not None and let_in.request.movable


def _is_bound(world, server):
    """Tell whether a server has to draw on the reservation that it names.

    A server that is moved after its reservation is over counts for itself.
    """
    r = world.book.reservations.get(server.reservation_id)
    return server.reservation_id is not None and (
        not world.let_in.moves or r is None or not r.is_over(world.time)
    )


def _bound(world, server):
    """Yield the faults of a server that draws on a reservation."""
    r = world.book.reservations.get(server.reservation_id)
    if (
        r is None or not _holds(world, r, server.node)
        or server.project_id not in r.projects
    ):
        yield f'{server} is let in on what is not its own'


def _holds(world, r, node):
    """Tell whether a reservation currently has a node."""
    held = world.cloud.nodes[node].uuid, r.id
    return any(
        (a.host, a.reservation_id) == held and a.start <= world.time < a.end
        for a in world.book.allocations.values()
    )


def is_newest(world, scheduler):
    copy = scheduler.puller.copy
    if copy is None or not scheduler.puller.is_fresh(copy):
        return False
    return copy.replica.revision == world.newest()
