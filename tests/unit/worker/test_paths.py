# SPDX-License-Identifier: Apache-2.0
"""LifetimeFilter with `unbounded = relocate`, host by host."""

import dataclasses

from hypothesis import example
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import window
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import Stay
from blazar_sched.filters import lifetime_filter
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.worker import paths
from blazar_sched.worker import process
from tests import overriding
from tests.unit.worker.test_decision import a_host
from tests.unit.worker.test_decision import a_host_state
from tests.unit.worker.test_decision import a_request
from tests.unit.worker.test_decision import a_reservation
from tests.unit.worker.test_decision import an_allocation
from tests.unit.worker.test_decision import decide
from tests.unit.worker.test_decision import GPU
from tests.unit.worker.test_decision import HOUR
from tests.unit.worker.test_decision import id_of
from tests.unit.worker.test_decision import NOW

DAY = 86400
OPTIONS = {
    'unbounded': 'relocate', 'relocation_lead': 600,
    'relocation_shortest_stay': 600, 'relocation_notice': DAY,
    'relocation_headroom': 0.0, 'relocation_host_headroom': 0.0,
    'relocation_ways': {'disk': 'live'}, 'relocation_moves': 3,
    'unbounded_fixed': 'forever',
}


@pytest.fixture(autouse=True)
def options():
    with overriding.options(**OPTIONS) as override:
        yield override


def a_replica(*nouns):
    replica = state.Replica(accounting.SchedulerAccounting, relocating=True)
    replica.advance(NOW)
    replica.load(7, map(record.encode, nouns))
    return replica


def leased(on, start=2 * DAY, hours=24, vcpus=0, gpus=0):
    """Return a reservation of a host, or of a part, with its allocation."""
    of = a_reservation(on, start, start + hours * HOUR)
    return of, an_allocation(on, on, of, vcpus, gpus)


def passing(replica, host_states, spec):
    found, _ = decide(replica, host_states, spec)
    return [each.nodename for each in found]


def states(*numbers, **fields):
    return [a_host_state(n, **fields) for n in numbers]


def test_a_host_passes_if_another_one_has_room_later():
    replica = a_replica(a_host(0), a_host(1), *leased(0))
    assert passing(replica, states(0), a_request()) == ['c0']


def test_a_host_that_nova_does_not_offer_now_may_be_the_later_one():
    """Host c1 is full now, by a server that ends before it is needed."""
    there = Instance(
        id_of('instance', 9), id_of('host', 1), 'p', {'VCPU': 8}, NOW + DAY
    )
    replica = a_replica(a_host(0), a_host(1), there, *leased(0))
    assert passing(replica, states(0), a_request()) == ['c0']
    forever = dataclasses.replace(there, end=window.FOREVER)
    replica = a_replica(a_host(0), a_host(1), forever, *leased(0))
    assert passing(replica, states(0), a_request()) == []


def test_hosts_of_an_aggregate_have_a_way_of_their_own(options):
    """The way to leave the host takes longer than there is time."""
    options(relocation_cold_notice=2 * DAY)
    lease = leased(0)
    for way, expected in (('live', ['c0']), ('cold', []), ('', [])):
        hosts = [a_host(n, movable=way) for n in range(2)]
        replica = a_replica(*hosts, *lease)
        assert passing(replica, states(0), a_request()) == expected
    options(relocation_cold_notice=DAY)
    hosts = [a_host(n, movable='cold') for n in range(2)]
    replica = a_replica(*hosts, *lease)
    assert passing(replica, states(0), a_request()) == ['c0']


def test_a_place_that_is_booked_is_taken():
    path = (
        Stay(id_of('host', 0), NOW, NOW + 2 * DAY),
        Stay(id_of('host', 1), NOW + 2 * DAY - 600, window.FOREVER),
    )
    booked = Instance(
        id_of('instance', 9), id_of('host', 0), 'p', {'VCPU': 8}, path=path
    )
    replica = a_replica(a_host(0), a_host(1), booked, *leased(0))
    assert passing(replica, states(1), a_request()) == []
    short = a_request(lifetime='1d')
    assert passing(replica, states(1), short) == ['c1']


