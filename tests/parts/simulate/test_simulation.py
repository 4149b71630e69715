# SPDX-License-Identifier: Apache-2.0
"""Small traces with known answers, through the real filters."""

import dataclasses
import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.way import NOT
from blazar_sched.filters import lifetime_filter
from blazar_sched.parts.simulate import cloud
from blazar_sched.parts.simulate import lease
from blazar_sched.parts.simulate import policy
from blazar_sched.parts.simulate import scheduler
from blazar_sched.parts.simulate import simulation
from blazar_sched.parts.simulate import trace

HOUR, DAY = 3600, 86400
START, END, SPAN = 2 * DAY, 3 * DAY, 4 * DAY
OPTIONS = {'unbounded': 'never', 'lease_gap_weight_multiplier': 1.0}
NO_TIMELINE = policy.without(policy.TIMELINE)
# Instances go to the host with the most room.
SPREADING = policy.without(policy.STACKING)


def host(name='h', vcpus=8, gpus=0):
    return trace.Host(name, vcpus, 16384, gpus)


def instance(
    arrival, lifetime, kind=trace.BOUNDED, vcpus=1, declared=None, gpus=0
):
    if declared is None and kind == trace.BOUNDED:
        declared = lifetime
    return trace.Instance(arrival, lifetime, vcpus, 512, kind, declared, gpus)


def whole(start=START, end=END, at=0, number=0):
    return lease.Booking(at, lease._lease(number, start, end, lease._hosts(1)))


def slots(count, start=START, end=END):
    return lease.Booking(
        0, lease._lease(0, start, end, sized(lease._instances(count), 1, 512))
    )


def sized(demand, vcpus, memory_mb):
    """Return a demand for slots of another size."""
    size = {'VCPU': vcpus, 'MEMORY_MB': memory_mb}
    return dataclasses.replace(demand, slot={**demand.slot, **size})


def played(*instances, by=policy.OURS, bookings=None, hosts=None, pool=1,
           migration_failure=0.0, **options):
    scenario = simulation.Scenario(
        hosts or [host()], instances,
        [whole()] if bookings is None else bookings, pool, SPAN,
        OPTIONS | options, migration_failure,
    )
    return simulation.simulate(scenario, by)


def test_what_ends_in_time_runs_on_a_host_that_is_reserved_later():
    found = played(instance(0, HOUR))
    assert not found.refused
    assert (found.late, found.evicted.total()) == (0, 0)


def test_freepool_refuses_it():
    found = played(instance(0, HOUR), by=policy.FREEPOOL)
    assert found.refused == {trace.BOUNDED: 1}
    assert found.refused_share == 1


def test_instance_that_would_still_run_is_refused():
    found = played(
        instance(START - HOUR, HOUR), instance(START - HOUR + 1, HOUR)
    )
    assert found.refused == {trace.BOUNDED: 1}


def test_a_host_of_the_pool_takes_what_declares_no_end_only_if_told_to():
    one = instance(0, HOUR, trace.UNBOUNDED)
    assert played(one, bookings=[]).refused == {trace.UNBOUNDED: 1}
    assert not played(one, bookings=[], unbounded='forever').refused
    assert played(one, unbounded='forever').refused.total() == 1


def test_a_host_outside_of_the_pool_takes_anybody():
    found = played(
        instance(0, DAY, trace.UNBOUNDED), hosts=[host('a'), host('b')],
        by=policy.FREEPOOL,
    )
    assert not found.refused


def test_a_host_that_is_full_now_takes_nobody():
    found = played(
        instance(0, HOUR, vcpus=8), instance(1, HOUR), instance(HOUR, HOUR),
        bookings=[],
    )
    assert found.refused == {trace.BOUNDED: 1}


def test_a_preemptible_instance_is_evicted_when_the_window_opens():
    found = played(instance(START - HOUR, DAY, trace.PREEMPTIBLE))
    assert found.evicted == {trace.PREEMPTIBLE: 1}
    assert found.late == 0
    # The lease, and an hour of one vCPU.
    assert found.utilisation == pytest.approx((8 * DAY + HOUR) / (8 * SPAN))


def test_no_more_than_needed_are_evicted_for_some_slots():
    found = played(
        *(
            instance(START - HOUR + n, DAY, trace.PREEMPTIBLE, vcpus=3)
            for n in range(2)
        ),
        bookings=[slots(4)],
    )
    assert found.evicted == {trace.PREEMPTIBLE: 1}
    assert found.late == 0


