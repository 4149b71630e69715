# SPDX-License-Identifier: Apache-2.0
"""A server that a scheduler has placed counts before any record of it.

The tests use Nova's own HostStates and handlers: each request gets a fresh
HostState, as in Nova, which does not show the latest placements yet.
"""

import gc
import uuid
import weakref

from nova import objects
from nova.objects import flavor
from nova.objects import request_spec
from nova.scheduler import filters as nova_filters
from nova.scheduler import host_manager
import pytest

from blazar_sched import filters
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.worker import consumption
from blazar_sched.worker import filtering
from blazar_sched.worker import nova_objects
from blazar_sched.worker import process
from tests import overriding

objects.register_all()

NOW = 1_800_000_000
HOUR = 3600
PROJECT = 'mine'
GPU = 'CUSTOM_GPU'


class ReservedHost:
    """One host, of which 6 of 8 VCPUs and 1 of 2 GPUs are reserved in an hour.
    """

    def __init__(self):
        self.replica = state.Replica(accounting.SchedulerAccounting)
        self.uuid = str(uuid.uuid4())
        held = {
            name: Inventory(total)
            for name, total in (
                ('VCPU', 8), ('MEMORY_MB', 8192), ('DISK_GB', 80),
                (GPU, 2),
            )
        }
        self.tell(
            record.encode(Host(self.uuid, '1', 'h1', inventory=held)),
            record.encode(record.Reservation(
                'r', 'l', PROJECT, 'virtual:instance', NOW + HOUR,
                NOW + 2 * HOUR, {'VCPU': 2, 'MEMORY_MB': 1, 'DISK_GB': 1},
            )),
            record.encode(Allocation(
                'a', 'r', self.uuid, NOW + HOUR, NOW + 2 * HOUR,
                {'VCPU': 6, 'MEMORY_MB': 3, 'DISK_GB': 3, GPU: 1},
            )),
        )
        self._filters = [each() for each in filters.all_filters()]

    def tell(self, *records):
        self.replica.apply(self.replica.revision + 1, records)

    def host_state(self, vcpus_used=0, named=()):
        made = host_manager.HostState('h1', 'h1', 'cell')
        made.uuid = self.uuid
        made.vcpus_total, made.vcpus_used = 8, vcpus_used
        made.total_usable_ram_mb = made.free_ram_mb = 8192
        made.total_usable_disk_gb, made.free_disk_mb = 80, 80 * 1024
        made.cpu_allocation_ratio = 1.0
        made.ram_allocation_ratio = made.disk_allocation_ratio = 1.0
        made.instances = dict.fromkeys(named)
        return made

    def place(self, host_state, spec):
        """Place a request on one host as nova-scheduler does, if it fits."""
        passing = self.passing(host_state, spec)
        for each in passing:
            each.consume_from_request(spec)
        return bool(passing)

    def passing(self, host_state, spec):
        return self.passing_of([host_state], spec)

    def passing_of(self, host_states, spec):
        return nova_filters.HostFilterHandler().get_filtered_objects(
            self._filters, host_states, spec
        ) or []


def spec(preemptible=False, extra_specs=None, vcpus=2, **hints):
    extra_specs = dict(extra_specs or {})
    if preemptible:
        extra_specs['blazar:preemptible'] = 'true'
    return request_spec.RequestSpec(
        instance_uuid=str(uuid.uuid4()), project_id=PROJECT, is_bfv=False,
        flavor=flavor.Flavor(
            vcpus=vcpus, memory_mb=1, root_gb=1, ephemeral_gb=0, swap=0,
            extra_specs=extra_specs,
        ),
        scheduler_hints={name: [hint] for name, hint in hints.items()},
        numa_topology=None, pci_requests=None, instance_group=None,
    )


def lasting(hours):
    return spec(lifetime=f'{hours}h')


@pytest.fixture
def clock():
    return [NOW]


@pytest.fixture
def site(clock):
    site = ReservedHost()
    with process.following(site.replica, lambda: clock[0]):
        yield site


@pytest.fixture
def ttl():
    with overriding.options() as override:
        yield lambda seconds: override(pending_ttl=seconds)


def test_the_next_request_is_checked_beside_it(site):
    """Two of eight VCPUs are left in an hour: one request fits."""
    assert site.place(site.host_state(), lasting(3))
    assert not site.place(site.host_state(), lasting(3))


def test_control_without_pending_servers_both_requests_pass(site, ttl):
    """The control: HostState does not show the race yet."""
    ttl(0)

    assert site.place(site.host_state(), lasting(3))
    assert site.place(site.host_state(), lasting(3))


def test_within_one_request_it_counts_once(site):
    """HostState has it then: three of two fit beside two before the lease."""
    same = site.host_state()

    assert [site.place(same, spec(lifetime='30m')) for _ in range(5)] == [
        True, True, True, True, False
    ]


