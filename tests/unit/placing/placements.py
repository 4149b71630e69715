# SPDX-License-Identifier: Apache-2.0
"""Leases placed on the hosts of a replica, and strategies for both."""

from collections import Counter
import dataclasses

from hypothesis import strategies as st

from blazar_sched.domain import exception
from blazar_sched.domain.demand import Hosts
from blazar_sched.domain.demand import ON_HOSTS
from blazar_sched.domain.demand import Other
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.demand import Slots
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.placing import lease_placing
from blazar_sched.placing.options import DEFAULT_OPTIONS
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from tests import lanes

TIMES = 8
NAMES = 'abc'
GPU = 'CUSTOM_GPU'


def make_host(name, vcpus, gpus, disabled, projects, kind):
    held = {'VCPU': vcpus, 'MEMORY_MB': 100, 'DISK_GB': 100, GPU: gpus}
    return Host(
        uuid=name, id=name, hypervisor_hostname=name,
        inventory={c: Inventory(total) for c, total in held.items() if total},
        disabled=disabled, projects=projects, capabilities={'kind': kind}
    )


HOSTS = st.tuples(*(
    st.builds(
        make_host, st.just(name), st.integers(1, 6), st.integers(0, 3),
        st.sampled_from([False, False, True]),
        st.sampled_from([(), (), ('mine',), ('theirs',)]),
        st.sampled_from(['cheap', 'dear']),
    )
    for name in NAMES
))
WINDOWS = st.builds(
    lambda start, length: Window(start, start + length),
    st.integers(0, TIMES - 1), st.integers(1, TIMES),
)
PHYSICAL = st.builds(
    lambda n: ('physical:host', {'min': 1, 'max': n}), st.integers(1, 2)
)
FLAVOR = st.builds(
    lambda vcpus, gpus, amount, affinity: (
        'flavor:instance',
        {
            'resources': {
                c: n for c, n in (('VCPU', vcpus), (GPU, gpus)) if n
            },
            'amount': amount,
            'affinity': affinity,
        },
    ),
    st.integers(0, 2), st.integers(0, 2), st.integers(1, 3),
    st.sampled_from([None, None, True, False])
).filter(lambda made: made[1]['resources'])
RESERVATIONS = st.lists(PHYSICAL | FLAVOR, min_size=1, max_size=3)


def demand_of(resource_type, parameters):
    """Return a demand; `note` tells equal demands apart."""
    if resource_type not in ON_HOSTS:
        return Other(resource_type, parameters)
    asked = parameters.get('resource_properties', '')
    note = parameters.get('note')
    if resource_type == PHYSICAL_HOST:
        return Hosts(
            parameters['min'], parameters['max'],
            f'["not", ["==", "$note", "{note}"]]' if note else '', asked,
        )
    return Slots(
        parameters['resources'], parameters['amount'], parameters['affinity'],
        asked, flavor=Flavor(str(note), 'any', 0, 0, 0),
        asked_properties=parameters.get('asked_properties', ''),
    )


def make_lease(id, project_id, window, wanted):
    return Lease(
        id, id, project_id, 'user', window.start, window.end, 'PENDING',
        reservations=tuple(
            Reservation(f'{id}-{n}', id, 'pending', demand_of(*each))
            for n, each in enumerate(wanted)
        ),
    )


class Placements:
    """A replica, its hosts, and the leases placed on them."""

    def __init__(self, hosts, overcommit=True, group_limits=()):
        self.hosts = {h.uuid: h for h in hosts}
        self.replica = state.Replica(
            accounting.LedgerAccounting, overcommit=overcommit,
            group_limits=group_limits,
        )
        self.replica.load(0, map(record.encode, self.hosts.values()))
        self.allocations = {}

    def place(
        self, lease, window, active=False, options=DEFAULT_OPTIONS, settled=()
    ):
        """Place a lease and commit; return None if there is no room."""
        old = {
            r.id: self.allocations.get(r.id, []) for r in lease.reservations
        }
        before = self.look()
        try:
            placed = lease_placing.place(
                self.replica, lease, window, old, active=active,
                settled=settled, options=options,
            )
        except exception.NotEnoughHostsAvailable:
            placed = None
        assert self.look() == before
        if placed is None:
            return None
        gone = {a.id for many in old.values() for a in many}
        new = [a for many in placed.values() for a in many]
        self.replica.apply(self.replica.revision + 1, [
            *(
                (record.ALLOCATION, id_, None)
                for id_ in gone - {a.id for a in new}
            ),
            *map(record.encode, new),
        ])
        self.allocations |= placed
        return placed

    def look(self):
        """Return the whole content of the indexes."""
        return [
            (
                index.resource_classes,
                sorted(index.hosts),
                lanes.in_use(index, sorted(index.hosts), 99),
                {owner: sorted(index.held(owner)) for owner in self.owners},
            )
            for index in (
                self.replica.indexes.main,
                *self.replica.indexes.extra.values(),
                *filter(None, [self.replica.indexes.reserved]),
                *(each.index for each in self.replica.indexes.groups),
            )
        ]

    @property
    def owners(self):
        return list(self.allocations)

    def check(self):
        """Check second by second that nothing is allocated twice."""
        held = [a for many in self.allocations.values() for a in many]
        for at in range(3 * TIMES):
            for name, noun in self.hosts.items():
                here = [
                    a for a in held if a.host == name and a.start <= at < a.end
                ]
                used = sum((Counter(a.amounts) for a in here), Counter())
                for c, amount in used.items():
                    assert amount <= noun.capacity(c)
                assert len(here) < 2 or not any(a.whole for a in here)


def grow(noun, more):
    if noun.resource_type == PHYSICAL_HOST:
        return noun
    amount = noun.demand.amount + more
    return dataclasses.replace(
        noun, demand=dataclasses.replace(noun.demand, amount=amount)
    )
