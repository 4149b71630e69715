# SPDX-License-Identifier: Apache-2.0
"""The future use of a host at each time, computed the slow way."""

from collections import Counter
import dataclasses

from blazar_sched.domain import inventory
from blazar_sched.domain import reservation
from blazar_sched.domain import states
from blazar_sched.domain import window


@dataclasses.dataclass(frozen=True)
class _Gone:
    """A server that has left the host but still has a record there."""

    uuid: str
    amounts: dict


@dataclasses.dataclass(frozen=True)
class _LaterStay:
    """A later stay of a path, counted like the allocation of a lease."""

    uuid: str
    amounts: dict
    start: int
    end: int
    whole: bool = False
    reservation_id: str | None = None


@dataclasses.dataclass(frozen=True)
class _Closed:
    """A closed window, counted like the allocation of the whole host."""

    start: int
    end: int
    whole: bool = True
    reservation_id: str | None = None


def levels(world, node, servers, start, end, own=None, leaving=()):
    """Yield (time, amounts in use) for each time in a window.

    The times are those at which something is known to change.

    :param servers: the servers that are known on the host
    :param own: the uuid of a server whose later stays are not counted
    :param leaving: the ids of reservations that are not counted
    """
    host = world.cloud.nodes[node].uuid
    stays = {s.uuid: stays_until(world, s) for s in servers}
    here = {s.uuid for s in servers}
    later = [s for s in later_stays(world, host) if s.uuid not in (own, *here)]
    yield from _levels(world, node, later, servers, stays, start, end, leaving)


def held(world, node, allocation, amounts):
    """Return amounts on a host, or the whole host that an allocation has."""
    if not allocation.whole:
        return amounts
    return {
        c: world.cloud.sizes[node][c].capacity
        for c in inventory.RESOURCE_CLASSES
    }


def later_stays(world, host):
    """Return the stays on a host that are booked for servers elsewhere."""
    return [
        _LaterStay(each.uuid, each.amounts, stay.start, stay.end)
        for each in world.book.instances.values()
        for stay in each.relocations
        if stay.host == host
    ]


def _levels(world, node, later, servers, stays, start, end, leaving=()):
    host = world.cloud.nodes[node].uuid
    booked = [
        *(
            a for a in world.book.allocations.values()
            if a.host == host and a.reservation_id not in leaving
        ),
        *later,
        *(
            _Closed(each.start, each.end)
            for each in world.book.closed.get(host, ())
        ),
    ]
    times = {start}
    times.update(a.start for a in booked)
    times.update(a.end for a in booked)
    times.update(stays.values())
    for at in sorted(t for t in times if start <= t < end):
        yield at, _level(world, node, booked, servers, stays, at)


def levels_at_most(world, node, known, start, end, own=None):
    """Yield (time, the most that may be counted as in use), like `levels`.

    This counts each server that has a record on the host. A server whose
    record is out of date, or whose end has passed, may be counted for ever.

    :param known: the records by uuid
    :param own: as of `levels`
    """
    host = world.cloud.nodes[node].uuid
    servers, stays = [], {}
    for each in known.values():
        if each.host != host or each.preemptible:
            continue
        server = world.cloud.servers_.get(each.uuid)
        if server is None or server.node != node:
            servers.append(_Gone(each.uuid, each.amounts))
            stays[each.uuid] = window.FOREVER
        else:
            servers.append(server)
            until = stays_until(world, server)
            stays[each.uuid] = until if until > world.time else window.FOREVER
    later = [s for s in later_stays(world, host) if s.uuid != own]
    yield from _levels(world, node, later, servers, stays, start, end)


def stays_until(world, server):
    """Return until when a server stays, as far as anyone can know.

    A server that should have left by now, or that yields, is not counted.
    """
    if server.preemptible:
        return 0
    own = end_of_own(world, server)
    if own <= world.time:
        return 0
    ends = [own, _leaves_at(world, server)]
    for r in drawn_on(world, server):
        if not r.is_over(world.time):
            ends.append(r.end)
        elif r.on_end != reservation.KEEP or not _lets_go(world, r):
            ends.append(0)
    return min(ends)


def _leaves_at(world, server):
    """Return when a server leaves its host by its path."""
    known = world.book.instances.get(server.uuid)
    if known is None or world.cloud.nodes[server.node].uuid != known.host:
        return window.FOREVER
    return known.leaves_at


def _lets_go(world, r):
    """Tell whether the stay of servers after a reservation is known.

    The stay is known once a manager begins the end; if the manager may be
    killed then, once the end is done.
    """
    if r.gone or r.lease_status == states.LEASE_TERMINATED:
        return True
    return r.lease_status != states.LEASE_ACTIVE and not (
        world.trouble or world.crashes
    )


def end_of_own(world, server):
    """Return the end of a server: declared, or the end of its lease."""
    own = world.book.reservations.get(reservation.lifetime_id(server.uuid))
    if own is None:
        return server.end
    return own.end if own.over_at is None else own.over_at


def drawn_on(world, server):
    """Yield the reservations against which a server counts."""
    if isinstance(server, _Gone):
        return
    yield from world.book.of(
        server, world.cloud.came.get(server.uuid, world.time)
    )


def _level(world, node, booked, servers, stays, at):
    taken = Counter()
    inside = set()
    for a in booked:
        if a.start <= at < a.end:
            inside.add(a.reservation_id)
            taken.update(held(world, node, a, {} if a.whole else a.amounts))
    for s in servers:
        if at < stays[s.uuid] and not any(
            r.id in inside for r in drawn_on(world, s)
        ):
            taken.update(s.amounts)
    return taken