@pytest.mark.parametrize('other', [
    {'unbounded': 'never'}, {'hold': 'dedicated'}, {'disabled': True},
    {'reservable': False}, {'availability_zone': 'other'},
    {'unbounded': 'assume:1d'}, {'movable': 'cold'}, {'movable': ''},
])
def test_not_every_host_takes_relocated_instances(other):
    replica = a_replica(a_host(0), a_host(1, **other), *leased(0))
    assert passing(replica, states(0), a_request()) == []


def test_a_host_of_its_own_policy(options):
    options(unbounded='never')
    hosts = [a_host(0, unbounded='relocate'), a_host(1), a_host(2)]
    replica = a_replica(*hosts, *leased(0))
    # The other hosts follow the cloud, and take no unbounded instances.
    assert passing(replica, states(0, 1, 2), a_request()) == ['c0']


@pytest.mark.row('F109')
@pytest.mark.parametrize('cloud, own', [
    ('relocate', None), ('never', 'relocate'),
])
@pytest.mark.parametrize('fixed, expected', [
    ('forever', ['c1']), ('never', []), ('assume:1d', ['c0', 'c1']),
    ('assume:3d', ['c1']),
])
def test_an_instance_that_cannot_be_moved_has_a_rule_of_its_own(
    options, cloud, own, fixed, expected
):
    options(unbounded=cloud, unbounded_fixed=fixed, relocation_ways={})
    hosts = [a_host(n, unbounded=own) for n in range(2)]
    replica = a_replica(*hosts, *leased(0))

    def passing_(**request):
        return passing(replica, states(0, 1), a_request(**request))

    assert passing_() == expected
    assert passing_(root_gb=0, movable='false') == expected
    assert passing_(root_gb=0) == ['c0', 'c1']
    # Who declares an end gets no less.
    assert passing_(lifetime='4d') == (expected or ['c1'])
    assert passing_(lifetime='1h') == ['c0', 'c1']


FIXED = {'vcpus': 4, 'root_gb': 0, 'movable': 'false'}


@pytest.mark.row('F109')
def test_instances_that_cannot_be_moved_hold_at_most_their_share(options):
    options(unbounded_fixed='share:0.5')
    replica = a_replica(a_host(0), a_host(1))
    fixed, movable = a_request(**FIXED), a_request(4, root_gb=0)
    both = ['c0', 'c1']
    assert passing(replica, states(0, 1), fixed) == both

    def know(*numbers, **fields):
        replica.apply(replica.revision + 1, [
            record.encode(Instance(
                id_of('instance', n), id_of('host', 0), 'p', {'VCPU': 4},
                **fields,
            ))
            for n in numbers
        ])

    know(8, movable='live')
    assert passing(replica, states(0, 1), fixed) == both
    know(8, 9)
    assert passing(replica, states(0, 1), fixed) == []
    assert passing(replica, states(0, 1), movable) == both
    assert 'see unbounded_fixed' in reason(replica, fixed)
    # What ends within the notice holds nothing.
    know(8, end=NOW + DAY)
    assert passing(replica, states(0, 1), fixed) == both


def test_a_fixed_instance_within_the_share_needs_a_host_for_ever(options):
    options(unbounded_fixed='share:0.5')
    replica = a_replica(a_host(0), a_host(1), *leased(0))
    assert passing(replica, states(0, 1), a_request(**FIXED)) == ['c1']


def test_a_long_fixed_lifetime_counts_in_the_share(options):
    options(unbounded_fixed='share:0.25')
    replica = a_replica(a_host(0), a_host(1), *leased(0, start=4 * DAY))
    long = a_request(lifetime='3d', **FIXED)
    assert passing(replica, states(0, 1), long) == ['c0', 'c1']
    longer = a_request(lifetime='5d', **FIXED)
    assert passing(replica, states(0, 1), longer) == ['c1']
    options(unbounded_fixed='share:0.2')
    assert passing(replica, states(0, 1), long) == []
    assert passing(
        replica, states(0, 1), a_request(lifetime='1d', **FIXED)
    ) == ['c0', 'c1']


def test_fixed_instances_placed_just_now_count_in_the_share(options):
    options(unbounded_fixed='share:0.5')
    replica = a_replica(a_host(0), a_host(1))
    placed = [
        Instance(id_of('instance', n), id_of('host', 1), 'p', {'VCPU': 4})
        for n in (7, 8)
    ]
    with process.following(replica, lambda: NOW):
        pending = process.ensure_started().pending
        for each, expected in zip(placed, (['c0', 'c1'], []), strict=True):
            pending.add(each, 60)
            found = lifetime_filter.LifetimeFilter().filter_all(
                states(0, 1), a_request(**FIXED)
            )
            assert [each.nodename for each in found] == expected


