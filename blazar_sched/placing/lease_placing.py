# SPDX-License-Identifier: Apache-2.0
"""Placing of a whole lease, each reservation beside the earlier ones.

The allocations of the lease are tried on the replica's indexes, and the
indexes are restored afterwards: only allocations that the ledger commits may
stay there. On trial, the allocations of the earlier reservations take their
cleaning time, too, so that all reservations together keep the cleaning time.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import itertools
from typing import Any
import uuid

from blazar_sched import ext
from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.demand import Instances
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.placing import group_limit
from blazar_sched.placing import host_selection
from blazar_sched.placing import orders
from blazar_sched.placing.options import DEFAULT_OPTIONS
from blazar_sched.placing.options import Options
from blazar_sched.placing.room import Room
from blazar_sched.replica import state
from blazar_sched.replica.catalog import Candidates
from blazar_sched.replica.indexes import Indexes

Allocations = dict[str, list[Allocation]]

# The most reservations of which the hosts are looked at: see
# `Placer._not_clearable`.
MAX_RESERVATIONS = 200


def allocations_of(replica: state.Replica, lease: Lease) -> Allocations:
    """Return the allocations of each reservation of a lease, by its id."""
    return {
        r.id: list(replica.indexes.allocations(r.id).values())
        for r in lease.reservations
    }


def match(
    replica: state.Replica | None, lease: Lease, options: Options
) -> None:
    """Find the hosts for a lease ahead, because that takes long."""
    for r in lease.reservations:
        if replica is not None and r.demand.is_on_hosts(active=False):
            for each in options.alternatives():
                replica.catalog.candidates(
                    r, lease.project_id, each.default, spares=each.spares
                )


def place(
    replica: state.Replica, lease: Lease, window: Window,
    old: Allocations | None = None, active: bool = False,
    settled: Collection[str] = (), options: Options = DEFAULT_OPTIONS,
    left: Allocations | None = None,
) -> Allocations:
    """Place each reservation of a lease; return its allocations, by its id.

    If a reservation finds no room in any order of the reservations, the whole
    lease is tried again with the next of the options.

    :param lease: the lease as it is to be
    :param window: the remaining window of the lease
    :param old: the present allocations of the lease, which are ignored in the
        indexes; if the lease is not active, also those of reservations that
        the lease no longer has
    :param active: whether the lease must lose none of its hosts or slots
    :param settled: the ids of reservations that keep their allocations, for
        as long as the lease still lasts
    :param left: the remaining allocations of those reservations that have
        given up some of their allocations
    :raises NotEnoughHostsAvailable: if a reservation finds no room
    """
    def attempt(options: Options) -> Allocations:
        placer = Placer(replica, lease.project_id, window, options)
        return _place_in_some_order(
            placer, lease, old or {}, left or {}, active, settled
        )

    *first, last = options.alternatives()
    for each in first:
        with contextlib.suppress(exception.NotEnoughHostsAvailable):
            return attempt(each)
    return attempt(last)


def _place_in_some_order(
    placer: 'Placer', lease: Lease, old: Allocations, left: Allocations,
    active: bool, settled: Collection[str],
) -> Allocations:
    """Place the reservations of a lease in an order in which all find room.

    :raises NotEnoughHostsAvailable: as in the order of the lease
    """
    # Settled reservations come first, so that no other reservation takes
    # their hosts.
    fixed = [r for r in lease.reservations if r.id in settled]
    placed: list[Allocations] = []
    refusals: list[_NoRoom] = []

    def place_others(order: Sequence[Reservation]) -> Reservation | None:
        try:
            placed.append(
                _place(placer, lease, fixed, order, old, left, active)
            )
        except _NoRoom as e:
            refusals.append(e)
            return e.reservation
        return None

    orders.attempt(
        (r for r in lease.reservations if r.id not in settled), place_others,
        # Only the hosts that they hold distinguish equal reservations.
        lambda r: (r.id if old.get(r.id) else None, r.demand.needs),
    )
    if not placed:
        raise refusals[0].for_lease(lease)
    return placed[0]


class _NoRoom(Exception):
    """A reservation that finds no room beside those before it.

    :param refusal: the reason
    :param lacking: the reason if there is no room at any time
    """

    def __init__(
        self, reservation: Reservation,
        refusal: exception.NotEnoughHostsAvailable, lacking: str | None,
    ) -> None:
        super().__init__(reservation, refusal)
        self.reservation = reservation
        self._refusal = refusal
        self._lacking = lacking

    def for_lease(self, lease: Lease) -> exception.NotEnoughHostsAvailable:
        """Return the refusal of the lease, with the reservation's position."""
        message = self._lacking or self._refusal.args[0]
        if self._lacking is None and len(lease.reservations) > 1:
            message += ' beside the other reservations of the lease'
        position = lease.reservations.index(self.reservation)
        return exception.NotEnoughHostsAvailable(
            message, self._refusal.field,
            {**(self._refusal.offer or {}), 'reservation': position},
        )


