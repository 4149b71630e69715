# SPDX-License-Identifier: Apache-2.0
"""Placing a whole lease: each reservation sees those placed before it.

The lease's allocations are tried on the replica's indexes, and those are put
back as they were: only what the ledger commits may stay there.
"""

from collections.abc import Collection
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
    old: Allocations | None = None,
    active: bool = False,
    settled: Collection[str] = (),
    apart: int = 0,
) -> Allocations:
    """Return allocations for each reservation of a lease, by its id.

    :param lease: as it is to be
    :param window: what is left of its own
    :param old: what it holds, which is looked past; of a reservation that it
        has no more too, unless it is active
    :param active: whether it must lose nothing of what it holds
    :param settled: the ids of reservations that keep what they hold, for as
        long as the lease still lasts
    :param apart: seconds that what is placed keeps from all else on a host
    :raises NotEnoughHostsAvailable: if one of them finds no room
    """
    old = old or {}
    placed: Allocations = {r.id: [] for r in lease.reservations}
    with contextlib.ExitStack() as trial:
        if not active:
            # They may change places.
            everything = [a for many in old.values() for a in many]
            trial.enter_context(_without(replica, everything))
        # What is settled is not there for the others to take.
        for r in sorted(lease.reservations, key=lambda r: r.id not in settled):
            if r.resource_type not in reservation_.ON_HOSTS:
                continue
            mine = old.get(r.id, [])
            if active:
                trial.enter_context(_without(replica, mine))
            if r.id in settled:
                new = _cut(mine, lease.window)
            elif active and mine:
                new = _keep(replica, r, lease.project_id, window, mine, apart)
            else:
                new = _choose(
                    replica, r, lease.project_id, window, mine, apart
                )
            trial.enter_context(_with(replica, new, fitting=True))
            placed[r.id] = new
    return placed


def _cut(
    many: Iterable[allocation_.Allocation], window: window_.Window
) -> list[allocation_.Allocation]:
    """Return what of the allocations is inside a window.

    Of one that would begin only after it, the window's last second.
    """
    return [
        dataclasses.replace(
            a,
            start=max(window.start, min(a.start, window.end - 1)),
            end=window.end,
        )
        for a in many
    ]


def _move(
    many: Iterable[allocation_.Allocation], window: window_.Window
) -> list[allocation_.Allocation]:
    return [
        dataclasses.replace(a, start=window.start, end=window.end)
        for a in many
    ]


@contextlib.contextmanager
def _with(
    replica: state.Replica,
    many: Sequence[allocation_.Allocation],
    fitting: bool,
) -> Iterator[None]:
    """Have allocations in the indexes for a while.

    :param fitting: whether it is known that they fit
    :raises NotEnoughHostsAvailable: if there is no room for them
    """
    with contextlib.ExitStack() as undo:
        for index, adds in replica.entries(many):
            try:
                index.apply(adds, force=fitting)
            except ext.OverCapacity as e:
                raise exception.NotEnoughHostsAvailable(
                    'what the lease holds has no room in the new window: '
                    f'{e}',
                    field='reservations',
                ) from e
            undo.callback(index.apply, _removing(adds), force=True)
        yield


@contextlib.contextmanager
def _without(
    replica: state.Replica, many: Sequence[allocation_.Allocation]
) -> Iterator[None]:
    """Have allocations out of the indexes for a while."""
    with contextlib.ExitStack() as undo:
        for index, adds in replica.entries(many):
            index.apply(_removing(adds), force=True)
            undo.callback(index.apply, adds, force=True)
        yield


def _removing(adds: Iterable[state.Change]) -> list[state.Change]:
    return [('remove', change[1]) for change in adds]


def _new_id() -> str:
    return str(uuid.uuid4())


def _choose(
    replica: state.Replica,
    reservation: reservation_.Reservation,
    project_id: str,
    window: window_.Window,
    old: Sequence[allocation_.Allocation],
    apart: int,
) -> list[allocation_.Allocation]:
    found = placing.place(
        replica.index, replica.extra, replica.catalog, reservation,
        project_id, window.widened(apart), old, _new_id,
    )
    return _move(found, window)


def _keep(
    replica: state.Replica,
    reservation: reservation_.Reservation,
    project_id: str,
    window: window_.Window,
    old: Sequence[allocation_.Allocation],
    apart: int,
) -> list[allocation_.Allocation]:
    """Place so that nothing held is lost."""
    if reservation.resource_type != reservation_.PHYSICAL_HOST:
        return _grow(replica, reservation, project_id, window, old, apart)
    new = _choose(replica, reservation, project_id, window, old, apart)
    _check_kept(old, new)
    return new


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
    project_id: str,
    window: window_.Window,
    old: Sequence[allocation_.Allocation],
    apart: int,
) -> list[allocation_.Allocation]:
    """Keep every slot of an instance reservation and place what is more."""
    kept = {a.host: a for a in _move(old, window)}
    slot = reservation.slot()
    more = reservation.parameters['amount'] - sum(
        placing.count_slots(a.amounts, slot) for a in old
    )
    wide = window.widened(apart)
    with _with(replica, _move(old, wide), fitting=False):
        added = more and placing.place_instances(
            replica.index,
            replica.extra,
            _growing(replica, reservation, project_id, kept),
            wide,
            slot,
            more,
            reservation.parameters['affinity'],
        )
    return list(_with_slots(reservation, window, kept, added or {}).values())