@pytest.mark.row('F109')
def test_instances_that_cannot_be_moved_leave_whole_hosts_to_leases(options):
    options(relocation_host_headroom=0.5)
    replica = a_replica(*map(a_host, range(4)), *leased(0))
    fixed, every = a_request(**FIXED), ['c0', 'c1', 'c2', 'c3']

    def know(end=window.FOREVER):
        replica.apply(replica.revision + 1, [record.encode(Instance(
            id_of('instance', 8), id_of('host', 1), 'p', {'VCPU': 4}, end=end,
        ))])

    def passing_(**request):
        return passing(replica, states(0, 1, 2, 3), a_request(**request))

    assert passing_(**FIXED) == every[1:]
    know()
    assert passing_(**FIXED) == ['c1']
    assert 'see unbounded_fixed' in reason(replica, fixed)
    assert passing_(vcpus=4, root_gb=0) == every
    # Before the lease starts, another host may be taken.
    assert passing_(**FIXED, lifetime='36h') == every
    # The host of an instance that ends before the others is no new one.
    know(end=NOW + 4 * DAY)
    assert passing_(**FIXED) == ['c1']


def test_hosts_of_instances_placed_just_now_are_kept_from_leases(options):
    options(relocation_host_headroom=0.5)
    replica = a_replica(*map(a_host, range(4)), *leased(0))
    placed = Instance(id_of('instance', 7), id_of('host', 3), 'p', {'VCPU': 4})
    with process.following(replica, lambda: NOW):
        process.ensure_started().pending.add(placed, 60)
        found = lifetime_filter.LifetimeFilter().filter_all(
            states(1, 2, 3), a_request(**FIXED)
        )
        assert [each.nodename for each in found] == ['c3']


def test_what_is_not_asked_for_may_be_beyond_the_share(options):
    options(unbounded_fixed='share:0.5')
    replica = a_replica(a_host(0, gpus=2), a_host(1, gpus=2))
    placed = Instance(
        id_of('instance', 7), id_of('host', 1), 'p', {'VCPU': 1, GPU: 4}
    )
    with process.following(replica, lambda: NOW):
        process.ensure_started().pending.add(placed, 60)
        for gpus, expected in (0, ['c0', 'c1']), (1, []):
            found = lifetime_filter.LifetimeFilter().filter_all(
                states(0, 1), a_request(**FIXED, gpus=gpus)
            )
            assert [each.nodename for each in found] == expected
        # What was placed on a host that has left the ledger holds nothing.
        replica.apply(8, [(record.HOST, id_of('host', 1), None)])
        assert lifetime_filter.LifetimeFilter().filter_all(
            states(0), a_request(**FIXED, gpus=1)
        )


def test_a_cloud_without_leases_keeps_no_headroom(options):
    options(relocation_headroom=1.0)
    alone = Instance(
        id_of('instance', 9), id_of('host', 0), 'p', {'VCPU': 8},
        path=(Stay(id_of('host', 0), NOW + DAY, window.FOREVER),),
    )
    replica = a_replica(a_host(0), a_host(1), alone)
    assert passing(replica, states(0), a_request()) == ['c0']
    replica = a_replica(a_host(0), a_host(1), *leased(0))
    assert passing(replica, states(0), a_request()) == []


def test_a_long_lifetime_is_relocated_too(options):
    replica = a_replica(a_host(0), a_host(1), *leased(0))
    long = a_request(lifetime='3d')
    assert passing(replica, states(0), long) == ['c0']
    options(unbounded='never')
    assert passing(replica, states(0), long) == []


def test_a_host_that_does_not_relocate_takes_what_ends_in_time():
    replica = a_replica(a_host(0, unbounded='never'), a_host(1), *leased(0))
    for lifetime, found in (('1h', ['c0']), ('2d', ['c0']), ('3d', [])):
        spec = a_request(lifetime=lifetime)
        assert passing(replica, states(0), spec) == found


def test_a_declared_end_needs_no_more_than_is_assumed_without_one():
    hosts = a_host(0, unbounded='assume:1d'), a_host(1)
    replica = a_replica(*hosts, *leased(0))
    for lifetime in ({}, {'lifetime': '3d'}):
        assert passing(replica, states(0), a_request(**lifetime)) == ['c0']


