# SPDX-License-Identifier: Apache-2.0
"""An accepted lease exists as it was accepted, until its end."""

from blazar_sched.domain import states
from tests.simulation import looks
from tests.simulation.promises import registry

_OPEN = (states.LEASE_PENDING, states.LEASE_ACTIVE)


@registry.promise_of_ledger(changes=4)
def the_ledger_is_sound(world):
    # As `db check` does; maintenances are looked at by their own promise,
    # which knows how far the clocks of managers may differ.
    yield from world.ledger.check(int(world.time))


@registry.promise_of_ledger()
def an_accepted_lease_is_there(world):
    leases = world.book.leases
    for id_, known in world.promised.items():
        lease = leases.get(id_)
        if lease is None:
            if 'gone' not in known and 'unsure' not in known:
                yield f'the accepted lease {id_} is not there'
            known['gone'] = True
        elif 'gone' in known:
            # A lease that cannot be ended has a status that says so.
            if lease.status not in (states.LEASE_DELETING, states.LEASE_ERROR):
                yield f'the deleted lease {id_} is still there'
        elif 'unsure' not in known:
            yield from _as_promised(world, lease, known)


def _as_promised(world, lease, known):
    given = looks.shown(lease.start), looks.shown(lease.end)
    if given != known['window']:
        yield f'{lease.id}: promised {known["window"]}, is {given}'
    if (
        lease.status == states.LEASE_TERMINATED
        and lease.end > world.time
    ):
        yield f'{lease.id} was ended ahead of its end'
    if lease.status not in _OPEN:
        return
    for reservation in lease.reservations:
        own = [
            a for a in world.book.allocations.values()
            if a.reservation_id == reservation.id
        ]
        if reservation.status == states.RESERVATION_DELETED:
            continue
        if looks.size(reservation, own) < looks.wanted(reservation) and (
            not reservation.missing_resources or not lease.degraded
        ):
            yield f'{reservation.id} has only {own}'
        # A changed active lease is placed anew from now on.
        if any(a.start < lease.start or a.end != lease.end for a in own):
            yield f'{reservation.id} of {lease} has {own}'