def test_what_is_past_its_declared_end_is_evicted():
    found = played(instance(0, SPAN, declared=HOUR))
    assert found.evicted == {trace.BOUNDED: 1}
    assert found.late == 0


def test_without_the_timeline_a_lease_starts_late():
    found = played(
        instance(START - HOUR, 3 * HOUR, trace.UNBOUNDED), by=NO_TIMELINE
    )
    assert found.late == 1
    assert not found.evicted
    # The instance is admitted as soon as the other one has left, two hours
    # late.
    used = 8 * (DAY - 2 * HOUR) + 3 * HOUR
    assert found.utilisation == pytest.approx(used / (8 * SPAN))


def test_a_lease_without_room_is_refused():
    both = [whole(), whole(START + HOUR, END + HOUR, number=1)]
    for each in (policy.FREEPOOL, policy.OURS):
        assert played(by=each, bookings=both).refused_leases == ['lease-1']


def test_without_leases_only_capacity_refuses_instances():
    unbounded = instance(START - HOUR, 3 * HOUR, trace.UNBOUNDED)
    closed, alone = (
        played(unbounded, by=each, unbounded='never')
        for each in (policy.OURS, policy.without(policy.LEASES))
    )
    assert (closed.leases, closed.refused.total()) == (1, 1)
    assert (alone.leases, alone.refused.total()) == (0, 0)


@pytest.mark.parametrize('by', policy.compared(policy.PARTS))
def test_windows_may_follow_each_other_at_once(by):
    found = played(by=by, bookings=[whole(), whole(END, END + HOUR, number=1)])
    assert (found.late, found.refused_leases) == (0, [])


def test_reserved_hosts_are_idle_while_nobody_runs_there():
    empty = played(by=policy.FREEPOOL)
    assert empty.idle_host_hours == pytest.approx(3 * 24)
    half = played(instance(0, DAY, vcpus=4))
    assert half.idle_host_hours == pytest.approx(3 * 24 - 12)
    assert half.idle_by_day == pytest.approx([12, 24, 0, 24])
    assert half.utilisation_by_day == pytest.approx([0.5, 0, 1, 0])


def test_weighers_put_short_lives_before_leases():
    # By memory alone the other host would be better.
    hosts = [host('leased'), trace.Host('free', 8, 65536)]
    with_, without = (
        played(
            instance(START - 2 * HOUR, HOUR, vcpus=8), by=each, hosts=hosts,
            lease_gap_weight_multiplier=2.0
        ).idle_host_hours
        for each in (SPREADING, dataclasses.replace(SPREADING, weighers=False))
    )
    assert with_ == without - 1


@pytest.mark.row('F23')
def test_packing_keeps_hosts_free_for_a_larger_lease():
    hosts = [host(f'h{n}') for n in range(4)]
    small = [
        lease.Booking(n, lease._lease(
            n, START, END, sized(lease._instances(2), 1, 512)
        ))
        for n in range(4)
    ]
    large = lease.Booking(9, lease._lease(9, START, END, lease._hosts(3)))
    refused = {
        each.name: played(
            by=each, bookings=[*small, large], hosts=hosts, pool=4
        ).refused_leases
        for each in (policy.OURS, policy.without(policy.PACKING))
    }
    assert refused == {'ours': [], 'ours without packing': ['lease-9']}


def test_the_least_pool_holds_the_leases_and_a_smaller_one_does_not():
    hosts = [trace.Host(f'h{n}', 64, 262144) for n in range(10)]
    bookings = lease.draw(lease.Load(), hosts, SPAN, random.Random(3))
    pool = cloud.least_pool(hosts, bookings)
    for size, refused in ((pool, False), (pool - 1, True)):
        found = played(
            by=policy.FREEPOOL, hosts=hosts, pool=size, bookings=bookings
        )
        assert bool(found.refused_leases) is refused


def test_leases_that_all_hosts_do_not_hold_are_refused():
    with pytest.raises(exception.InvalidInput, match='have no room'):
        cloud.least_pool([host()], [whole(), whole(number=1)])


def test_a_filter_that_fails_is_no_result(monkeypatch):
    def fail(*args):
        raise RuntimeError('broken')

    monkeypatch.setattr(lifetime_filter, '_steps', fail)
    with pytest.raises(scheduler.Failure):
        played(instance(0, HOUR))