@pytest.mark.parametrize('headroom, vcpus, found', [
    (0.5, 4, ['c0']), (0.5, 5, []), (0.4, 5, ['c0']), (0.4, 7, []),
])
def test_headroom_is_kept_of_all_hosts_together(
    options, headroom, vcpus, found
):
    options(relocation_headroom=headroom)
    replica = a_replica(a_host(0), a_host(1), *leased(0, vcpus=4))
    assert passing(replica, states(0), a_request(vcpus)) == found


def test_no_headroom_is_kept_of_short_lifetimes(options):
    options(relocation_headroom=1.0)
    replica = a_replica(a_host(0), a_host(1), *leased(0, start=HOUR))
    assert passing(replica, states(0), a_request()) == []
    short = a_request(lifetime='2h')
    assert passing(replica, states(0), short) == ['c0']


def leavable(lease, *on):
    """Return a lease that can leave some hosts."""
    of, allocation = lease
    hosts = tuple(id_of('host', n) for n in on)
    return dataclasses.replace(of, leavable=hosts), allocation


def test_a_lease_leaves_a_host_for_an_instance_that_is_not_moved(options):
    options(min_preemptible_runtime=HOUR)
    fixed, hosts = a_request(**FIXED), (a_host(0), a_host(1))
    for lease, found in ((leased(0), []), (leavable(leased(0), 0), ['c0'])):
        assert passing(a_replica(*hosts, *lease), states(0), fixed) == found
    replica = a_replica(*hosts, *leavable(leased(0), 0))
    # No lease is moved without need.
    assert passing(replica, states(0, 1), fixed) == ['c1']
    replica = a_replica(*hosts, *leavable(leased(0, start=900), 0))
    assert passing(replica, states(0), fixed) == ['c0']
    # No lease leaves for a preemptible instance, which yields to the lease.
    preemptible = a_request(preemptible=True, **FIXED)
    assert passing(replica, states(0), preemptible) == ['c0']


def test_a_lease_leaves_a_host_where_no_other_host_passes():
    """Host c1 has room to the end, but not beside a preemptible server."""
    guest = Instance(
        id_of('instance', 9), id_of('host', 1), 'p', {'VCPU': 5}, NOW + DAY,
        preemptible=True,
    )
    replica = a_replica(a_host(0), a_host(1), guest, *leavable(leased(0), 0))
    assert passing(replica, states(0, 1), a_request(**FIXED)) == ['c0']


def test_a_lease_that_starts_soon_or_cannot_leave_is_in_the_way():
    fixed, hosts = a_request(**FIXED), (a_host(0), a_host(1))
    soon = leavable(leased(0, start=600), 0)
    assert passing(a_replica(*hosts, *soon), states(0), fixed) == []
    elsewhere = leavable(leased(0), 1)
    assert passing(a_replica(*hosts, *elsewhere), states(0), fixed) == []


def test_a_lease_leaves_a_host_for_the_devices_of_an_instance():
    """Both hosts have the VCPUs, and no device that is not reserved."""
    hosts = [a_host(0, gpus=1), a_host(1, gpus=1)]
    of, other = leased(0, gpus=1), leased(1, gpus=1)
    fixed = a_request(gpus=1)
    replica = a_replica(*hosts, *of, *other)
    assert passing(replica, states(0, 1), fixed) == []
    replica = a_replica(*hosts, *of, *leavable(other, 1))
    assert passing(replica, states(0, 1), fixed) == ['c1']


def test_other_resource_classes_need_a_path_too():
    hosts = [a_host(0, gpus=2), a_host(1, gpus=1)]
    lease = leased(0, gpus=2)
    replica = a_replica(*hosts, *lease)
    one, two = (a_request(gpus=n, movable='true') for n in (1, 2))
    assert passing(replica, states(0), one) == ['c0']
    assert passing(replica, states(0), two) == []
    assert passing(replica, states(0), a_request()) == ['c0']


def test_an_instance_with_devices_can_stay_unless_it_can_be_moved():
    hosts = [a_host(0, gpus=2), a_host(1, gpus=2), a_host(2)]
    replica = a_replica(*hosts, *leased(0, gpus=2))
    assert passing(replica, states(0, 1), a_request(gpus=1)) == ['c1']
    can = a_request(gpus=1, movable='true')
    assert passing(replica, states(0, 1), can) == ['c0', 'c1']