def _place(
    placer: 'Placer', lease: Lease, fixed: Sequence[Reservation],
    others: Sequence[Reservation], old: Allocations, left: Allocations,
    active: bool,
) -> Allocations:
    """Place the reservations of a lease, one after the other.

    :param fixed: the reservations that keep their allocations
    :raises _NoRoom: if a reservation finds no room
    """
    indexes = placer.replica.indexes
    placed: Allocations = {r.id: [] for r in lease.reservations}
    placers = placer.ahead(others, old.values(), active)
    with contextlib.ExitStack() as undo:
        if not active:
            # The reservations may exchange hosts.
            undo.enter_context(indexes.removed(itertools.chain(*old.values())))
        for r in (*fixed, *others):
            mine = old.get(r.id, [])
            if not mine and not r.demand.is_on_hosts(active):
                continue
            if active:
                undo.enter_context(indexes.removed(mine))
            mine = left.get(r.id, mine)
            if r in fixed:
                new = _cut_to_window(mine, lease.window)
            else:
                try:
                    new = _first_of(placers, r, mine, active)
                except exception.NotEnoughHostsAvailable as e:
                    raise _NoRoom(r, e, placer.lacking(r, mine)) from e
            undo.enter_context(
                indexes.added(placer.with_cleaning_time(r, new))
            )
            placed[r.id] = new
    return placed


def _first_of(
    placers: Sequence['Placer'], reservation: Reservation,
    old: Sequence[Allocation], active: bool,
) -> list[Allocation]:
    """Place a reservation by the first placer that finds room.

    :raises NotEnoughHostsAvailable: as the last placer does
    """
    *first, last = placers
    for each in first:
        with contextlib.suppress(exception.NotEnoughHostsAvailable):
            return _first_of([each], reservation, old, active)
    if active and old:
        return last.keep(reservation, old)
    return last.choose(reservation, old)


def _cut_to_window(
    many: Iterable[Allocation], window: Window
) -> list[Allocation]:
    """Return the allocations, cut to a window.

    An allocation that would begin only after the window gets the window's
    last second.
    """
    return [
        dataclasses.replace(
            a, start=max(window.start, min(a.start, window.end - 1)),
            end=window.end,
        )
        for a in many
    ]


def in_window(many: Iterable[Allocation], window: Window) -> list[Allocation]:
    """Return the allocations, moved to another window."""
    return [
        dataclasses.replace(a, start=window.start, end=window.end)
        for a in many
    ]


def new_id() -> str:
    """Return a new id for an allocation."""
    return str(uuid.uuid4())


