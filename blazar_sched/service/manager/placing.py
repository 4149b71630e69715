# SPDX-License-Identifier: Apache-2.0
"""Placing a whole lease: each reservation sees those placed before it.

The lease's allocations are tried on the replica's index, and the index is
put back as it was: only what the ledger commits may stay there.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import uuid

from blazar_sched import ext
from blazar_sched.domain import allocation as allocation_
from blazar_sched.domain import exception
from blazar_sched.domain import lease as lease_
from blazar_sched.domain import placing
from blazar_sched.domain import reservation as reservation_
from blazar_sched.domain import window as window_
from blazar_sched.replica import state

Allocations = dict[str, list[allocation_.Allocation]]


def held(replica: state.Replica, lease: lease_.Lease) -> Allocations:
    """Return what each reservation of a lease holds, by its id."""
    return {
        r.id: list(replica.held(r.id).values())
        for r in lease.reservations
    }


def place(
    replica: state.Replica,
    lease: lease_.Lease,
    window: window_.Window,
    active: bool = False,
) -> Allocations:
    """Return allocations for each reservation of a lease, by its id.

    :param lease: as it is to be; what the replica knows of it is looked past
    :param window: what is left of its own
    :param active: whether it must lose nothing of what it holds
    :raises NotEnoughHostsAvailable: if one of them finds no room
    """
    old = held(replica, lease)
    placed: Allocations = {}
    with contextlib.ExitStack() as trial:
        everything = [a for many in old.values() for a in many]
        trial.enter_context(_without(replica.index, everything))
        for r in lease.reservations:
            if r.resource_type not in reservation_.ON_HOSTS:
                placed[r.id] = []
                continue
            if not active:
                new = _choose(replica, r, window, old[r.id])
            elif r.resource_type == reservation_.PHYSICAL_HOST:
                new = _choose(replica, r, window, old[r.id])
                _check_kept(old[r.id], new)
            else:
                new = _grow(replica, r, window, old[r.id])
            trial.enter_context(_with(replica.index, new, fitting=True))
            placed[r.id] = new
    return placed


def move(old: Allocations, window: window_.Window) -> Allocations:
    """Return the same allocations over another window."""
    return {id_: _move(many, window) for id_, many in old.items()}


def _move(
    many: Iterable[allocation_.Allocation], window: window_.Window
) -> list[allocation_.Allocation]:
    return [
        dataclasses.replace(a, start=window.start, end=window.end)
        for a in many
    ]


@contextlib.contextmanager
def _with(
    index: ext.TimelineIndex,
    many: Sequence[allocation_.Allocation],
    fitting: bool,
) -> Iterator[None]:
    """Have allocations in the index for a while.

    :param fitting: whether it is known that they fit
    :raises NotEnoughHostsAvailable: if there is no room for them
    """
    try:
        index.apply(
            [state.add_allocation(a) for a in many], force=fitting
        )
    except ext.OverCapacity as e:
        raise exception.NotEnoughHostsAvailable(
            f'what the lease holds has no room in the new window: {e}',
            field='reservations',
        ) from e
    try:
        yield
    finally:
        index.apply([('remove', a.id) for a in many], force=True)


@contextlib.contextmanager
def _without(
    index: ext.TimelineIndex, many: Sequence[allocation_.Allocation]
) -> Iterator[None]:
    """Have allocations out of the index for a while."""
    index.apply([('remove', a.id) for a in many], force=True)
    try:
        yield
    finally:
        index.apply([state.add_allocation(a) for a in many], force=True)


def _new_id() -> str:
    return str(uuid.uuid4())


def _choose(
    replica: state.Replica,
    reservation: reservation_.Reservation,
    window: window_.Window,
    old: Sequence[allocation_.Allocation],
) -> list[allocation_.Allocation]:
    return placing.place(
        replica.index, replica.catalog, reservation, window, old, _new_id
    )


def _check_kept(
    old: Iterable[allocation_.Allocation],
    new: Iterable[allocation_.Allocation],
) -> None:
    lost = {a.host for a in old} - {a.host for a in new}
    if lost:
        raise exception.NotEnoughHostsAvailable(
            f'{len(lost)} hosts in use could not be kept', field='reservations'
        )


def _grow(
    replica: state.Replica,
    reservation: reservation_.Reservation,
    window: window_.Window,
    old: Sequence[allocation_.Allocation],
) -> list[allocation_.Allocation]:
    """Keep every slot of an instance reservation and place what is more."""
    kept = {a.host: a for a in _move(old, window)}
    slot = reservation.slot()
    more = reservation.parameters['amount'] - sum(
        placing.count_slots(a.amounts, slot) for a in old
    )
    with _with(replica.index, list(kept.values()), fitting=False):
        added = more and placing.place_instances(
            replica.index,
            _growing(replica, reservation, kept),
            window,
            slot,
            more,
            reservation.parameters['affinity'],
        )
    for host, count in (added or {}).items():
        base = kept.get(host) or allocation_.Allocation(
            _new_id(), reservation.id, host, window.start, window.end
        )
        amounts = {
            c: base.amounts.get(c, 0) + count * amount
            for c, amount in slot.items()
        }
        kept[host] = dataclasses.replace(base, amounts=amounts)
    return list(kept.values())


def _growing(
    replica: state.Replica,
    reservation: reservation_.Reservation,
    kept: Mapping[str, allocation_.Allocation],
) -> placing.Candidates:
    """Return the hosts on which the reservation's affinity lets it grow."""
    candidates = replica.catalog.meeting(placing.requirement(reservation))
    affinity = reservation.parameters['affinity']
    if affinity is None:
        return candidates
    return replica.catalog.among(
        uuid for uuid in candidates.hosts if (uuid in kept) is affinity
    )