def test_a_path_leads_only_to_hosts_with_the_devices():
    replica = a_replica(a_host(0, gpus=1), a_host(1), *leased(0, gpus=1))
    can = a_request(gpus=1, movable='true')
    assert passing(replica, states(0), can) == []
    assert passing(replica, states(0), a_request()) == ['c0']


def reason(replica, spec, host='c0'):
    """Return what is told of one host, which is offered alone."""
    _, told = decide(replica, states(int(host[1:])), spec)
    return told[-1]['hosts'].get(host)


def test_a_refusal_for_headroom_says_so(options):
    options(relocation_headroom=1.0)
    replica = a_replica(a_host(0), a_host(1), *leased(0))
    assert 'headroom' in reason(replica, a_request())


# What is told of host c0, which is reserved two days after NOW.
WHOLE = 'the whole host is reserved from 2027-01-17T08:00:00Z on, and '
FIRST = 'c0 until 2027-01-17T08:00:00Z'


def test_a_path_is_shown_by_which_a_host_passes(options):
    replica = a_replica(
        a_host(0), a_host(1), a_host(2), *leased(0, hours=999),
        *leased(1, start=5 * DAY), *leased(2, start=DAY),
    )
    assert reason(replica, a_request()) == (
        f'the host passed, by a relocation path: {FIRST}, then c1 until '
        '2027-01-20T08:00:00Z, then c2 for ever'
    )
    long = a_request(lifetime='3d')
    assert reason(replica, long) == (
        f'the host passed, by a relocation path: {FIRST}, then c1 until '
        '2027-01-18T08:00:00Z'
    )


def test_no_path_is_shown_where_an_instance_stays():
    replica = a_replica(a_host(0), a_host(1), *leased(0))
    assert reason(replica, a_request(), 'c1') is None
    assert reason(replica, a_request(lifetime='1d')) is None


def test_the_booked_path_is_shown_where_the_instance_has_come():
    replica = a_replica(a_host(0), a_host(1), a_host(2), *leased(0))
    spec = a_request(8)
    decide(replica, states(0, 2), spec)
    path = (
        Stay(id_of('host', 0), NOW, NOW + 2 * DAY),
        Stay(id_of('host', 2), NOW + 2 * DAY - 600, window.FOREVER),
    )
    booked = Instance(
        spec.instance_uuid, id_of('host', 0), 'p1',
        {'VCPU': 8, 'MEMORY_MB': 512, 'DISK_GB': 1}, path=path, movable='live',
    )
    with process.following(replica, lambda: NOW):
        each = lifetime_filter.LifetimeFilter()
        assert len(each.filter_all(states(0), spec)) == 1
        kept = process.ensure_started().decisions
        kept.settle(replica)
        replica.apply(8, [record.encode(booked)])

        [told] = kept.explain(replica, spec.instance_uuid)

    assert (told['revision'], told['explained_by']) == (7, 8)
    assert told['hosts'] == {
        'c0': f'the host passed, by a relocation path: {FIRST}, then c2 for '
        'ever'
    }


def test_a_refusal_without_another_host_says_when_it_would_need_one():
    far = a_host(1, availability_zone='other')
    replica = a_replica(a_host(0), far, *leased(0))
    assert reason(replica, a_request()) == (
        f'{WHOLE}requested for ever; no relocation path: {FIRST}, then no '
        'other host has room from 2027-01-17T07:50:00Z until after '
        '2027-01-17T08:00:00Z'
    )


def test_a_refusal_of_a_short_stay_says_how_short(options):
    options(relocation_shortest_stay=3 * DAY)
    replica = a_replica(a_host(0), a_host(1), *leased(0))
    assert reason(replica, a_request()) == (
        f'{WHOLE}requested for ever; no relocation path: the host has room '
        'for 172800 s, and an instance that has to be moved is started for '
        '259200 s at least'
    )


def test_a_refusal_of_too_many_moves_says_how_many(options):
    options(relocation_moves=1)
    replica = a_replica(
        a_host(0), a_host(1), a_host(2), *leased(0, hours=999),
        *leased(1, start=5 * DAY), *leased(2, start=4 * DAY),
    )
    assert reason(replica, a_request()) == (
        f'{WHOLE}requested for ever; no relocation path: {FIRST}, then c1 '
        'until 2027-01-20T08:00:00Z, and more than 1 moves would be necessary'
    )