def _with_slots(
    reservation: reservation_.Reservation,
    window: window_.Window,
    kept: Mapping[str, allocation_.Allocation],
    added: Mapping[str, int],
) -> dict[str, allocation_.Allocation]:
    """Return allocations by host, with slots added to those that are kept."""
    both = dict(kept)
    for host, count in added.items():
        base = kept.get(host) or allocation_.Allocation(
            _new_id(), reservation.id, host, window.start, window.end
        )
        amounts = {
            c: base.amounts.get(c, 0) + count * amount
            for c, amount in reservation.slot().items()
        }
        both[host] = dataclasses.replace(
            base, start=window.start, end=window.end, amounts=amounts
        )
    return both


def _growing(
    replica: state.Replica,
    reservation: reservation_.Reservation,
    project_id: str,
    kept: Mapping[str, allocation_.Allocation],
) -> placing.Candidates:
    """Return the hosts on which the reservation's affinity lets it grow.

    Whole hosts have none.
    """
    candidates = replica.catalog.meeting(
        placing.requirement(reservation), project_id
    )
    affinity = reservation.parameters.get('affinity')
    if affinity is None or not kept:
        return candidates
    return replica.catalog.among(
        uuid for uuid in candidates.hosts if (uuid in kept) is affinity
    )


def leave(
    replica: state.Replica,
    lease: lease_.Lease,
    window: window_.Window,
    hosts: Collection[str],
    only: Collection[str] | None = None,
    apart: int = 0,
) -> Allocations:
    """Return what reservations hold once they have left some hosts.

    Other hosts take it over, and what was missing before, as far as there is
    room. What is on other hosts already stays there as it is.

    :param window: what is left of the lease's own
    :param hosts: uuids
    :param only: the ids of the reservations that leave, None for all that
        are on hosts
    :param apart: seconds that what is placed keeps from all else on a host
    """
    wide = window.widened(apart)
    old = held(replica, lease)
    placed: Allocations = {}
    with contextlib.ExitStack() as trial:
        for r in lease.reservations:
            if r.resource_type not in reservation_.ON_HOSTS or not (
                only is None or r.id in only
            ):
                continue
            kept = {a.host: a for a in old[r.id] if a.host not in hosts}
            candidates = _others(
                _growing(replica, r, lease.project_id, kept), replica, hosts
            )
            if r.resource_type == reservation_.PHYSICAL_HOST:
                lost = max(len(old[r.id]), r.parameters['min']) - len(kept)
                new = _with_hosts(replica, r, wide, candidates, kept, lost)
            else:
                new = _with_most(replica, r, wide, candidates, kept)
            changed = _move(
                (a for h, a in new.items() if kept.get(h) != a), window
            )
            grown = [kept[a.host] for a in changed if a.host in kept]
            trial.enter_context(_without(replica, grown))
            trial.enter_context(_with(replica, changed, fitting=True))
            placed[r.id] = list(
                (new | {a.host: a for a in changed}).values()
            )
    return placed


def _others(
    candidates: placing.Candidates,
    replica: state.Replica,
    hosts: Collection[str],
) -> placing.Candidates:
    if candidates.hosts.keys().isdisjoint(hosts):
        return candidates
    return replica.catalog.among(
        uuid for uuid in candidates.hosts if uuid not in hosts
    )


def _with_hosts(
    replica: state.Replica,
    reservation: reservation_.Reservation,
    window: window_.Window,
    candidates: placing.Candidates,
    kept: Mapping[str, allocation_.Allocation],
    count: int,
) -> dict[str, allocation_.Allocation]:
    """Return allocations by host, with up to so many whole hosts added."""
    names = count > 0 and placing.place_hosts(
        replica.index, replica.extra, candidates, window, 0, count
    )
    return dict(kept) | {
        name: allocation_.Allocation(
            _new_id(), reservation.id, name, window.start, window.end,
            whole=True,
        )
        for name in names or ()
    }


def _with_most(
    replica: state.Replica,
    reservation: reservation_.Reservation,
    window: window_.Window,
    candidates: placing.Candidates,
    kept: Mapping[str, allocation_.Allocation],
) -> dict[str, allocation_.Allocation]:
    """Return allocations by host, with the slots added that are missing.

    As many of them as there is room for.
    """
    slot = reservation.slot()
    added: dict[str, int] = {}
    # What fits is searched for between these two: often it is all.
    least = 0
    most = count = reservation.parameters['amount'] - sum(
        placing.count_slots(a.amounts, slot) for a in kept.values()
    )
    while least < most:
        try:
            added = placing.place_instances(
                replica.index, replica.extra, candidates, window, slot,
                count, reservation.parameters['affinity'],
            )
            least = count
        except exception.NotEnoughHostsAvailable:
            most = count - 1
        count = -(-(least + most) // 2)
    return _with_slots(reservation, window, kept, added)
