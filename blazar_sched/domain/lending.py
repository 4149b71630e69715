# SPDX-License-Identifier: Apache-2.0
"""Lending: what an open reservation leaves to preemptible instances.

A unit is a host of a reservation of whole hosts, or a slot of a reservation of
instances. A unit is lent if it is neither in use nor in the reserve, which
stays free for the owner. A unit that is recalled is no longer lent, and is not
the owner's again until the preemptible instances that use it are gone.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any
from typing import Self

from blazar_sched.domain import fields
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.reservation import Reservation

# The key in `made` of a reservation.
LENDING = 'lending'
# Seconds for which the numbers of units that the owner took at once are
# remembered.
MEMORY = 86400
# Units that come into use within so many seconds count as taken at once: the
# servers of one request do not all arrive between two looks, and the reserve
# is not filled again meanwhile.
BURST = 60

# Numbers of units by the uuid of the host.
Units = Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Lending:
    """What a reservation lends.

    :ivar lent: the lent units, by host
    :ivar recalled: the recalled units, by host
    :ivar recalled_at: since when preemptible instances have had to leave each
        host, in epoch seconds: because units of the host are recalled, or
        because the instances use what the host does not lend
    :ivar told: the number of lent units that was notified last
    :ivar used: how many units were in use at the last look
    :ivar bursts: how many units came into use within `BURST` seconds, with
        the time of the first look at the units in epoch seconds: each burst
        that is larger than all later bursts, the oldest first
    :ivar before: how many units were in use before the last burst
    :ivar began: whether anything was to be lent at any look so far: the bursts
        count from then on, also while nothing is to be lent
    """

    lent: Units = dataclasses.field(default_factory=dict)
    recalled: Units = dataclasses.field(default_factory=dict)
    recalled_at: Units = dataclasses.field(default_factory=dict)
    told: int = 0
    used: int = 0
    bursts: Sequence[Sequence[int]] = dataclasses.field(default_factory=list)
    before: int = 0
    began: bool = False

    @classmethod
    def decode(cls, made: Mapping[str, Any]) -> Self:
        """Return what the `made` of a reservation holds."""
        return fields.build(cls, made.get(LENDING, {}))

    def encode(self) -> dict[str, Any]:
        """Return the entries of `made`."""
        return {LENDING: dataclasses.asdict(self)}

    @property
    def away(self) -> int:
        """The number of units that the owner cannot use now."""
        return sum(self.lent.values()) + sum(self.recalled.values())

    @property
    def has_lent(self) -> bool:
        """Whether there is more than hosts that instances have to leave."""
        return dataclasses.replace(self, recalled_at={}) != type(self)()

    @property
    def reserve(self) -> int:
        """The number of units that stay free for the owner."""
        return self.bursts[0][0] if self.bursts else 1

    def within(self, units: Units) -> Self:
        """Return the part of the lending that is of the given units."""
        recalled = {
            h: min(n, units[h]) for h, n in self.recalled.items() if h in units
        }
        return dataclasses.replace(
            self,
            lent=_some({
                h: min(n, units[h] - recalled.get(h, 0))
                for h, n in self.lent.items() if h in units
            }),
            recalled=_some(recalled),
            recalled_at={
                h: at for h, at in self.recalled_at.items() if h in units
            },
        )

    def waiting(self, hosts: Collection[str], now: int) -> Self:
        """Return the lending while instances have to leave the given hosts.

        Instances have to leave the hosts with recalled units, too.
        """
        return dataclasses.replace(self, recalled_at={
            h: self.recalled_at.get(h, now) for h in {*hosts, *self.recalled}
        })

    def cleared(self, host: str) -> Self:
        """Return the lending once no other instance uses the recalled units.
        """
        return dataclasses.replace(
            self, recalled=_without(self.recalled, host),
            recalled_at=_without(self.recalled_at, host),
        )


def held(
    reservation: Reservation, allocations: Iterable[Allocation]
) -> Reservation:
    """Return a reservation that lends nothing beyond its allocations.

    Where the reservation has lost hosts or slots, others may have them now.
    """
    made = reservation.made
    if LENDING not in made:
        return reservation
    units = units_in(reservation, allocations)
    return dataclasses.replace(reservation, made={
        **made, **Lending.decode(made).within(units).encode(),
    })


def units_in(
    reservation: Reservation, allocations: Iterable[Allocation]
) -> dict[str, int]:
    """Return the units of the allocations of a reservation."""
    demand = reservation.demand
    return {each.host: demand.slots_in(each.amounts) for each in allocations}


def next_lending(
    known: Lending,
    units: Units,
    used: Units,
    now: int,
    lends: bool,
    cost: Callable[[str], int],
    strays: Collection[str] = (),
) -> Lending:
    """Return what a reservation lends from now on.

    Units come back to fill the reserve, those first that cost least; what is
    free beyond the reserve is lent. O(n log n) for n hosts.

    :param units: the units of the reservation
    :param used: the units that are in use
    :param lends: whether anything is to be lent at all
    :param cost: returns what the recall of a unit of a host costs others
    :param strays: the hosts with preemptible instances beyond what is lent
    """
    looked = _looked(known.within(units), sum(used.values()), now)
    lent, recalled = {**looked.lent}, {**looked.recalled}
    # What is free once the recalls are over, and what is free now.
    free = {h: n - used.get(h, 0) - lent.get(h, 0) for h, n in units.items()}
    kept = sum(
        max(0, n - recalled.get(h, 0)) for h, n in free.items()
    )
    wanted = max(0, looked.reserve - sum(n for n in free.values() if n > 0))
    for h in sorted(lent, key=lambda h: (cost(h), h)):
        # The owner may have taken lent units: these fill no reserve.
        taken = max(0, -free[h])
        back = min(taken + wanted if lends else lent[h], lent[h])
        if back > 0:
            lent[h] -= back
            recalled[h] = recalled.get(h, 0) + back
            wanted -= max(0, back - taken)
    spare = kept - looked.reserve if lends else 0
    # An instance need not leave where its host is lent.
    for h in sorted(free, key=lambda h: (h not in strays, -free[h], h)):
        given = min(spare, free[h]) if h not in recalled else 0
        if given > 0:
            lent[h] = lent.get(h, 0) + given
            spare -= given
    going = {h for h in strays if lent.get(h, 0) < units.get(h, 0)}
    return dataclasses.replace(
        looked, lent=_some(lent), recalled=recalled, told=sum(lent.values()),
        began=looked.began or lends,
    ).waiting(going, now)


def _looked(known: Lending, used: int, now: int) -> Lending:
    """Return the lending with the units in use, and the bursts, of a look."""
    last, since = known.bursts[-1] if known.bursts else (0, now - BURST)
    if continues := now - since < BURST:
        before = min(known.before, used)
    else:
        before, since = known.used, now
    grown = used - before
    bursts = [
        [count, at] for count, at in known.bursts
        if count > grown and now - at < MEMORY
    ]
    if grown > 0 and not (continues and last > grown):
        bursts.append([grown, since])
    return dataclasses.replace(
        known, used=used, bursts=bursts, before=before
    )


def _some(units: Units) -> Units:
    return {h: n for h, n in units.items() if n}


def _without(units: Units, host: str) -> Units:
    return {h: n for h, n in units.items() if h != host}