def test_a_refusal_for_another_resource_class_names_the_class():
    hosts = [a_host(0, gpus=2), a_host(1, gpus=1)]
    replica = a_replica(*hosts, *leased(0, gpus=2))
    assert reason(replica, a_request(gpus=2, movable='true')) == (
        'from 2027-01-17T08:00:00Z on: 0 CUSTOM_GPU left, 2 requested for '
        f'ever; no relocation path: {FIRST}, then no other host has room from '
        '2027-01-17T07:50:00Z until after 2027-01-17T08:00:00Z'
    )


def test_a_host_that_was_not_needed_says_so():
    """Paths are looked for only until enough hosts pass."""
    others = range(1, paths.ENOUGH + 1)
    replica = a_replica(*map(a_host, (0, *others)), *leased(0))
    spec = a_request()
    _, told = decide(replica, states(0, *others), spec)
    assert told[-1]['passed'] == paths.ENOUGH
    assert told[-1]['hosts']['c0'] == (
        'no relocation path was looked for, as enough other hosts passed: '
        f'{FIRST}, then c1 for ever'
    )


def test_an_instance_passes_where_it_has_its_own_allocation():
    """The live migration along a path."""
    path = (
        Stay(id_of('host', 0), NOW - DAY, NOW + 600),
        Stay(id_of('host', 1), NOW, window.FOREVER),
    )
    own = Instance(
        id_of('instance', 0), id_of('host', 0), 'p1',
        {'VCPU': 8, 'MEMORY_MB': 512, 'DISK_GB': 1}, path=path, movable='live',
    )
    replica = a_replica(a_host(0), a_host(1), own, *leased(0, start=600))
    assert passing(replica, states(1), a_request(8)) == ['c1']
    other = a_request(1, number=5)
    assert passing(replica, states(1), other) == []


def moving(vcpus, left_at, arrives_at):
    """A server on c0 that goes to c1 before c0 is leased as a whole."""
    own = Instance(
        id_of('instance', 0), id_of('host', 0), 'p1',
        {'VCPU': vcpus, 'MEMORY_MB': 512, 'DISK_GB': 1}, movable='live',
        path=(
            Stay(id_of('host', 0), NOW - DAY, NOW + left_at),
            Stay(id_of('host', 1), NOW + arrives_at, window.FOREVER),
        ),
    )
    return a_replica(
        a_host(0), a_host(1), own, *leased(0, start=left_at),
        *leased(1, start=HOUR, hours=200, vcpus=4),
    )


def test_a_booked_host_is_for_an_instance_that_does_not_grow():
    replica = moving(2, 600, 0)
    full = states(1, vcpus_used=7)
    assert passing(replica, full, a_request(1)) == ['c1']
    assert passing(replica, full, a_request(2)) == ['c1']
    for vcpus in (3, 8):
        assert passing(replica, full, a_request(vcpus)) == []
    assert passing(replica, states(1), a_request(2, root_gb=2)) == ['c1']
    assert passing(replica, states(1), a_request(5)) == []


@pytest.mark.parametrize('vcpus, expected', [(2, 1), (4, 1), (5, 0), (8, 0)])
def test_a_path_has_room_for_all_of_an_instance_that_grows(vcpus, expected):
    """Only the growth is new on the host on which the instance is."""
    replica = moving(2, 2 * HOUR, 2 * HOUR - 600)
    here = states(0, vcpus_used=2, here=[id_of('instance', 0)])
    assert len(passing(replica, here, a_request(vcpus))) == expected


def placed(number=5, vcpus=8, **fields):
    """A server that a worker has placed on c0, and that goes to c1 later."""
    return Instance(
        id_of('instance', number), id_of('host', 0), 'p1',
        {'VCPU': vcpus, 'MEMORY_MB': 512, 'DISK_GB': 1}, movable='live',
        building=True, **{'path': (
            Stay(id_of('host', 0), NOW, NOW + 2 * DAY),
            Stay(id_of('host', 1), NOW + 2 * DAY - 600, window.FOREVER),
        ), **fields},
    )


def passing_beside(pending, replica, host_states, spec):
    """Return the hosts that pass beside servers placed a moment ago."""
    with process.following(replica, lambda: NOW):
        for each in pending:
            process.ensure_started().pending.add(each, 60)
        return [
            each.nodename for each in
            lifetime_filter.LifetimeFilter().filter_all(host_states, spec)
        ]


