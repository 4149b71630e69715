# SPDX-License-Identifier: Apache-2.0
"""Lending: what an open reservation leaves to preemptible instances.

A unit is a host of a reservation of whole hosts, or a slot of a reservation of
instances. A unit is lent if it is neither in use nor in the reserve, which
stays free for the owner. A unit that is recalled is no longer lent, and is not
the owner's again until the preemptible instances that use it are gone.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
from typing import Any
from typing import Self

# The key in `made` of a reservation.
LENDING = 'lending'
# Seconds for which the greatest number of units that the owner took at once is
# remembered.
MEMORY = 86400

# Numbers of units by the uuid of the host.
Units = Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Lending:
    """What a reservation lends.

    :ivar lent: the lent units, by host
    :ivar recalled: the recalled units, by host
    :ivar recalled_at: when the recall of each host began, in epoch seconds
    :ivar used: how many units were in use at the last look
    :ivar burst: the most units that came into use between two looks
    :ivar burst_at: the time of that look, in epoch seconds
    """

    lent: Units = dataclasses.field(default_factory=dict)
    recalled: Units = dataclasses.field(default_factory=dict)
    recalled_at: Units = dataclasses.field(default_factory=dict)
    used: int = 0
    burst: int = 0
    burst_at: int = 0

    @classmethod
    def decode(cls, made: Mapping[str, Any]) -> Self:
        """Return what the `made` of a reservation holds."""
        return cls(**made.get(LENDING, {}))

    def encode(self) -> dict[str, Any]:
        """Return the entries of `made`."""
        return {LENDING: dataclasses.asdict(self)}

    @property
    def away(self) -> int:
        """The number of units that the owner cannot use now."""
        return sum(self.lent.values()) + sum(self.recalled.values())

    @property
    def reserve(self) -> int:
        """The number of units that stay free for the owner."""
        return max(1, self.burst)

    def cleared(self, host: str) -> Self:
        """Return the lending once no other instance uses the recalled units.
        """
        return dataclasses.replace(
            self, recalled=_without(self.recalled, host),
            recalled_at=_without(self.recalled_at, host),
        )


def next_lending(
    known: Lending,
    units: Units,
    used: Units,
    now: int,
    lends: bool,
    cost: Callable[[str], int],
) -> Lending:
    """Return what a reservation lends from now on.

    Units come back to fill the reserve, those first that cost least; what is
    free beyond the reserve is lent. O(n log n) for n hosts.

    :param units: the units of the reservation
    :param used: the units that are in use
    :param lends: whether anything is to be lent at all
    :param cost: returns what the recall of a unit of a host costs others
    """
    total = sum(used.values())
    burst, burst_at = known.burst, known.burst_at
    grown = total - known.used
    if grown >= max(burst, 1) or now - burst_at >= MEMORY:
        burst, burst_at = max(grown, 0), now
    # A reservation may have lost hosts or slots in the meantime.
    recalled = {
        h: min(n, units[h]) for h, n in known.recalled.items() if h in units
    }
    lent = {
        h: min(n, units[h] - recalled.get(h, 0))
        for h, n in known.lent.items() if h in units
    }
    recalled_at = {h: known.recalled_at[h] for h in recalled}
    looked = dataclasses.replace(
        known, used=total, burst=burst, burst_at=burst_at
    )
    free = {
        h: n - used.get(h, 0) - lent.get(h, 0) - recalled.get(h, 0)
        for h, n in units.items()
    }
    kept = sum(n for n in free.values() if n > 0)
    wanted = looked.reserve - kept - sum(recalled.values())
    for h in sorted(lent, key=lambda h: (cost(h), h)):
        # More is in use than was kept: the owner took units meanwhile.
        back = min(max(wanted, -free[h]) if lends else lent[h], lent[h])
        if back > 0:
            lent[h] -= back
            recalled[h] = recalled.get(h, 0) + back
            recalled_at.setdefault(h, now)
            wanted -= back
    spare = kept - looked.reserve if lends else 0
    for h in sorted(free, key=lambda h: (-free[h], h)):
        given = min(spare, free[h]) if h not in recalled else 0
        if given > 0:
            lent[h] = lent.get(h, 0) + given
            spare -= given
    return dataclasses.replace(
        looked, lent={h: n for h, n in lent.items() if n},
        recalled={h: n for h, n in recalled.items() if n},
        recalled_at={h: at for h, at in recalled_at.items() if recalled[h]},
    )


def _without(units: Units, host: str) -> Units:
    return {h: n for h, n in units.items() if h != host}
