# SPDX-License-Identifier: Apache-2.0
"""The computed sizes of leases equal sums made by hand."""

import types

import hypothesis
from hypothesis import strategies as st

from blazar_sched.domain import exception
from blazar_sched.domain.demand import Hosts
from blazar_sched.domain.demand import Slots
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.parts.limit import size
from blazar_sched.service.enforcement import base

RESERVATIONS = st.lists(
    st.tuples(st.booleans(), st.integers(1, 5)), max_size=4
)
LIMIT = st.integers(-1, 12)


def build(id_, asked):
    return Lease(
        id_, 'lease', 'p1', 'u1', 0, 1, 'PENDING',
        reservations=tuple(
            Reservation(
                str(n), id_, 'pending',
                Hosts(1, count) if whole else Slots({'VCPU': 1}, count),
            )
            for n, (whole, count) in enumerate(asked)
        ),
    )


@hypothesis.given(
    st.lists(RESERVATIONS, max_size=4), RESERVATIONS, st.none() | RESERVATIONS,
    st.tuples(LIMIT, LIMIT, LIMIT, LIMIT),
)
def test_sizes_are_summed_up_as_by_hand(others, asked, before, most):
    names = (
        'max_hosts_per_lease', 'max_instances_per_lease',
        'max_hosts_per_project', 'max_instances_per_project',
    )
    group = types.SimpleNamespace(
        max_size_exempt_project_ids=[], **dict(zip(names, most, strict=True))
    )
    lease = build('mine', asked)
    current = None if before is None else build('mine', before)
    leases = [build(str(n), o) for n, o in enumerate(others)]
    source = types.SimpleNamespace(open_leases=lambda p: [*leases, lease])

    def hosts(many):
        return sum(count for whole, count in many if whole)

    def instances(many):
        return sum(count for whole, count in many if not whole)

    beyond = False
    for count, single, all_ in (
        (hosts, most[0], most[2]), (instances, most[1], most[3]),
    ):
        new, rest = count(asked), sum(map(count, others))
        beyond |= new > 0 and (-1 < single < new or -1 < all_ < rest + new)
    filter_ = size.MaxSizeFilter({'enforcement': group})
    change = base.LeaseChange(lease, current, 0)
    beyond &= not change.is_within
    try:
        filter_.check(change, base.Project(source, 'p1'))
        refused = False
    except exception.LimitExceeded:
        refused = True
    assert refused == beyond


def test_each_lease_of_a_project_is_counted_once():
    """Else a series of a thousand leases would count each a thousand times."""
    counted = []

    def one(project, lease):
        counted.append(lease.id)
        return {'leases': 1}

    a, b, c = (build(id_, [(False, 1)]) for id_ in 'abc')
    project = base.Project(
        types.SimpleNamespace(open_leases=lambda p: [a, b]), 'p1'
    )
    assert project.sums(one) == {'leases': 2}
    assert project.sums(one, c) == {'leases': 2}
    project.add(c, {})
    assert project.sums(one) == {'leases': 3}
    assert counted == ['a', 'b', 'c']
    assert project.sums(one, a) == {'leases': 2}