@pytest.mark.parametrize('vcpus, room', [(7, True), (8, False)])
def test_the_later_place_of_a_server_placed_a_moment_ago_is_taken(vcpus, room):
    """The replica does not have the server yet."""
    replica = a_replica(a_host(0), a_host(1), *leased(0))
    # HostState has counted the server on c0 already.
    small = placed(vcpus=vcpus)
    here = states(0, here=[small.uuid])
    found = passing_beside([small], replica, here, a_request())
    assert found == (['c0'] if room else [])


def test_whoever_stays_counts_the_later_place_beside_itself():
    replica = a_replica(a_host(0), a_host(1), *leased(0))
    assert passing_beside([], replica, states(1), a_request()) == ['c1']
    assert passing_beside([placed()], replica, states(1), a_request()) == []


@pytest.mark.parametrize('fields', [
    {'preemptible': True}, {'reservation_id': 'r'},
])
def test_who_does_not_count_for_itself_takes_no_later_place(fields):
    replica = a_replica(a_host(0), a_host(1), *leased(0))
    there = dataclasses.replace(
        placed(), host=id_of('host', 1), path=(), **fields
    )
    assert passing_beside([there], replica, states(0), a_request()) == ['c0']


def test_the_record_counts_in_place_of_the_placement():
    """Once the replica has the server, the path of its record counts."""
    recorded = placed(vcpus=2, path=())
    replica = a_replica(a_host(0), a_host(1), recorded, *leased(0))
    here = states(0, here=[recorded.uuid])
    assert passing_beside([placed()], replica, here, a_request()) == ['c0']


def with_gpus(gpus, **fields):
    """A server with GPUs and one VCPU that a worker has placed."""
    of = placed(vcpus=1, **fields)
    own = {GPU: gpus} if gpus else {}
    return dataclasses.replace(of, amounts=of.amounts | own)


@pytest.mark.parametrize('gpus, room', [(0, True), (1, False)])
def test_the_devices_of_a_server_placed_a_moment_ago_are_taken_later(
    gpus, room
):
    """Host c1 has one GPU, which one of the two servers needs later."""
    hosts = [a_host(0, gpus=2), a_host(1, gpus=1)]
    replica = a_replica(*hosts, *leased(0, gpus=2))
    small = with_gpus(gpus)
    here = states(0, here=[small.uuid])
    can = a_request(gpus=1, movable='true')
    found = passing_beside([small], replica, here, can)
    assert found == (['c0'] if room else [])


def test_the_devices_of_a_server_placed_a_moment_ago_are_taken_here():
    """Host c0 has two GPUs, and nobody but the servers needs them."""
    hosts = [a_host(0, gpus=2), a_host(1, gpus=2)]
    replica = a_replica(*hosts)
    can = [a_request(gpus=n, movable='true') for n in (1, 2)]
    small = with_gpus(1, path=())
    found = [passing_beside([small], replica, states(0), each) for each in can]
    assert found == [['c0'], []]


leases = st.lists(st.tuples(
    st.integers(0, 4), st.integers(1, 6), st.integers(1, 3)
), max_size=14)


# Each path leads to host 0, so that no path leads from host 0.
ONE_TARGET = [(0, 2, 99), *[(n, n, 1) for n in (1, 2, 3, 4) for _ in 'ab']]


@given(leases, st.integers(1, 3), st.integers(1, 8), st.just(0))
@example(ONE_TARGET, 1, 3, 4)
@settings(deadline=None, max_examples=200)
def test_no_path_is_missed_after_two_hosts_without_one(
    leases, moves, vcpus, unrecorded
):
    """A host passes as if paths were looked for from each host."""
    nouns = [a_host(n) for n in range(5)]
    for n, (on, start, length) in enumerate(leases):
        of = a_reservation(n, start * DAY, (start + length) * DAY)
        nouns += [of, an_allocation(n, on, of, 5)]
    replica = a_replica(*nouns)
    here = states(0, vcpus_used=unrecorded) + states(*range(1, 5))
    with (
        pytest.MonkeyPatch.context() as patch,
        overriding.options(**OPTIONS | {'relocation_moves': moves}),
    ):
        found = passing(replica, here, a_request(vcpus))
        patch.setattr(paths, 'ALIKE', 99)
        assert found == passing(replica, here, a_request(vcpus))
