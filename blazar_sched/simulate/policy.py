# SPDX-License-Identifier: Apache-2.0
"""The policies that are played side by side on the same events."""

from collections.abc import Iterable
import dataclasses

TIMELINE, WEIGHERS, PACKING = 'timeline', 'weighers', 'packing'
PARTS = (TIMELINE, WEIGHERS, PACKING)


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """`closed`: the pool is shut to whatever has no reservation there.

    Else these parts are on: `timeline`, LifetimeFilter; `weighers`,
    LeaseGapWeigher; `packing`, leases go where the free time around them is
    the shortest, and not to any host that is free.
    """

    name: str
    closed: bool = False
    timeline: bool = True
    weighers: bool = True
    packing: bool = True


FREEPOOL = Policy('freepool', closed=True, timeline=False, weighers=False)
OURS = Policy('ours')


def without(part: str) -> Policy:
    """Return ours with one of PARTS off."""
    return dataclasses.replace(
        OURS, name=f'ours without {part}', **{part: False}
    )


def compared(parts: Iterable[str] = ()) -> list[Policy]:
    """Return the policies to compare, with `parts` off one by one too."""
    off = dict.fromkeys((*parts, WEIGHERS))
    return [FREEPOOL, *map(without, off), OURS]
