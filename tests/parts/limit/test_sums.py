# SPDX-License-Identifier: Apache-2.0
"""The computed amounts and weights of leases equal sums made by hand."""

import types

import hypothesis
from hypothesis import strategies as st

from blazar_sched.domain import exception
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import Hosts
from blazar_sched.domain.demand import Slots
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.parts.limit.enforcement import MaxAmountsFilter
from blazar_sched.service.enforcement import base

GPU = 'CUSTOM_GPU'
# A host of a number has so many GPUs, and twice as many VCPUs.
HOSTS = [
    Host(str(n), str(n), str(n), inventory={
        'VCPU': Inventory(2 * n), GPU: Inventory(n),
    })
    for n in range(5)
]
# The instances, the GPUs and VCPUs of each, the whole hosts, and the hours.
ASKED = st.tuples(
    st.integers(0, 3), st.integers(0, 2), st.integers(1, 3),
    st.sets(st.integers(0, 4), max_size=2), st.integers(1, 3),
)
LIMIT = st.integers(-1, 60)
AMOUNT = st.none() | st.integers(0, 20)


def build(id_, asked):
    count, gpus, vcpus, _, hours = asked
    return Lease(
        id_, 'lease', 'p1', 'u1', 0, 3600 * hours, 'PENDING',
        reservations=(
            Reservation(
                f'{id_}-i', id_, 'pending',
                Slots({GPU: gpus, 'VCPU': vcpus}, count),
            ),
            Reservation(f'{id_}-h', id_, 'pending', Hosts(1, 9)),
        ),
    )


def placed(id_, asked):
    return {
        f'{id_}-h': [
            Allocation(f'{id_}-{n}', f'{id_}-h', str(n), 0, 1, whole=True)
            for n in asked[3]
        ],
        # What instances have is not counted twice.
        f'{id_}-i': [Allocation(id_, f'{id_}-i', '4', 0, 1, {GPU: 100})],
    }


def by_hand(*leases):
    """Return the GPUs, the VCPUs, the weight and the weight x hours."""
    sizes = [
        (count * gpus + sum(hosts), count * vcpus + 2 * sum(hosts), hours)
        for count, gpus, vcpus, hosts, hours in leases
    ]
    # A GPU weighs 10 and a VCPU 0.1: in tenths, that is exact.
    return (
        sum(gpus for gpus, _, _ in sizes),
        sum(vcpus for _, vcpus, _ in sizes),
        sum(100 * gpus + vcpus for gpus, vcpus, _ in sizes),
        sum((100 * gpus + vcpus) * hours for gpus, vcpus, hours in sizes),
    )


@hypothesis.given(
    st.lists(ASKED, max_size=4), ASKED, st.none() | ASKED,
    st.tuples(AMOUNT, AMOUNT, LIMIT), st.tuples(AMOUNT, AMOUNT, LIMIT, LIMIT),
    st.booleans(),
)
def test_resources_are_summed_up_as_by_hand(
    others, asked, before, single, all_, added
):
    def limits(gpus, vcpus):
        both = {GPU: gpus, 'VCPU': vcpus}
        return {name: n for name, n in both.items() if n is not None}

    group = types.SimpleNamespace(
        max_resources_exempt_project_ids=[],
        max_resources_per_lease=limits(*single[:2]),
        max_resources_per_project=limits(*all_[:2]),
        resource_weights={GPU: 10.0, 'VCPU': 0.1},
        max_weight_per_lease=single[2], max_weight_per_project=all_[2],
        max_weight_hours_per_project=all_[3], max_percent_per_project=-1,
        max_weight_hours_days=0,
    )
    lease = build('mine', asked)
    current = None if before is None else build('mine', before)
    held = {} if before is None else placed('mine', before)
    known = {str(n): other for n, other in enumerate(others)}
    stored = {} if added else known
    source = types.SimpleNamespace(
        open_leases=lambda p: [
            lease, *(build(id_, other) for id_, other in stored.items())
        ],
        whole_hosts=lambda p: [
            ('mine', '4'),
            *((id_, str(n)) for id_, each in stored.items() for n in each[3]),
        ],
        hosts=lambda uuids: [h for h in HOSTS if h.uuid in uuids],
    )
    project = base.Project(source, 'p1')
    if added:
        for id_, other in known.items():
            project.add(build(id_, other), placed(id_, other))

    def is_beyond(most, beside):
        return any(
            n not in (None, -1) and n * unit < now > without
            for n, unit, now, without in zip(
                most, (1, 1, 10, 10), by_hand(*beside, asked),
                by_hand(*beside), strict=True,
            )
        )

    beyond = is_beyond((*single, None), ()) or is_beyond(all_, others)
    filter_ = MaxAmountsFilter({'enforcement': group})
    change = base.LeaseChange(lease, current, 0, placed('mine', asked), held)
    if change.is_within:
        new, old = (
            base.amounts(each, project.hosts_of(hosts))
            for each, hosts in ((lease, change.placed), (current, held))
        )
        beyond &= not new <= old
    try:
        filter_.check(change, project)
        refused = False
    except exception.LimitExceeded:
        refused = True
    assert refused == beyond
