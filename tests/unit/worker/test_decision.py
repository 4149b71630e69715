# SPDX-License-Identifier: Apache-2.0
"""Every host that a filter refuses has a reason, in any cloud."""

import tracemalloc
import types
import uuid

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from nova import objects
from nova.objects import flavor
from nova.objects import request_spec
import pytest

from blazar_sched.domain import host
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.filters import lifetime_filter
from blazar_sched.filters import reservation_filter
from blazar_sched.replica import accounting
from blazar_sched.replica import metrics
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.worker import decision
from blazar_sched.worker import decision_log
from blazar_sched.worker import filtering
from blazar_sched.worker import process
from blazar_sched.worker import steps
from tests import overriding

NOW = 1_800_000_000
HOUR = 3600
MINE, THEIRS = 'p1', 'p2'
GPU = 'CUSTOM_GPU'
MEMORY_AND_DISK = {inventory.MEMORY_MB: 4096, inventory.DISK_GB: 10}
FILTERS = (
    reservation_filter.ReservationFilter, lifetime_filter.LifetimeFilter
)

objects.register_all()


def id_of(kind, number):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f'{kind} {number}'))


def a_host(number, gpus=0, **fields):
    held = {
        inventory.VCPU: Inventory(8),
        inventory.MEMORY_MB: Inventory(8192, reserved=512),
        inventory.DISK_GB: Inventory(100),
    }
    if gpus:
        held[GPU] = Inventory(gpus)
    return Host(
        id_of('host', number), str(number), f'c{number}', inventory=held,
        **fields,
    )


class HostState(types.SimpleNamespace):
    """The fields that the filters read from Nova's HostState."""

    def consume_from_request(self, spec):
        self.vcpus_used += spec.vcpus
        self.num_instances += 1


def a_host_state(number, vcpus_used=0, here=()):
    return HostState(
        uuid=id_of('host', number), nodename=f'c{number}',
        vcpus_used=vcpus_used, total_usable_ram_mb=8192,
        free_ram_mb=8192 - 512, free_disk_mb=100 * 1024, disk_mb_used=0,
        num_instances=len(here), instances=dict.fromkeys(here),
    )


def a_request(
    vcpus=1, gpus=0, preemptible=False, number=0, root_gb=1, movable=None,
    **hints,
):
    extra_specs = {'blazar:preemptible': 'true'} if preemptible else {}
    if movable is not None:
        extra_specs['blazar:movable'] = movable
    if gpus:
        extra_specs['resources:' + GPU] = str(gpus)
    return request_spec.RequestSpec(
        instance_uuid=id_of('instance', number), project_id=MINE,
        flavor=flavor.Flavor(
            vcpus=vcpus, memory_mb=512, root_gb=root_gb, ephemeral_gb=0,
            swap=0, extra_specs=extra_specs,
        ),
        is_bfv=False,
        scheduler_hints={name: [value] for name, value in hints.items()},
    )


def a_reservation(number, start, end, project_id=MINE, **fields):
    return record.Reservation(
        id_of('reservation', number), id_of('lease', number), project_id,
        'virtual:instance', NOW + start,
        window.FOREVER if end is None else NOW + end, **fields,
    )


def an_allocation(number, on, of, vcpus=0, gpus=0, **more):
    amounts = {inventory.VCPU: vcpus, GPU: gpus, **more}
    return Allocation(
        id_of('allocation', number), of.id, id_of('host', on), of.start,
        of.end, {c: amount for c, amount in amounts.items() if amount},
        whole=not vcpus and not gpus,
    )


def a_replica(*nouns):
    replica = state.Replica(accounting.SchedulerAccounting)
    replica.advance(NOW)
    replica.load(7, map(record.encode, nouns))
    return replica


@pytest.fixture
def options():
    with overriding.options() as override:
        yield override


def decide(replica, host_states, spec):
    """Run both filters; return the passing hosts, and the decisions."""
    with process.following(replica, lambda: NOW):
        failed = filtering.failure.count
        passing = host_states
        for each in FILTERS:
            # As in Nova, which stops when no host is left.
            if passing:
                passing = each().filter_all(passing, spec)
        assert filtering.failure.count == failed
        kept = process.ensure_started().decisions
        return passing, kept.explain(replica, spec.instance_uuid)


def why(replica, spec, **host_state):
    """Return the one reason why host c0 does not pass."""
    passing, told = decide(replica, [a_host_state(0, **host_state)], spec)
    assert passing == []
    return told[-1]['hosts']['c0']