@dataclasses.dataclass(frozen=True)
class Placer:
    """The placing of single reservations of a lease over one window.

    :param only: the hosts to choose from, None for all hosts
    """

    replica: state.Replica
    project_id: str
    window: Window
    options: Options
    only: tuple[str, ...] | None = None

    def ahead(
        self, reservations: Iterable[Reservation],
        old: Iterable[Iterable[Allocation]], active: bool = False,
    ) -> 'list[Placer]':
        """Return the placers for the reservations of a lease.

        A look at all hosts for each of the reservations would take too long.
        The first placer chooses from the hosts that the lease has, and from as
        many of the hosts that come first for each kind of the reservations as
        the reservations can take: it chooses as the last placer does, which
        chooses from all hosts and is for a reservation that finds no room.

        :param old: the present allocations of the lease
        :param active: whether the lease has started
        """
        placed = [r for r in reservations if r.demand.is_on_hosts(active)]
        # One of each kind.
        kinds: list[Reservation] = []
        for r in placed:
            if not any(_is_alike(r.demand, each.demand) for each in kinds):
                kinds.append(r)
        if 2 * len(kinds) > len(placed):
            return [self]
        most = sum(r.demand.most for r in placed)
        found = {a.host for many in old for a in many}
        for r in kinds:
            for room, part in self.room(r).parts(
                self.candidates(r), r.demand.slot
            ):
                found.update(
                    host_selection.first_hosts(room, part, r.demand, most)
                )
        only = tuple(uuid for uuid in self.replica.hosts if uuid in found)
        return [dataclasses.replace(self, only=only), self]

    def room(
        self, reservation: Reservation, ignore: str | None = None
    ) -> Room:
        """Return the room over the window for a reservation.

        :param ignore: the owner whose entries are ignored
        """
        return Room(
            self.replica.indexes, self.window,
            self._cleaning_time(reservation), ignore,
            () if reservation.demand.whole else self._not_clearable,
        )

    @functools.cached_property
    def _not_clearable(self) -> Collection[str]:
        """The hosts that no other lease could have as a whole.

        A fixed instance or a reservation is in the way there. Slots go there
        first, so that hosts that instances can leave remain for whole leases.

        O(reservations), and MAX_RESERVATIONS queries of the indexes.
        """
        replica, window = self.replica, self.window
        total = replica.indexes.total
        if total is None:
            return ()
        beside = itertools.islice((
            id_ for id_, each in replica.reservations.items()
            if each.start < window.end and window.start < each.end
        ), MAX_RESERVATIONS)
        return dict.fromkeys((
            *total.fixed.hosts_at(window.start),
            *(host for id_ in beside for host in (
                replica.indexes.allocations(id_)
            )),
        ))

    def choose(
        self, reservation: Reservation, old: Sequence[Allocation],
        started: bool = False,
    ) -> list[Allocation]:
        """Place a reservation, on its old hosts as far as possible.

        :param started: whether the reservation has started
        """
        candidates = self.candidates(
            reservation, [a.host for a in old], started
        )
        room = self.room(reservation, ignore=reservation.id)
        return host_selection.place(room, candidates, reservation, old, new_id)

    def lacking(
        self, reservation: Reservation, old: Iterable[Allocation]
    ) -> str | None:
        """Return why there is no room at any time, None if there may be.

        :param old: the present allocations of the reservation
        """
        if not self.replica.hosts:
            return 'no host is registered'
        candidates = self.candidates(reservation, [a.host for a in old])
        overcommit = self.replica.indexes.reserved is None
        demand = reservation.demand.needs
        return candidates.remembered(
            str(demand),
            lambda: host_selection.lacking(
                demand, candidates.hosts.values(), overcommit
            ),
        )

    def candidates(
        self, reservation: Reservation, kept: Iterable[str] = (),
        started: bool = False,
    ) -> Candidates:
        """Return the hosts that a reservation may use.

        :param kept: the hosts that the reservation holds now
        :param started: whether the reservation has started
        """
        return self.replica.catalog.candidates(
            reservation, self.project_id, self.options.default, kept,
            self.options.spares, started, self.only,
        )

    def keep(
        self, reservation: Reservation, old: Sequence[Allocation]
    ) -> list[Allocation]:
        """Place a reservation so that none of its hosts or slots is lost."""
        if isinstance(reservation.demand, Instances):
            return self._grow(reservation, reservation.demand, old)
        for each in old:
            self._check_free(
                self.replica.hosts[each.host], self._cleaning_time(reservation)
            )
        new = self.choose(reservation, old, started=True)
        self._check_kept(old, new)
        return new

    def growth_candidates(
        self, reservation: Reservation, kept: Mapping[str, Allocation]
    ) -> Candidates:
        """Return the hosts on which the reservation's affinity lets it grow.

        A reservation of whole hosts has no affinity.
        """
        catalog = self.replica.catalog
        candidates = self.candidates(reservation)
        affinity = reservation.demand.affinity
        if affinity is None or not kept:
            return candidates
        return catalog.among(
            uuid for uuid in candidates.hosts if (uuid in kept) is affinity
        )

    def with_cleaning_time(
        self, reservation: Reservation, many: Iterable[Allocation]
    ) -> list[Allocation]:
        """Return allocations of a reservation, widened by the cleaning time.
        """
        cleaning_time = self._cleaning_time(reservation)
        wide = []
        for each in many:
            host = self.replica.hosts[each.host]
            seconds = host.cleaning_seconds(cleaning_time)
            if seconds:
                window = Window(each.start, each.end).widened(seconds)
                [each] = in_window([each], window)
            wide.append(each)
        return wide

    def _cleaning_time(self, reservation: Reservation) -> int:
        return self.options.cleaning_time_of(reservation.resource_type)

    def _check_free(self, host: Host, cleaning_time: int) -> None:
        """Refuse a window over which a host in use is not free to its end.

        :raises NotEnoughHostsAvailable: with the time until which the host is
            free
        """
        start = self.window.start
        until = duration.end_after(
            start, self.replica.indexes.untaken(host.uuid, start)
        )
        if until == FOREVER:
            return
        latest = until - host.cleaning_seconds(cleaning_time)
        if start < latest < self.window.end:
            raise exception.NotEnoughHostsAvailable(
                f'host {host.hypervisor_hostname}, which is in use, can be '
                f'kept until {duration.format_time(latest)} at most',
                field='reservations',
            )

    def _check_kept(
        self, old: Iterable[Allocation], new: Iterable[Allocation]
    ) -> None:
        lost = {a.host for a in old} - {a.host for a in new}
        if lost:
            known = self.replica.hosts
            names = sorted(known[h].hypervisor_hostname for h in lost)
            hosts = 'host' if len(names) == 1 else 'hosts'
            raise exception.NotEnoughHostsAvailable(
                f'{hosts} {", ".join(names)}, in use, could not be kept',
                field='reservations',
            )

    def _grow(
        self, reservation: Reservation, demand: Instances,
        old: Sequence[Allocation],
    ) -> list[Allocation]:
        """Keep all slots of a reservation of instances, and place new ones."""
        kept = {a.host: a for a in in_window(old, self.window)}
        more = demand.amount - demand.count(old)
        wide = self.with_cleaning_time(reservation, kept.values())
        room = self.room(reservation)
        beside = {a.host: demand.slots_in(a.amounts) for a in old}
        with _reserved(self.replica.indexes, wide):
            group_limit.check_kept(room, demand.slot, beside)
            added = more and host_selection.place_instances(
                room, self.growth_candidates(reservation, kept),
                dataclasses.replace(demand, amount=more), beside=beside,
            )
        return list(
            with_slots(reservation, self.window, kept, added or {}).values()
        )