class TestGpus:
    """A host with three GPUs, of which a lease of slots has two."""

    @staticmethod
    def played(*instances, by=policy.OURS, **options):
        demand = sized(lease._with_gpu(2), 1, 512)
        booking = lease.Booking(0, lease._lease(0, START, END, demand))
        return played(
            *instances, by=by, bookings=[booking], hosts=[host(gpus=3)],
            **options,
        )

    def test_a_gpu_that_is_reserved_later_is_used_until_then(self):
        found = self.played(instance(0, START, gpus=3))
        assert (found.refused.total(), found.late) == (0, 0)
        assert found.idle_gpu_hours == (3 * SPAN - 3 * START - 2 * DAY) / HOUR
        used = 3 * START + 2 * DAY
        assert found.gpu_utilisation == pytest.approx(used / (3 * SPAN))

    def test_freepool_refuses_it(self):
        found = self.played(instance(0, START, gpus=3), by=policy.FREEPOOL)
        assert found.refused.total() == 1
        assert found.refused_gpu_hours == 3 * START / HOUR

    def test_only_the_gpu_that_is_left_is_used_in_the_window(self):
        found = self.played(
            instance(START - HOUR, DAY, gpus=2), instance(START, DAY, gpus=1),
            instance(START, HOUR, gpus=1), instance(START, HOUR),
        )
        assert found.refused_gpu_hours == 2 * DAY / HOUR + 1
        assert found.refused.total() == 2

    def test_a_host_without_gpus_takes_nobody_who_wants_one(self):
        found = played(
            instance(0, HOUR, gpus=1), instance(0, HOUR), bookings=[]
        )
        assert found.refused.total() == 1
        assert found.gpu_utilisation is None

    def test_only_preemptible_instances_with_gpus_are_evicted_for_gpus(self):
        found = self.played(*(
            instance(START - HOUR + n, DAY, trace.PREEMPTIBLE, gpus=gpus)
            for n, gpus in enumerate((0, 1, 0, 1, 1, 0))
        ))
        assert found.evicted == {trace.PREEMPTIBLE: 2}
        assert found.late == 0

    @pytest.mark.parametrize('movable, refused', [
        ('live', 0), ('cold', 0), ('', 1),
    ])
    def test_an_instance_with_gpus_is_relocated_as_it_can_be(
        self, movable, refused
    ):
        options = {'unbounded': 'relocate', 'unbounded_fixed': 'never'}
        with_gpu = dataclasses.replace(
            instance(0, SPAN, trace.UNBOUNDED, gpus=1), movable=movable
        )
        played = self.played(with_gpu, **options)
        assert played.refused_gpu_instances == refused


