# SPDX-License-Identifier: Apache-2.0
"""Servers are where their paths lead, and nobody else has the room there."""

import dataclasses
import datetime
import itertools

from blazar_sched.domain import states
from blazar_sched.domain import window
from tests.simulation import features
from tests.simulation import history
from tests.simulation import occupancy
from tests.simulation import routes
from tests.simulation.promises import registry


@registry.promise_of_ledger()
def a_path_leads_from_where_the_server_is(world):
    """A path leads from the recorded host to the server's end, and no gap.

    Only servers that exist in the ledger and can be moved have a path. A path
    that was planned late has less time than the lead for its first move.
    """
    hosts = {host.uuid for host in world.ledger.hosts()}
    for each in world.book.instances.values():
        path = each.path
        if not path:
            continue
        if (
            path[0].host != each.host or path[-1].end != each.end
            or not 1 < len(path) <= world.setting.moves + 1
            or not all(stay.host in hosts for stay in path)
            or any(
                not 0 <= before.end - after.start
                <= world.setting.lead_of(each.movable)
                or after.host == before.host
                for before, after in itertools.pairwise(path)
            )
        ):
            yield f'the path of {each} is not whole'
        if each.preemptible or each.claim or not each.movable:
            yield f'{each} has a path'


@registry.promise_of_ledger()
def a_new_path_has_room(world):
    """All stays of a new path have room beside all that was booked before.

    Servers that were recorded since have come by themselves: nobody has
    booked their room. A path is not new if only its last stay ends earlier.
    """
    if world.setting is None:
        return
    for each in world.book.instances.values():
        before = tuple(
            dataclasses.replace(stay, end=min(stay.end, each.end))
            for stay in world.paths.get(each.uuid, ())
        )
        if each.path and each.path[1:] in (before[1:], before[2:]):
            continue
        for stay in each.path:
            yield from _lacks(world, each, stay)


def _lacks(world, each, stay):
    node = world.cloud.name_of(stay.host)
    host = world.ledger.host(stay.host)
    known = [
        s for s in world.cloud.on(node)
        if s.uuid != each.uuid
        and world.recorded.get(s.uuid, ('', {}))[0] == stay.host
    ]
    for at, taken in occupancy.levels(
        world, node, known, max(stay.start, int(world.time)), stay.end,
        each.uuid,
    ):
        taken.update(each.amounts)
        over = {c: n for c, n in taken.items() if n > host.capacity(c)}
        if over:
            yield f'{each} is to be on {node}, and at {at} {over} are in use'


@registry.promise
def a_server_moves_to_the_booked_host(world):
    """A server that has a path moves in time, to the booked host only."""
    for migration in world.cloud.migrations[world.migrated:]:
        known = migration.record
        if known is None or not known.path:
            continue
        stay = known.relocations[0]
        if migration.target is None and known.leaves_at <= migration.at:
            # The move was late: the server has been told to go.
            continue
        booked = world.cloud.name_of(stay.host)
        if migration.target != booked or migration.at < stay.start:
            yield f'{migration} is not to {booked} at {stay.start}'


@registry.promise
def a_server_is_stopped_when_its_owner_chooses(world):
    """A server is stopped to be moved at the last time, or as chosen."""
    for migration in world.cloud.migrations[world.migrated:]:
        known = migration.record
        if not migration.cold or known is None:
            continue
        latest = known.leaves_at - world.setting.lead
        chosen = _time(migration.chosen)
        if migration.at < min(latest, chosen):
            yield f'{migration} is before {latest} and {chosen}'


def _time(text):
    """Return the time in a text; FOREVER if there is none."""
    try:
        at = datetime.datetime.fromisoformat(text or '')
    except ValueError:
        return window.FOREVER
    return at.replace(tzinfo=datetime.UTC).timestamp()


@registry.promise
def a_server_is_let_in_where_it_is_booked(world):
    """A scheduler that knows the path lets the server move along the path."""
    for server, node in world.turned_away:
        yield f'{server} is booked on {node}, and is not let in'


@registry.promise
def a_server_with_a_path_is_left_alone(world):
    """The service removes no server from a host that will leave by itself."""
    for did in world.news:
        known = did.record
        if (
            known is not None and known.path and did.at < known.leaves_at
            and occupancy.end_of_own(world, did.server) > did.at
        ):
            yield f'{did} has a path'


@registry.promise_of_ledger()
def a_lease_is_late_only_if_a_move_failed(world):
    """Servers that have a path have left when a lease starts on their host.

    This excludes servers whose migration has failed, or was slow, or for
    which no manager could ask in time.
    """
    for lease in world.book.leases.values():
        if lease.status != states.LEASE_ACTIVE or lease.id in world.begun:
            continue
        world.begun.add(lease.id)
        for r in lease.reservations:
            for uuid in r.made.get('in_the_way', ()):
                path = world.paths.get(uuid)
                if path and path[0].end <= lease.start and not _has_excuse(
                    world, uuid, path
                ):
                    yield f'{uuid} is in the way of {r.id}, by {path}'


@registry.promise
def a_server_without_a_path_has_none(world):
    """A manager that looks finds a path for each server if there is one.

    This is checked if the look has changed nothing.
    """
    now = int(world.time)
    settled, world.settled = world.settled, None
    if settled is None or settled != (now, world.newest()):
        return
    up = {h.uuid for h in world.ledger.hosts() if h.reservable}
    shortest = world.setting.options['relocation_shortest_stay']
    for each in world.book.instances.values():
        server = world.cloud.servers_.get(each.uuid)
        if (
            each.path or not each.movable or each.host not in up
            or server is None or each.end <= now
        ):
            continue
        node = world.cloud.name_of(each.host)
        if server.node != node:
            continue
        asked = world, each.uuid, each.amounts, each.end
        by_least = routes.Search(*asked, routes.least)
        by_most = routes.Search(*asked, routes.most, each.movable)
        if by_least.until(node, now) < each.end and by_most.is_there(
            node, now, shortest
        ):
            yield f'{each} has no path, and there is one'


def _has_excuse(world, uuid, path):
    here, there, *_ = path
    slowest = max(world.setting.times)
    if world.cloud.trouble or features.AWAY in world.features:
        # A manager that got no answer asks again some time later.
        return True
    # A cold migration may begin in the last moment of the owner's choice.
    if slowest > world.setting.lead / 2 or any(
        m.uuid == uuid and m.at >= there.start
        and m.status in (history.REFUSED, history.FAILED)
        for m in world.cloud.migrations
    ):
        return True
    return not any(
        max(there.start, here.end - world.setting.lead) <= at
        <= here.end - slowest and there.host in available
        for at, available in world.looks
    )