def _is_alike(one: Demand, other: Demand) -> bool:
    """Tell whether hosts come in the same order for two demands."""
    return one == other or one.kind == other.kind and (
        not one.affinity or one.most == other.most
    )


@contextlib.contextmanager
def _reserved(
    indexes: Indexes, allocations: Sequence[Allocation]
) -> Iterator[None]:
    """Add allocations to the indexes for a block, if they have room.

    :raises NotEnoughHostsAvailable: if there is no room for the allocations
    """
    for each in allocations:
        # An allocation of other resource classes alone is not in the main
        # index, which has the allocations of whole hosts.
        if indexes.is_taken_whole(each.host, Window(each.start, each.end)):
            raise _no_room('its host is taken whole')
    with contextlib.ExitStack() as undo:
        try:
            undo.enter_context(indexes.added(allocations, force=False))
        except ext.OverCapacity as e:
            raise _no_room(str(e)) from e
        yield


def _no_room(reason: str) -> exception.NotEnoughHostsAvailable:
    return exception.NotEnoughHostsAvailable(
        'the present allocations of the lease have no room in the new '
        f'window: {reason}',
        field='reservations',
    )


def with_slots(
    reservation: Reservation, window: Window, kept: Mapping[str, Allocation],
    added: Mapping[str, int],
) -> dict[str, Allocation]:
    """Return allocations by host, with slots added to the kept allocations."""
    both = dict(kept)
    for host, count in added.items():
        base = kept.get(host) or Allocation(
            new_id(), reservation.id, host, window.start, window.end
        )
        amounts = {
            c: base.amounts.get(c, 0) + count * amount
            for c, amount in reservation.demand.slot.items()
        }
        both[host] = dataclasses.replace(
            base, start=window.start, end=window.end, amounts=amounts
        )
    return both


def amounts_by_host(allocations: Iterable[Allocation]) -> set[Any]:
    """Return the amounts of each reservation by host, for comparison."""
    return {
        (a.reservation_id, a.host, *sorted(a.amounts.items()))
        for a in allocations
    }


def count_missing(
    reservation: Reservation, old: Collection[Allocation],
    new: Collection[Allocation],
) -> int:
    """Return how many hosts or slots have to be placed in addition to `new`.

    A reservation of whole hosts needs as many hosts as in `old`, or the
    least if that is more.
    """
    demand = reservation.demand
    wanted = max(len(old), demand.least) if demand.whole else demand.least
    return wanted - demand.count(new)