hosts = st.builds(
    lambda gpus, hold, unbounded: {
        'gpus': gpus, 'hold': hold, 'unbounded': unbounded,
    },
    st.integers(0, 2), st.sampled_from(host.HOLDS),
    st.sampled_from((None, 'forever', 'never', 'assume:1h', 'relocate')),
)
spans = st.tuples(
    st.integers(-2, 4), st.integers(1, 4)
).map(lambda t: (t[0] * HOUR // 2, (t[0] + t[1]) * HOUR // 2))


@st.composite
def clouds(draw):
    """Generate a replica, and HostStates; not all of them are reservable."""
    known = draw(st.lists(hosts, max_size=4))
    nouns = [a_host(n, **fields) for n, fields in enumerate(known)]
    on = st.integers(0, len(known) - 1)
    for n in range(draw(st.integers(0, 5)) if known else 0):
        of = a_reservation(
            n, *draw(spans), project_id=draw(st.sampled_from((MINE, THEIRS))),
            magnetic=draw(st.booleans()),
        )
        nouns.append(of)
        # An index has any number of entries, whether or not they fit.
        for row in draw(st.sets(on, max_size=3)):
            nouns.append(an_allocation(
                f'{n} {row}', row, of, draw(st.integers(0, 6)),
                draw(st.integers(0, 1)) if known[row]['gpus'] else 0
            ))
    for n in range(draw(st.integers(0, 3)) if known else 0):
        nouns.append(Instance(
            id_of('instance', n), id_of('host', draw(on)), MINE,
            {inventory.VCPU: draw(st.integers(1, 4))},
            end=NOW + draw(st.integers(-1, 5)) * HOUR,
            reservation_id=draw(st.none() | st.just(id_of('reservation', 0)))
        ))
    by_host = {}
    for noun in nouns:
        if isinstance(noun, Instance):
            by_host.setdefault(noun.host, []).append(noun.uuid)
    states = [
        a_host_state(
            n, draw(st.integers(0, 8)), by_host.get(id_of('host', n), ())
        )
        for n in range(len(known) + 2)
    ]
    return a_replica(*nouns), states


@st.composite
def requests(draw):
    hints = draw(st.sampled_from((
        {}, {'lifetime': '1h'}, {'lifetime': '90m'},
        {'reservation': id_of('reservation', 0)},
        {'reservation': id_of('reservation', 1)}, {'reservation': 'none'},
    )))
    return a_request(
        draw(st.integers(1, 8)), draw(st.integers(0, 1)), draw(st.booleans()),
        draw(st.integers(0, 4)), draw(st.integers(0, 1)), **hints,
    )


@given(clouds(), requests())
@settings(deadline=None)
def test_who_does_not_pass_has_a_reason_and_nobody_else(cloud, spec):
    replica, host_states = cloud
    passing, told = decide(replica, host_states, spec)
    refused = {h.nodename for h in host_states if h not in passing}
    reasons = [
        (name, why) for each in told for name, why in each['hosts'].items()
        if not why.startswith(f'{decision.PASSED}, by a relocation path: ')
    ]
    # Each host is refused once, by one filter.
    assert sorted(name for name, _ in reasons) == sorted(refused)
    # The reason is a current one, as nothing has changed since.
    assert not [why for _, why in reasons if 'would pass now' in why]
    assert told[0]['seen'] == len(host_states)
    assert told[-1]['passed'] == len(passing)


def test_a_whole_host_from_a_time_on():
    soon = a_reservation(0, HOUR, 2 * HOUR, THEIRS)
    replica = a_replica(a_host(0), soon, an_allocation(0, 0, soon))
    assert why(replica, a_request(lifetime='2h')) == (
        'the whole host is reserved from 2027-01-15T09:00:00Z on, and '
        'requested until 2027-01-15T10:00:00Z'
    )


def test_how_much_is_left_and_how_much_is_requested():
    soon = a_reservation(0, HOUR, 2 * HOUR, THEIRS)
    replica = a_replica(a_host(0), soon, an_allocation(0, 0, soon, vcpus=5))
    assert why(replica, a_request(2, lifetime='2h'), vcpus_used=2) == (
        'from 2027-01-15T09:00:00Z on: 1 VCPU left, 2 requested until '
        '2027-01-15T10:00:00Z'
    )


def test_another_resource_class():
    soon = a_reservation(0, HOUR, None, THEIRS)
    replica = a_replica(
        a_host(0, gpus=2), soon, an_allocation(0, 0, soon, gpus=2)
    )
    assert why(replica, a_request(gpus=1)) == (
        'from 2027-01-15T09:00:00Z on: 0 CUSTOM_GPU left, 1 requested for ever'
    )


def test_nobody_is_kept_off_what_only_a_provider_below_the_host_has():
    """The number and the use of such providers do not matter."""
    there = Instance(id_of('instance', 1), id_of('host', 0), MINE, {GPU: 1})
    replica = a_replica(a_host(0), a_host(1, gpus=1), there)
    host_states = [a_host_state(n) for n in range(2)]
    for each in a_request(gpus=1), a_request(gpus=1, lifetime='2h'):
        passing, _ = decide(replica, host_states, each)
        assert passing == host_states


def test_a_window_that_has_not_opened():
    mine = a_reservation(0, HOUR, 2 * HOUR)
    replica = a_replica(a_host(0), mine, an_allocation(0, 0, mine))
    assert why(replica, a_request(reservation=mine.id)) == (
        f'the window of reservation {mine.id} opens at 2027-01-15T09:00:00Z'
    )


def test_a_window_that_has_closed():
    mine = a_reservation(0, -HOUR, -60)
    replica = a_replica(a_host(0), mine, an_allocation(0, 0, mine))
    assert 'closed at 2027-01-15T07:59:00Z' in why(
        replica, a_request(reservation=mine.id)
    )


def test_a_reservation_that_is_on_other_hosts():
    mine = a_reservation(0, -HOUR, HOUR)
    replica = a_replica(a_host(0), mine)
    assert 'has no allocation on the host' in why(
        replica, a_request(reservation=mine.id)
    )


def test_a_reservation_of_another_project():
    theirs = a_reservation(0, -HOUR, HOUR, THEIRS)
    replica = a_replica(a_host(0), theirs, an_allocation(0, 0, theirs))
    assert 'is not open to project p1' in why(
        replica, a_request(reservation=theirs.id)
    )


def test_a_reservation_that_there_is_not():
    assert why(a_replica(a_host(0)), a_request(reservation='x' * 999)) == (
        f"there is no reservation '{'x' * 64}'"
    )


def test_a_reservation_with_too_little_left():
    mine = a_reservation(0, -HOUR, HOUR)
    replica = a_replica(
        a_host(0), mine, an_allocation(0, 0, mine, vcpus=4),
        Instance(
            id_of('instance', 9), id_of('host', 0), MINE, {inventory.VCPU: 3},
            end=NOW + HOUR, reservation_id=mine.id,
        ),
    )
    assert '1 VCPU left, 2 requested' in why(
        replica, a_request(2, reservation=mine.id)
    )


def test_of_what_is_overdrawn_nothing_can_be_wanted():
    """Two schedulers at once have allocated more disk than there is."""
    mine = a_reservation(0, -HOUR, HOUR)
    replica = a_replica(
        a_host(0), mine, an_allocation(0, 0, mine, 4, **MEMORY_AND_DISK),
        Instance(
            id_of('instance', 9), id_of('host', 0), MINE,
            {inventory.VCPU: 1, inventory.DISK_GB: 11}, end=NOW + HOUR,
            reservation_id=mine.id,
        ),
    )
    here = a_host_state(0)
    passing, _ = decide(
        replica, [here], a_request(root_gb=0, reservation=mine.id)
    )
    assert passing == [here]
    assert '0 DISK_GB left, 1 requested' in why(
        replica, a_request(root_gb=1, reservation=mine.id)
    )


def test_with_others_of_its_own_request():
    mine = a_reservation(0, -HOUR, HOUR)
    replica = a_replica(
        a_host(0), mine, an_allocation(0, 0, mine, 3, **MEMORY_AND_DISK),
    )
    first, second = (
        a_request(2, number=n, reservation=mine.id) for n in range(2)
    )
    here = a_host_state(0)
    with process.following(replica, lambda: NOW):
        each = reservation_filter.ReservationFilter()
        assert each.filter_all([here], first) == [here]
        here.consume_from_request(first)
        assert each.filter_all([here], second) == []
        kept = process.ensure_started().decisions
        [told] = kept.explain(replica, second.instance_uuid)

    assert '1 VCPU left, 2 requested' in told['hosts']['c0']


def test_a_dedicated_host():
    replica = a_replica(a_host(0, hold='dedicated'))
    assert 'dedicated' in why(replica, a_request())


def test_a_host_that_takes_nothing_without_an_end():
    replica = a_replica(a_host(0, unbounded='never'))
    assert 'unbounded = never' in why(replica, a_request())


def test_what_was_in_the_way_may_be_gone():
    soon = a_reservation(0, HOUR, None, THEIRS)
    replica = a_replica(a_host(0), soon, an_allocation(0, 0, soon))
    spec = a_request()
    with process.following(replica, lambda: NOW):
        lifetime_filter.LifetimeFilter().filter_all([a_host_state(0)], spec)
        kept = process.ensure_started().decisions
        kept.settle(replica)
    replica.apply(8, [(record.ALLOCATION, id_of('allocation', 0), None)])
    [told] = kept.explain(replica, spec.instance_uuid)
    assert (told['revision'], told['explained_by']) == (7, 8)
    assert told['hosts'] == {
        'c0': 'the host would pass now: the reason is gone'
    }


def test_one_host_can_be_asked_about():
    replica = a_replica(a_host(0, hold='dedicated'))
    spec = a_request()
    with process.following(replica, lambda: NOW):
        reservation_filter.ReservationFilter().filter_all(
            [a_host_state(0), a_host_state(1)], spec
        )
        kept = process.ensure_started().decisions

        def told(host):
            [found] = kept.explain(replica, spec.instance_uuid, host)
            return found['hosts']

        assert list(told('c0')) == ['c0']
        assert told('c1') == {'c1': decision.PASSED}
        assert told('c2') == {}


def test_decision_tells_the_request():
    replica = a_replica(a_host(0))
    _, [first, *_] = decide(
        replica, [a_host_state(0)], a_request(2, gpus=1, lifetime='1h')
    )
    assert first['asked'] == {
        'kind': 'bounded', 'project_id': MINE, 'reservation_id': None,
        'end': NOW + HOUR, 'moves_from': None,
        'amounts': {
            inventory.VCPU: 2, inventory.MEMORY_MB: 512, inventory.DISK_GB: 1,
            GPU: 1,
        },
    }


def test_a_filter_that_failed_says_so(monkeypatch):
    def fail(*args):
        raise RuntimeError('broken')

    monkeypatch.setattr(lifetime_filter, '_steps', fail)
    spec = a_request()
    replica = a_replica(a_host(0))
    with process.following(replica, lambda: NOW):
        lifetime_filter.LifetimeFilter().filter_all(
            [a_host_state(0), a_host_state(1)], spec
        )
        [told] = process.ensure_started().decisions.explain(
            replica, spec.instance_uuid
        )
    assert (told['outcome'], told['passed']) == (decision.FAILED, 1)
    assert 'the filter failed' in told['hosts']['c0']


class _FailsOn(steps.Step):
    """A step that fails if some hosts are among those it looks at."""

    def __init__(self, names):
        self.names = names
        self.calls = 0

    def passing(self, host_states):
        self.calls += 1
        if any(h.nodename in self.names for h in host_states):
            raise RuntimeError('broken')
        return host_states

    def reason(self, host_state):
        raise AssertionError(host_state.nodename)


@pytest.mark.parametrize('on_stale', ['closed', 'open'])
def test_a_step_that_fails_refuses_the_hosts_on_which_it_fails(
    options, monkeypatch, on_stale
):
    """Other hosts pass, and so does a host that is not reservable."""
    options(on_stale=on_stale)
    real = lifetime_filter._steps

    def fail(*args):
        yield from real(*args)
        yield _FailsOn({'c1', 'c4'})

    monkeypatch.setattr(lifetime_filter, '_steps', fail)
    spec, before = a_request(), filtering.failure.count
    replica = a_replica(*map(a_host, range(4)))
    with process.following(replica, lambda: NOW):
        passing = lifetime_filter.LifetimeFilter().filter_all(
            list(map(a_host_state, range(5))), spec
        )
        worker = process.ensure_started()
        [told] = worker.decisions.explain(replica, spec.instance_uuid)
        counted = worker.metrics.of(
            metrics.DECISIONS, 'LifetimeFilter', decision.INCOMPLETE
        )._value.get()

    assert [h.nodename for h in passing] == ['c0', 'c2', 'c3', 'c4']
    assert (told['outcome'], told['passed']) == (decision.INCOMPLETE, 4)
    assert told['hosts']['c1'] == steps.FAILED
    assert counted == 1
    assert filtering.failure.count == before + 2


def test_a_step_that_always_fails_is_soon_given_up():
    names = {f'c{n}' for n in range(3000)}
    failed = []
    step = _FailsOn(names)
    passing = steps.checked(
        step, list(map(a_host_state, range(3000))),
        lambda part: failed.extend(part) or [],
    )
    assert (passing, len(failed)) == ([], 3000)
    assert step.calls <= steps.MAX_PARTS + 1


def test_only_so_many_decisions_are_kept(options):
    options(decisions_kept=3)
    replica = a_replica()
    with process.following(replica, lambda: NOW):
        kept = process.ensure_started().decisions
        each = reservation_filter.ReservationFilter()
        for number in range(5):
            each.filter_all([a_host_state(0)], a_request(number=number))
        kept.settle(replica)
        assert len(kept) == 3
        assert not kept.explain(replica, id_of('instance', 1))
        assert kept.explain(replica, id_of('instance', 4))


def test_no_decision_is_kept_without_the_option(options):
    options(decisions_kept=0)
    replica = a_replica()
    with process.following(replica, lambda: NOW):
        reservation_filter.ReservationFilter().filter_all(
            [a_host_state(0)], a_request()
        )
        assert len(process.ensure_started().decisions) == 0


def test_a_host_that_has_never_reported_has_its_reason():
    """The HostState has no uuid then."""
    mine = a_reservation(0, -HOUR, HOUR)
    replica = a_replica(a_host(0), mine, an_allocation(0, 0, mine))
    spec = a_request(reservation=mine.id)
    here = a_host_state(1)
    here.uuid = None
    _, [told, *_] = decide(replica, [here], spec)
    assert 'has no allocation on the host' in told['hosts']['c1']


def test_many_decisions_about_many_hosts_are_small():
    """One byte for each host of a decision, and the changes."""
    replica = a_replica(*(a_host(n, hold='dedicated') for n in range(200)))
    each = reservation_filter.ReservationFilter()
    with process.following(replica, lambda: NOW):
        kept = process.ensure_started().decisions

        def decide_often(count):
            for n in range(count):
                host_states = [a_host_state(n) for n in range(200)]
                host_states[n % 200].vcpus_used = n % 7
                each.filter_all(host_states, a_request(number=n))
                kept.settle(replica)

        decide_often(10)
        tracemalloc.start()
        try:
            decide_often(50)
            taken = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()

    assert len(kept) == 60
    ours = taken.filter_traces([tracemalloc.Filter(True, '*/blazar_sched/*')])
    assert sum(each.size for each in ours.traces) < 50 * (200 + 4000)


def test_hosts_that_are_gone_are_forgotten_in_the_end(monkeypatch):
    monkeypatch.setattr(decision_log, 'FORGET_AFTER', 3)
    replica = a_replica(a_host(0, hold='dedicated'))
    with process.following(replica, lambda: NOW):
        kept = process.ensure_started().decisions
        each = reservation_filter.ReservationFilter()
        for number in range(7):
            each.filter_all(
                [a_host_state(0), a_host_state(10 + number)],
                a_request(number=number),
            )
            kept.settle(replica)
        assert len(kept._hosts.identities) == 2
        for number in range(7):
            [told] = kept.explain(replica, id_of('instance', number))
            assert list(told['hosts']) == ['c0']
            assert (told['seen'], told['passed']) == (2, 1)


def test_novas_objects_are_let_go(options):
    replica = a_replica(a_host(0, hold='dedicated'))
    with process.following(replica, lambda: NOW):
        kept = process.ensure_started().decisions
        host_states = [a_host_state(0), a_host_state(1)]
        reservation_filter.ReservationFilter().filter_all(
            host_states, a_request()
        )
        kept.settle(replica)
        assert vars(kept._settled[0])['_host_states'] == []


def test_a_failure_to_count_fails_no_decision(monkeypatch):
    replica = a_replica()
    with process.following(replica, lambda: NOW):
        monkeypatch.setattr(process.ensure_started(), 'metrics', None)
        before = process.note_failure.count
        passing = reservation_filter.ReservationFilter().filter_all(
            [a_host_state(0)], a_request()
        )
        assert len(passing) == 1
        assert process.note_failure.count == before + 1