class TestRelocation:
    """Unbounded instances on hosts that are reserved later."""

    HOSTS = (host('a'), host('b'), host('c'))
    NO_HEADROOM = {
        'relocation_headroom': 0.0, 'relocation_host_headroom': 0.0,
    }

    def played(self, *instances, bookings, hosts=HOSTS, **options):
        return played(*instances, bookings=bookings, hosts=hosts, **{
            'pool': 2, 'unbounded': 'relocate', **self.NO_HEADROOM, **options,
        })

    def test_a_lease_leaves_a_host_for_an_instance_that_is_not_moved(self):
        """The other host is full until the lease starts."""
        short = instance(0, START - 2 * HOUR, vcpus=8)
        fixed = dataclasses.replace(
            instance(HOUR, SPAN, trace.UNBOUNDED, vcpus=8), movable=NOT
        )
        figures = [
            (found.refused.total(), found.reallocated, found.late)
            for found in (
                self.played(
                    short, fixed, bookings=[whole()], pool=1, by=each,
                    hosts=[host('a'), trace.Host('b', 8, 32768)],
                    lease_gap_weight_multiplier=0.0,
                )
                for each in (
                    SPREADING,
                    dataclasses.replace(SPREADING, reallocation=False),
                )
            )
        ]
        assert figures == [(0, 1, 0), (1, 0, 0)]

    def test_no_lease_leaves_a_host_once_the_other_hosts_are_reserved(self):
        """The second lease could leave its host before the third was booked.
        """
        large = [trace.Host(name, 8, 32768) for name in 'cd']
        short = instance(0, START - 2 * HOUR, vcpus=8)
        first, second = (
            dataclasses.replace(
                instance(at, SPAN, trace.UNBOUNDED, vcpus=8), movable=NOT
            )
            for at in (HOUR, 3 * HOUR)
        )
        found = self.played(
            short, short, first, second, pool=2, by=SPREADING,
            hosts=[host('a'), host('b'), *large],
            bookings=[whole(), whole(number=1), whole(at=2 * HOUR, number=2)],
            lease_gap_weight_multiplier=0.0
        )
        assert (found.refused.total(), found.reallocated) == (1, 1)
        assert (found.refused_leases, found.late) == ([], 0)

    def unbounded(self, count, vcpus, lifetime=SPAN):
        return [
            instance(0, lifetime, trace.UNBOUNDED, vcpus) for _ in range(count)
        ]

    def between(self, lifetime):
        """Return instances of which the last is on a host that is leased.

        The other host is free again an hour before the lease starts.
        """
        return [
            instance(0, HOUR, vcpus=8, declared=START - HOUR),
            instance(0, START - HOUR, vcpus=8),
            instance(2 * HOUR, lifetime, trace.UNBOUNDED, 8),
        ]

    def test_instances_move_before_the_window_opens(self):
        found = self.played(
            *self.between(SPAN), bookings=[whole()], hosts=self.HOSTS[:2]
        )
        assert (found.refused.total(), found.refused_leases) == (0, [])
        assert (found.late, found.evicted.total(), found.unplanned) == (
            0, 0, 0
        )
        assert (found.moves, found.moved_gib) == (1, 0.5)

    def test_instances_that_end_before_are_not_moved(self):
        found = self.played(
            *self.between(DAY), bookings=[whole()], hosts=self.HOSTS[:2]
        )
        assert (found.refused.total(), found.moves) == (0, 0)

    def test_a_migration_that_fails_is_tried_again(self):
        found, late = (
            self.played(
                *self.between(SPAN), bookings=[whole()], hosts=self.HOSTS[:2],
                migration_failure=0.85, relocation_lead=lead,
            )
            for lead in (600, 60)
        )
        assert (found.failed_moves, found.moves, found.late) == (10, 1, 0)
        # Ten times 30 s are too long for the lease.
        assert (late.failed_moves, late.moves, late.late) == (10, 1, 1)

    def test_a_lease_is_late_if_no_migration_succeeds(self):
        found = self.played(
            *self.between(START), bookings=[whole()], hosts=self.HOSTS[:2],
            migration_failure=1.0,
        )
        assert (found.moves, found.late, found.evicted.total()) == (0, 1, 0)
        assert found.failed_moves > 20

    def test_preemptible_instances_yield_to_a_move(self):
        found = self.played(
            *self.between(SPAN),
            instance(START - HOUR, DAY, trace.PREEMPTIBLE, 8),
            bookings=[whole()], hosts=self.HOSTS[:2],
        )
        assert found.moves == 1
        assert found.evicted == {trace.PREEMPTIBLE: 1}
        assert found.late == 0

    def test_who_has_no_place_later_is_refused(self):
        found = self.played(
            *self.unbounded(3, 8), bookings=[whole(), whole(number=1)]
        )
        assert found.refused == {trace.UNBOUNDED: 2}
        assert found.late == 0

    def test_a_lease_displaces_them(self):
        bookings = [whole(at=HOUR), whole(at=HOUR, number=1)]
        found = self.played(
            *self.unbounded(3, 2), bookings=bookings, by=SPREADING
        )
        assert found.refused_leases == []
        assert (found.late, found.moves) == (0, 2)
        alone = self.played(
            *self.unbounded(3, 2), bookings=bookings,
            by=dataclasses.replace(SPREADING, displacement=False),
        )
        assert len(alone.refused_leases) == 2

    def test_headroom_is_kept_from_the_least_notice_on(self):
        options = {'relocation_headroom': 0.25, 'relocation_notice': DAY}
        soon = instance(0, HOUR, vcpus=2)
        found = self.played(
            *self.unbounded(3, 6), soon, bookings=[], **options
        )
        # 18 of 24 vCPUs, and what ends before.
        assert not found.refused
        more = self.played(*self.unbounded(4, 5), bookings=[], **options)
        assert more.refused == {trace.UNBOUNDED: 1}

    def test_without_paths_they_are_kept_off(self):
        found = self.played(
            *self.unbounded(1, 1), bookings=[],
            by=policy.without(policy.PATHS), pool=3,
        )
        assert found.refused == {trace.UNBOUNDED: 1}