def test_server_that_host_state_names_counts_once(site):
    first = lasting(3)
    assert site.place(site.host_state(), first)
    shown = site.host_state(vcpus_used=2)
    shown.instances = {first.instance_uuid: object()}

    assert site.place(shown, spec(lifetime='30m'))


def test_server_with_a_record_counts_once(site):
    first = spec(lifetime='30m')
    assert site.place(site.host_state(), first)
    site.tell(record.encode(Instance(
        first.instance_uuid, site.uuid, PROJECT, {'VCPU': 2}, NOW + 1800
    )))

    # The server will be deleted when the reservation begins.
    shown = site.host_state(vcpus_used=2)
    shown.instances = {first.instance_uuid: object()}
    assert site.place(shown, lasting(3))


def test_a_second_try_is_not_in_its_own_way(site):
    again = lasting(3)

    assert site.place(site.host_state(), again)
    assert site.place(site.host_state(), again)


def test_own_use_of_a_moving_server_is_not_counted_twice(site):
    """Eight VCPUs are full with three others, and two are its own."""
    own = spec(lifetime='30m')
    site.tell(record.encode(Instance(
        own.instance_uuid, site.uuid, PROJECT,
        {'VCPU': 2, 'MEMORY_MB': 1, 'DISK_GB': 1}, NOW + 1800,
    )))

    def shown():
        made = site.host_state(vcpus_used=2)
        made.instances = {own.instance_uuid: object()}
        return made

    for _ in range(3):
        assert site.place(shown(), spec(lifetime='30m'))

    assert site.passing(shown(), own)
    assert not site.passing(shown(), spec(lifetime='30m'))


def test_bound_server_counts_by_its_reservation(site, clock):
    """Two of eight VCPUs are free in the window, whoever uses the six."""
    clock[0] = NOW + HOUR
    assert site.place(site.host_state(), spec(reservation='r'))

    assert site.place(site.host_state(), spec(lifetime='30m'))
    assert not site.place(site.host_state(), spec(lifetime='30m'))


def test_preemptible_server_keeps_no_request_off(site):
    assert site.place(site.host_state(), spec(preemptible=True))

    assert site.place(site.host_state(), lasting(3))
    assert not site.place(site.host_state(), lasting(3))


@pytest.mark.parametrize('preemptible', [False, True])
@pytest.mark.parametrize('seconds, passes', [(100, False), (400, True)])
def test_a_preemptible_server_has_its_least_runtime(
    site, clock, preemptible, seconds, passes
):
    """Of 8 VCPUs 6 are reserved soon; 2 are used by a preemptible server."""
    clock[0] = NOW + HOUR - seconds
    assert site.passing(site.host_state(), lasting(3))
    there = str(uuid.uuid4())
    site.tell(record.encode(Instance(
        there, site.uuid, 'x', {'VCPU': 2, 'MEMORY_MB': 1, 'DISK_GB': 1},
        preemptible=True,
    )))

    asked = spec(preemptible)

    assert bool(site.passing(site.host_state(2, [there]), asked)) == passes
    assert site.passing(site.host_state(2, [there]), spec(lifetime='1m'))


def test_a_reservation_is_not_overdrawn(site, clock):
    """A reservation of three slots, with servers that have no records."""
    clock[0] = NOW + HOUR

    assert [
        site.place(site.host_state(), spec(reservation='r'))
        for _ in range(4)
    ] == [True, True, True, False]


# Requests that have room once more than the host has for them now: by the
# reservation, by a device, and by an amount that Nova does not know.
UNSEEN = pytest.mark.parametrize(('at', 'room', 'asked'), [
    (NOW + HOUR, 3, {'reservation': 'r'}),
    (NOW, 1, {'extra_specs': {f'resources:{GPU}': '1'}, 'vcpus': 1}),
    (NOW, 2, {'extra_specs': {'resources:VCPU': '1'}, 'vcpus': 0}),
], ids=['reservation', 'device', 'override'])


@UNSEEN
def test_server_counts_for_figures_that_host_state_lacks(
    site, clock, at, room, asked
):
    """HostState names each server before the feed has a record of it."""
    clock[0] = at
    there = []
    for _ in range(5):
        next_ = spec(**asked)
        shown = site.host_state(
            next_.vcpus * len(there), [each.instance_uuid for each in there]
        )
        if site.place(shown, next_):
            there.append(next_)

    assert len(there) == room


@UNSEEN
@pytest.mark.parametrize('ttl_', [0, 60])
def test_copies_of_one_request_count(site, clock, ttl, at, room, asked, ttl_):
    """The records of some copies may come before the next copy is placed."""
    clock[0] = at
    ttl(ttl_)
    for recorded in range(room):
        same, placed = site.host_state(), 0
        # As nova-scheduler: one RequestSpec for all instances of a request.
        copies = spec(**asked)
        for _ in range(5):
            copies.instance_uuid = str(uuid.uuid4())
            if not site.place(same, copies):
                break
            placed += 1
            if placed <= recorded:
                [*_, copy] = nova_objects.consumed(same).values()
                site.tell(record.encode(copy))
        site.tell(*(
            (record.INSTANCE, uuid, None) for uuid in site.replica.instances
        ))
        process.ensure_started().pending.__init__()
        assert placed == room


