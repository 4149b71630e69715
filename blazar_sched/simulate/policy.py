# SPDX-License-Identifier: Apache-2.0
"""The policies that are compared on the same events."""

from collections.abc import Iterable
import dataclasses

TIMELINE, WEIGHERS, PACKING = 'timeline', 'weighers', 'packing'
PARTS = (TIMELINE, WEIGHERS, PACKING)


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """A policy; `closed` closes the pool to requests without a reservation.

    If `closed`, a request needs a reservation on the host. Otherwise these
    parts are on: `timeline`, LifetimeFilter; `weighers`, LeaseGapWeigher;
    `packing`, leases go where the free time around them is the shortest, and
    not to any free host.
    """

    name: str
    closed: bool = False
    timeline: bool = True
    weighers: bool = True
    packing: bool = True


FREEPOOL = Policy('freepool', closed=True, timeline=False, weighers=False)
OURS = Policy('ours')


def without(part: str) -> Policy:
    """Return the policy of this project with one of PARTS off."""
    return dataclasses.replace(
        OURS, name=f'ours without {part}', **{part: False}
    )


def compared(parts: Iterable[str] = ()) -> list[Policy]:
    """Return the policies to compare, also with each of `parts` off."""
    off = dict.fromkeys((*parts, WEIGHERS))
    return [FREEPOOL, *map(without, off), OURS]
