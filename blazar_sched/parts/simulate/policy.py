# SPDX-License-Identifier: Apache-2.0
"""The policies that are compared on the same events."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from typing import Any

from blazar_sched.domain import duration

TIMELINE, WEIGHERS, PACKING = 'timeline', 'weighers', 'packing'
PATHS, DISPLACEMENT = 'paths', 'displacement'
MOVES, HEADROOM = 'moves', 'headroom'
REALLOCATION, STACKING, LEASES = 'reallocation', 'stacking', 'leases'
PARTS = (
    TIMELINE, WEIGHERS, PACKING, PATHS, DISPLACEMENT, MOVES, HEADROOM,
    REALLOCATION, STACKING, LEASES,
)

# What switches off a part that is no switch of a policy alone.
_OFF: dict[str, dict[str, Any]] = {
    PATHS: {'options': {'unbounded': duration.NEVER}},
    MOVES: {'options': {'relocation_moves': 1}},
    HEADROOM: {'options': {
        'relocation_headroom': 0.0, 'relocation_host_headroom': 0.0,
    }},
    # Nothing is kept off for the sake of leases.
    LEASES: {LEASES: False, 'options': {'unbounded': duration.FOREVER}},
}


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """A policy; `closed` closes the pool to requests without a reservation.

    If `closed`, a request needs a reservation on the host. Otherwise these
    parts are on: `timeline`, LifetimeFilter; `weighers`, LeaseGapWeigher;
    `packing`, leases go where the free time around them is the shortest, and
    not to any free host; `displacement`, leases take hosts that instances can
    leave by relocation paths;
    `reallocation`, leases that have not started leave hosts for instances;
    `stacking`, Nova's weighers prefer the hosts with little room, as the
    README sets them, and not the hosts with much room;
    `leases`, leases are booked, and instances are not alone.

    :param options: options in place of the scenario's
    """

    name: str
    closed: bool = False
    timeline: bool = True
    weighers: bool = True
    packing: bool = True
    displacement: bool = True
    reallocation: bool = True
    stacking: bool = True
    leases: bool = True
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


FREEPOOL = Policy(
    'freepool', closed=True, timeline=False, weighers=False, stacking=False
)
OURS = Policy('ours')
# What could be reached: not played in a cloud, see simulate.limit.
LIMIT = Policy('limit')


def without(part: str) -> Policy:
    """Return the policy of this project with one of PARTS off."""
    name = f'ours without {part}'
    return dataclasses.replace(
        OURS, name=name, **_OFF.get(part, {part: False})
    )


# The shares of headroom to choose from: of the capacity, and of the hosts.
HEADROOMS = ((0.0, 0.0), (0.03, 0.1), (0.05, 0.15), (0.06, 0.15), (0.08, 0.2))


def suggested() -> list[Policy]:
    """Return the policies to choose from, the least headroom first.

    A policy has the shares of HEADROOMS as its name.
    """
    return [
        dataclasses.replace(
            OURS, name=f'{share:.0%} / {of_hosts:.0%}',
            options={
                'unbounded': duration.RELOCATE,
                'relocation_headroom': share,
                'relocation_host_headroom': of_hosts,
            },
        )
        for share, of_hosts in HEADROOMS
    ]


def compared(parts: Iterable[str] = ()) -> list[Policy]:
    """Return the policies to compare, also with each of `parts` off."""
    return [FREEPOOL, *map(without, dict.fromkeys(parts)), OURS, LIMIT]