def test_a_resize_on_its_host_counts_its_growth(site):
    """Neither HostState nor the record has the new flavor yet."""
    own = spec(vcpus=2)
    site.tell(record.encode(Instance(
        own.instance_uuid, site.uuid, PROJECT,
        {'VCPU': 1, 'MEMORY_MB': 1, 'DISK_GB': 1},
    )))

    def shown():
        return site.host_state(1, [own.instance_uuid])

    assert site.passing(shown(), spec(vcpus=1))
    assert site.place(shown(), own)
    assert not site.passing(shown(), spec(vcpus=1))


def test_a_record_that_comes_meanwhile_is_not_missed(site, clock, monkeypatch):
    """It comes just before the placed instances are read."""
    clock[0] = NOW + HOUR
    first, *others = [spec(reservation='r') for _ in range(4)]
    for each in first, *others[:2]:
        assert site.place(site.host_state(), each)
    by_host = process.ensure_started().pending.by_host

    def told_before(replica):
        site.tell(record.encode(Instance(
            first.instance_uuid, site.uuid, PROJECT,
            {'VCPU': 2, 'MEMORY_MB': 1, 'DISK_GB': 1}, reservation_id='r',
        )))
        return by_host(replica)

    pending = process.ensure_started().pending
    monkeypatch.setattr(pending, 'by_host', told_before)
    assert not site.passing(site.host_state(), others[2])


def test_a_host_state_goes_with_its_request(site):
    """HostStates are large: none must wait for the garbage collector."""
    here = site.host_state()
    known = weakref.ref(here)
    assert site.passing(here, lasting(3))
    process.ensure_started().decisions.settle(site.replica)

    gc.disable()
    try:
        del here
        assert known() is None
    finally:
        gc.enable()


def test_hosts_that_are_not_reservable_are_let_be(site):
    other = site.host_state()
    other.uuid = str(uuid.uuid4())
    site.place(other, lasting(3))

    assert type(other) is host_manager.HostState
    assert not process.ensure_started().pending


def test_noting_never_fails_the_request(site, monkeypatch):
    here, asked = site.host_state(), lasting(3)
    assert site.passing(here, asked)
    failures = consumption.failure.count
    monkeypatch.setattr(process.ensure_started(), 'add_placed', None)

    here.consume_from_request(asked)

    assert here.vcpus_used == 2
    assert consumption.failure.count == failures + 1


def another_host(site):
    """Add a host that has no GPU to the site; return its uuid."""
    host = Host(str(uuid.uuid4()), '2', 'h2', inventory={
        'VCPU': Inventory(8), 'MEMORY_MB': Inventory(8192),
        'DISK_GB': Inventory(80),
    })
    site.tell(record.encode(host))
    return host.uuid


def states(site, other, **on_other):
    """Return a HostState of the host of the site, and of another host."""
    second = site.host_state(**on_other)
    second.uuid, second.nodename = other, 'h2'
    return [site.host_state(), second]


def test_a_preemptible_server_on_a_host_that_lacks_a_class(site):
    """Nova shows both hosts if their requests differ in the class only."""
    other, there = another_host(site), str(uuid.uuid4())
    site.tell(record.encode(Instance(
        there, other, 'x', {'VCPU': 1, 'MEMORY_MB': 1, 'DISK_GB': 1},
        preemptible=True,
    )))
    failures = filtering.failure.count

    passing = site.passing_of(
        states(site, other, vcpus_used=1, named=[there]),
        spec(extra_specs={f'resources:{GPU}': '1'}),
    )

    assert len(passing) == 2
    assert filtering.failure.count == failures


@pytest.mark.parametrize('preemptible', [False, True])
def test_a_host_leaves_while_a_preemptible_server_is_pending(
    site, ttl, preemptible
):
    ttl(60)
    other = another_host(site)
    placed = spec(preemptible=True)
    [_, second] = site.passing_of(states(site, other), placed)
    second.consume_from_request(placed)
    site.tell((record.HOST, other, None))
    failures = filtering.failure.count, consumption.failure.count

    passing = site.passing_of(states(site, other), spec(preemptible))
    passing[0].consume_from_request(placed)

    assert len(passing) == 2
    assert (filtering.failure.count, consumption.failure.count) == failures


def test_a_host_leaves_between_the_decision_and_the_claim(site, ttl):
    """The instance is on a host that is not reservable any more."""
    ttl(60)
    other, failures = another_host(site), consumption.failure.count
    placed = spec()
    [first, _] = site.passing_of(states(site, other), placed)
    site.tell((record.HOST, other, None))

    first.consume_from_request(placed)

    assert consumption.failure.count == failures
    assert placed.instance_uuid in {
        each.uuid for each in
        process.ensure_started().pending.by_host(site.replica)[site.uuid]
    }
