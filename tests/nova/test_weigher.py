# SPDX-License-Identifier: Apache-2.0
"""LeaseGapWeigher chooses between hosts that all pass."""

import math
import uuid

import pytest

from blazar_sched import filters
from blazar_sched import weighers
from blazar_sched.parts.simulate import scheduler
from blazar_sched.replica import accounting
from blazar_sched.replica import state
from blazar_sched.replica import wire
from blazar_sched.worker import process
from blazar_sched.worker import request
from demo import cloud
from tests.nova.conftest import lasting

pytestmark = pytest.mark.more

HOUR = 3600
DAY = 24 * HOUR


@pytest.fixture
def gaps(lab):
    """A lease in two, in five, and in twenty hours; c3 is not reservable."""
    lab.register('c1', 'c2', 'c4')
    lab.reserve('c1', start=20 * HOUR, end=2 * DAY)
    lab.reserve('c2', start=2 * HOUR, end=2 * DAY)
    lab.reserve('c4', start=5 * HOUR, end=2 * DAY)
    return lab


def chosen(lab, flavor=None, hints=None):
    return cloud.host_of(lab.boot(flavor, hints))


@pytest.mark.row('F40')
@pytest.mark.parametrize(
    'hours, host', [(1, 'c2'), (3, 'c4'), (6, 'c1'), (30, 'c3')]
)
def test_bounded_goes_into_the_tightest_gap(gaps, hours, host):
    assert chosen(gaps, hints=lasting(hours * HOUR)) == host


@pytest.mark.row('F40')
def test_unbounded_goes_where_the_next_window_is_farthest(lab):
    lab.tell(unbounded='assume:1h')
    lab.register(*lab.cloud.hosts)
    for name, hours in (('c1', 2), ('c2', 20), ('c3', 5), ('c4', 3)):
        lab.reserve(name, start=hours * HOUR, end=2 * DAY)

    assert chosen(lab) == 'c2'


@pytest.mark.row('F109')
def test_instances_that_cannot_be_moved_share_hosts(lab):
    """Whole hosts remain for leases."""
    # Nova's weighers together prefer an empty host.
    lab.cloud.configure(lease_gap_weight_multiplier=9.0)
    lab.tell()
    lab.register(*lab.cloud.hosts, unbounded='relocate')
    fixed = lab.flavor(movable='false')
    first = lab.boot(fixed)
    lab.know(first)

    # What can be moved leaves the host to others that cannot.
    assert chosen(lab, lab.flavor(movable='true')) != cloud.host_of(first)
    assert chosen(lab, fixed) == cloud.host_of(first)
    # What ends within the notice does not keep a host from a lease.
    assert chosen(lab, fixed, lasting(HOUR)) != cloud.host_of(first)


@pytest.mark.row('F40')
def test_preemptible_goes_where_the_next_window_is_farthest(lab):
    lab.register(*lab.cloud.hosts)
    for name, hours in (('c1', 2), ('c2', 5), ('c3', 20), ('c4', 3)):
        lab.reserve(name, start=hours * HOUR, end=2 * DAY)

    assert chosen(lab, lab.flavor(preemptible='true')) == 'c3'


@pytest.fixture
def crowded(lab):
    """Equal gaps; preemptible servers are on all hosts but c4, the fullest."""
    lab.register(*lab.cloud.hosts)
    lab.reserve(*lab.cloud.hosts, start=5 * HOUR, end=2 * DAY)
    preemptible = lab.flavor(preemptible='true')
    for name in ('c1', 'c2', 'c3'):
        server = lab.boot(preemptible, host=name)
        lab.know(server, preemptible=True)
    for _ in range(2):
        lab.know(lab.boot(hints=lasting(HOUR), host='c4'), end=HOUR)
    return lab


@pytest.mark.row('F40')
def test_preemptible_goes_where_the_least_has_to_be_vacated(crowded):
    crowded.cloud.configure(vacate_cost_weight_multiplier=10.0)

    assert chosen(crowded, crowded.flavor(preemptible='true')) == 'c4'


