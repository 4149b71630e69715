# SPDX-License-Identifier: Apache-2.0
"""Choice of the floating IPs of a lease, and of a start with enough of them.

Floating IPs have no timeline index: an external network has few floating IPs,
in comparison with hosts.
"""

from collections import Counter
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses

from blazar_sched.domain import plural
from blazar_sched.domain import states
from blazar_sched.domain.exception import NotEnoughHostsAvailable
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.parts.floating_ip import demand as demands
from blazar_sched.parts.floating_ip import exception
from blazar_sched.parts.floating_ip.floating_ip import FloatingIP
from blazar_sched.parts.floating_ip.floating_ip import Use
from blazar_sched.placing.window_search import Edges


def choose(
    lease: Lease, reservation: Reservation, kept: Collection[FloatingIP],
    free: Iterable[FloatingIP],
) -> list[FloatingIP]:
    """Return the addresses for a reservation: at most its amount.

    Before the reservation is opened, its required addresses come first, then
    the addresses that it has. Once the reservation is opened, the addresses
    that it has stay. Addresses that other reservations of the lease require
    come last, among these the addresses that an earlier reservation requires.

    :param kept: the addresses that the reservation has and may keep
    :param free: the addresses that the reservation may have, with or without
        the kept addresses
    """
    ids = {f.id for f in kept}
    opened = reservation.status != states.RESERVATION_PENDING
    demand = demands.read(reservation.demand)
    # The position of the first other reservation that requires an address.
    wanted: dict[str, int] = {}
    for position, (other, theirs) in enumerate(demands.of(lease)):
        if (
            other.id != reservation.id
            and theirs.network_id == demand.network_id
        ):
            for address in theirs.required:
                wanted.setdefault(address, position)
    ordered = sorted(
        {f.id: f for f in (*kept, *free)}.values(),
        key=lambda f: (
            opened and f.id not in ids, f.address not in demand.required,
            f.id not in ids, -wanted.get(f.address, len(lease.reservations)),
        ),
    )
    return ordered[: demand.amount]


def place(
    lease: Lease, reservation: Reservation, held: Collection[FloatingIP],
    free: Iterable[FloatingIP],
) -> list[FloatingIP]:
    """Return the addresses of a reservation.

    :param held: the addresses that the reservation has
    :param free: the addresses that no other reservation has in the window
    :raises NotEnoughFloatingIPAvailable: if there are too few addresses
    """
    demand = demands.read(reservation.demand)
    opened = reservation.status != states.RESERVATION_PENDING
    # An address in use belongs to the project, even if the address stops being
    # reservable.
    free = [f for f in free if f.reservable or opened]
    ids = {f.id for f in held}
    kept = [f for f in free if f.id in ids]
    if opened and len(kept) < len(held):
        raise exception.NotEnoughFloatingIPAvailable(
            f'{plural.counted(len(held) - len(kept), "floating IP")} in use '
            'could not be kept',
            field='reservations',
        )
    lost = set(demand.required) - {f.address for f in free}
    if lost and not opened:
        raise exception.NotEnoughFloatingIPAvailable(
            f'{", ".join(sorted(lost))} is not registered, or not free',
            field='required_floatingips',
        )
    chosen = choose(lease, reservation, kept, free)
    if len(chosen) < demand.amount:
        raise exception.NotEnoughFloatingIPAvailable(
            f'{plural.counted(demand.amount, "floating IP")} of network '
            f'{demand.network_id} {plural.is_or_are(demand.amount)} needed, '
            f'{len(chosen)} {plural.is_or_are(len(chosen))} free',
            field='amount',
        )
    return chosen


@dataclasses.dataclass(frozen=True, slots=True)
class Free:
    """The floating IPs that a new lease may get, free over time.

    :param uses: the reservable floating IPs of the networks of the lease
    """

    uses: Sequence[Use]
    lease: Lease

    def lacking(self, window: Window) -> NotEnoughHostsAvailable | None:
        """Return the refusal of the first reservation that lacks any."""
        free = [use.floating_ip for use in self.uses if use.is_free(window)]
        for reservation, asked in demands.of(self.lease):
            known = [f for f in free if f.network_id == asked.network_id]
            try:
                chosen = place(self.lease, reservation, (), known)
            except exception.NotEnoughFloatingIPAvailable:
                position = self.lease.reservations.index(reservation)
                return NotEnoughHostsAvailable(
                    'there are too few floating IPs',
                    offer={'reservation': position, 'available': len(known)},
                )
            taken = {f.id for f in chosen}
            free = [f for f in free if f.id not in taken]
        return None

    def first_start(self, at: int, length: int) -> int | None:
        """Return a start before which the lease finds too few floating IPs.

        Which addresses are required is not considered.

        O(n log n) for n allocations.
        """
        wanted: Counter[str] = Counter()
        for _, asked in demands.of(self.lease):
            wanted[asked.network_id] += asked.amount
        first = at
        for network_id, amount in wanted.items():
            uses = [
                u for u in self.uses if u.floating_ip.network_id == network_id
            ]
            found = _first_start(uses, amount, at, length)
            if found is None:
                return None
            first = max(first, found)
        return first

    def edges(self) -> Edges:
        """Return the ends and the starts of allocations.

        An allocation without an end has only a start.
        """
        windows = [w for use in self.uses for w in use.windows]
        return Edges(
            sorted({w.end for w in windows if w.end != FOREVER}),
            sorted({w.start for w in windows}),
        )


def networks(lease: Lease) -> list[str]:
    """Return the ids of the networks whose floating IPs a lease reserves."""
    return sorted({asked.network_id for _, asked in demands.of(lease)})


def _first_start(
    uses: Iterable[Use], amount: int, at: int, length: int
) -> int | None:
    """Return the first start at which an amount of floating IPs is free."""
    # How many more or fewer are free from a start on, for the whole length.
    steps: Counter[int] = Counter()
    for use in uses:
        begins = [at, *(max(at, each.end) for each in use.windows)]
        ends = [*(each.start for each in use.windows), FOREVER]
        for begin, end in zip(begins, ends, strict=True):
            last = FOREVER if end == FOREVER else end - length
            if begin < end and begin <= last:
                steps[begin] += 1
                steps[last + 1] -= 1
    free = 0
    for start in sorted(steps):
        free += steps[start]
        if free >= amount:
            return start
    return None