def test_zero_multiplier_turns_it_off(gaps):
    """Nova's own weighers decide then: they spread servers."""
    gaps.cloud.configure(lease_gap_weight_multiplier=0.0)
    first = chosen(gaps, hints=lasting(HOUR))

    assert chosen(gaps, hints=lasting(HOUR)) != first


def test_aggregate_may_override_the_multiplier(gaps):
    api = gaps.cloud.api
    aggregate = api.post_aggregate(
        {'aggregate': {'name': 'turned', 'availability_zone': None}}
    )
    for name in gaps.cloud.hosts:
        api.add_host_to_aggregate(aggregate['id'], name)
    api.post_aggregate_action(
        aggregate['id'],
        {'set_metadata': {'metadata': {
            'lease_gap_weight_multiplier': '-1.0'
        }}},
    )
    try:
        assert chosen(gaps, hints=lasting(HOUR)) == 'c3'
    finally:
        for name in gaps.cloud.hosts:
            api.post_aggregate_action(
                aggregate['id'], {'remove_host': {'host': name}}
            )
        api.delete_aggregate(aggregate['id'])


def test_an_instance_is_read_once_until_anything_is_another(monkeypatch):
    """Nova has one RequestSpec for all instances of a request."""
    read = []
    clock = [1000]
    replica = state.Replica(accounting.SchedulerAccounting)
    really_read = request.read_request

    def spy(spec, *args):
        read.append((spec.instance_uuid, replica.revision, clock[0]))
        return really_read(spec, *args)

    monkeypatch.setattr(request, 'read_request', spy)
    one, two = str(uuid.uuid4()), str(uuid.uuid4())
    spec = scheduler.spec(one, 1, 512)

    def ask():
        for host_filter in filters.all_filters():
            host_filter().filter_all([], spec)
        for weigher in weighers.all_weighers():
            weigher().weigh_objects([], spec)

    with process.following(replica, lambda: clock[0]):
        ask()
        spec.instance_uuid = two
        ask()
        replica.apply(7, [])
        ask()
        clock[0] += 1
        ask()

    assert read == [(one, 0, 1000), (two, 0, 1000), (two, 7, 1000),
                    (two, 7, 1001)]


class TestNothingToSay:
    """All weights are zero, and the boot succeeds."""

    @pytest.fixture
    def weights(self, monkeypatch):
        """Return the weights of each call."""
        from blazar_sched.weighers import lease_gap

        given = []
        weigh = lease_gap.LeaseGapWeigher.weigh_objects

        def spy(self, *args):
            given.append(weigh(self, *args))
            return given[-1]

        monkeypatch.setattr(lease_gap.LeaseGapWeigher, 'weigh_objects', spy)
        return given

    def test_no_replica(self, lab, weights):
        lab.end_point.answer = lambda: None
        process.stop()
        process.ensure_started()

        lab.boot()

        assert weights == [[0.0] * 4]

    def test_stale_replica(self, gaps, weights):
        gaps.cloud.configure(max_age=1)
        gaps.end_point.answer = lambda: wire.changes_page(
            'x', 0, 0, [], 0
        ) | {'oldest': wire.WIRE_VERSION + 1}
        cloud.wait_for('stale', lambda: process.current()[1])

        gaps.boot()

        # on_stale leaves one host, and Nova calls no weigher then.
        assert weights == []
        gaps.cloud.configure(on_stale='open')
        gaps.boot()
        assert weights == [[0.0] * 4]

    def test_error_of_its_own(self, gaps, weights, monkeypatch):
        from blazar_sched.weighers import lease_gap

        def broken(*args):
            raise RuntimeError('broken weigher')

        monkeypatch.setattr(lease_gap.LeaseGapWeigher, 'weigh', broken)

        gaps.boot(hints=lasting(HOUR))

        [found] = weights
        assert len(found) > 1 and set(found) == {0.0}

    def test_weights_are_finite(self, gaps, weights):
        """F12: one NaN would make every host's weight NaN."""
        for hints in (None, lasting(1), lasting(100 * 365 * DAY)):
            gaps.cloud.boot(gaps.flavor(), hints)

        assert all(math.isfinite(w) for given in weights for w in given)
