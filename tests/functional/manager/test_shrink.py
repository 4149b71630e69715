# SPDX-License-Identifier: Apache-2.0
"""Active leases give up slots, whatever happens meanwhile.

No server may ever use a slot that the ledger does not have, and no change may
stay half done.
"""


import itertools

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.flavor import Flavor
from blazar_sched.service import faults
from blazar_sched.service.clients.placement import resource_class
from tests.functional.manager.conftest import at
from tests.functional.manager.conftest import instances
from tests.functional.manager.managed_cloud import ManagedCloud
from tests.standins.rest import conflict
from tests.standins.rest import Trouble

# Each host has room for four slots.
HOSTS = ('a', 'b', 'c')


class CloudWithSlots(ManagedCloud):
    """A cloud whose servers take slots of reservations in Placement."""

    def __init__(self, conf, world):
        super().__init__(conf, world.clock, *HOSTS, wait=world.wait)
        self.register_all()

    def create(self, *reservations, start='now', end=10000, **values):
        return super().create(*reservations, start=start, end=end, **values)

    def active(self, *reservations, used=()):
        """Return an active lease with servers on these hosts."""
        lease = self.create(*reservations)
        self.settle(lease)
        for host in used:
            assert self.boot(lease, host)
        return self.ledger.lease(lease.id)

    def settle(self, lease, manager=None):
        """Let time pass until all due events of a lease are done."""
        manager = manager or self.manager
        until = self.clock.now + 600
        while any(
            event.lease_id == lease.id
            for event, _ in manager.ledger.due_events(self.clock.now)
        ):
            assert self.clock.now < until
            self.work(manager)
            self.clock.now += 5

    def work(self, manager):
        for event, claim in manager.ledger.due_events(self.clock.now):
            manager.runner.run(event, claim)

    def resize(self, lease, amount, manager=None, **values):
        change = {'id': lease.reservations[0].id, 'amount': amount}
        return (manager or self.manager).leases.update(
            lease.id, 'project', {'reservations': [change], **values}
        )

    def boot(self, lease, host):
        """Boot a server; tell whether Placement has a slot for the server."""
        id_ = lease.reservations[0].id
        server = self.cloud.add_server(host, 'project', reservation=id_)
        class_ = resource_class(id_)
        taken = self.cloud.take_slot(server, host, class_)
        if not taken:
            del self.cloud.servers[server]
        return taken

    def boot_all(self, lease):
        """Boot as many servers as Placement has slots for."""
        for host in HOSTS:
            while self.boot(lease, host):
                pass

    def end(self, lease):
        self.cloud.allocations.clear()
        self.manager.leases.delete(lease.id, None)
        assert not any(self.cloud.left())

    def held(self, lease):
        """Return the number of slots in the ledger, by host."""
        id_ = lease.reservations[0].id
        return {
            host: a.amounts['VCPU'] // 2
            for host in HOSTS
            for a, _ in self.ledger.allocations(reservation_id=id_)
            if a.host == self.cloud.uuid(host)
        }

    def used(self, lease):
        """Return the number of slots that servers use, by host."""
        class_ = resource_class(lease.reservations[0].id)
        used = {host: self.cloud.used(host, class_) for host in HOSTS}
        return {host: count for host, count in used.items() if count}

    def is_within(self, lease):
        """Tell whether servers use only slots that the ledger has."""
        held = self.held(lease)
        return all(
            count <= held.get(host, 0)
            for host, count in self.used(lease).items()
        )

    def check(self, lease):
        """Check that the slots in Placement equal those in the ledger."""
        assert self.ledger.check() == []
        held = self.held(lease)
        [reservation, *_] = self.ledger.lease(lease.id).reservations
        assert sum(held.values()) == reservation.demand.amount
        class_ = resource_class(reservation.id)
        totals = {host: self.cloud.total(host, class_) for host in HOSTS}
        assert {h: n for h, n in totals.items() if n} == held
        [aggregate] = (
            a
            for a in self.cloud.aggregates.values()
            if a['name'] == reservation.id
        )
        assert set(aggregate['hosts']) == set(held)
        assert self.is_within(lease)


@pytest.fixture
def site(conf, world):
    site = CloudWithSlots(conf, world)
    yield site
    faults.arm(None)
    site.ledger.close()


def hosts_of(site, lease):
    """Return the hosts of a lease, the host with the most slots first."""
    held = site.held(lease)
    return sorted(held, key=lambda host: (-held[host], host))


class TestWhichGo:
    def test_unused_slots_are_given_up(self, site):
        lease = site.active(instances(6))
        most, fewest = hosts_of(site, lease)
        assert site.held(lease) == {most: 4, fewest: 2}
        site.boot(lease, most)
        site.boot(lease, most)
        new = site.resize(lease, 3)
        assert new.reservations[0].demand.amount == 3
        assert site.held(lease) == {most: 3}
        # Even before the start is repeated.
        site.boot_all(lease)
        assert site.used(lease) == {most: 3}
        site.settle(lease)
        site.check(lease)
        # Another lease has its former slots.
        site.create({'resource_type': 'physical:host', 'min': 2, 'max': 2})
        assert site.ledger.check() == []

    def test_slots_in_use_are_not_given_up(self, site):
        lease = site.active(instances(6))
        for host in hosts_of(site, lease):
            site.boot(lease, host)
        before = site.held(lease)
        with pytest.raises(exception.CantUpdateParameter) as refused:
            site.resize(lease, 1)
        assert refused.value.status == 409
        assert refused.value.field == 'amount'
        assert '2 ' in str(refused.value)
        site.settle(lease)
        assert site.held(lease) == before
        site.check(lease)
        site.resize(lease, 2)
        site.settle(lease)
        assert site.held(lease) == site.used(lease)
        site.check(lease)

    def test_a_refusal_takes_no_slot_away_meanwhile(self, site):
        lease = site.active(instances(6))
        for host in hosts_of(site, lease):
            site.boot(lease, host)
        with pytest.raises(exception.CantUpdateParameter):
            site.resize(lease, 1)
        site.boot_all(lease)
        assert site.used(lease) == site.held(lease)

    @pytest.mark.parametrize('affinity', [True, False])
    def test_affinity_stays(self, site, affinity):
        lease = site.active(instances(3, affinity=affinity))
        used = hosts_of(site, lease)[-1]
        site.boot(lease, used)
        site.resize(lease, 2)
        site.settle(lease)
        site.check(lease)
        assert list(site.held(lease).values()) == ([2] if affinity else [1, 1])
        assert used in site.held(lease)

    def test_server_booted_by_a_hint_counts_without_a_slot(self, site):
        """The server's flavor has half the size: Placement cannot tell."""
        lease = site.active(instances(6, disk_gb=2))
        most, fewest = hosts_of(site, lease)
        id_ = lease.reservations[0].id
        for _ in range(3):
            site.cloud.add_server(fewest, 'project', reservation=id_)
        site.cloud.add_server(most, 'thief', reservation=id_)
        site.cloud.add_server(most, 'project', reservation='another')
        with pytest.raises(exception.CantUpdateParameter):
            site.resize(lease, 1)
        site.settle(lease)
        site.resize(lease, 2)
        site.settle(lease)
        assert site.held(lease) == {fewest: 2}
        site.check(lease)

    @pytest.mark.row('F67')
    def test_a_flavor_of_the_clouds(self, site):
        flavor = Flavor('gold', 'Gold', 2, 512, 1)
        site.ledger.commit(lambda tx: tx.put_flavors([flavor]))
        lease = site.active({
            'resource_type': 'flavor:instance', 'flavor_id': 'gold',
            'amount': 6,
        })
        most = hosts_of(site, lease)[0]
        site.boot(lease, most)
        site.resize(lease, 1)
        site.settle(lease)
        assert site.held(lease) == {most: 1}
        site.check(lease)

    def test_missing_slots_are_not_requested_from_other_hosts(self, site):
        lease = site.active(instances(6))
        id_ = lease.reservations[0].id
        most = hosts_of(site, lease)[0]

        def lose(tx):
            kept = [
                a
                for a, _ in tx.allocations(reservation_id=id_)
                if a.host == site.cloud.uuid(most)
            ]
            tx.put_allocations(id_, kept)

        site.ledger.commit(lose)
        site.create({'resource_type': 'physical:host', 'min': 2, 'max': 2})
        for amount, held in ((5, 4), (4, 4), (3, 3)):
            site.resize(lease, amount)
            assert site.held(lease) == {most: held}
        site.settle(lease)
        site.check(lease)

    def test_slots_that_are_not_open_yet_are_given_up(self, site):
        lease = site.active(instances(2))
        new = site.manager.leases.update(
            lease.id, None, {'reservations': [instances(4)]}
        )
        first, added = new.reservations
        site.manager.leases.update(
            lease.id, None, {'reservations': [{'id': added.id, 'amount': 1}]}
        )
        site.settle(lease)
        [(held, _)] = site.ledger.allocations(reservation_id=added.id)
        assert held.amounts['VCPU'] == 2
        class_ = resource_class(added.id)
        assert sum(site.cloud.total(h, class_) for h in HOSTS) == 1
        site.check(lease)


class TestTogether:
    """A change that also requests more of another resource."""

    def test_lease_shrinks_and_is_prolonged_in_one_update(self, site):
        lease = site.active(instances(6))
        most, fewest = hosts_of(site, lease)
        # Another lease has everything that is given up from the old end on.
        begins = lease.end - site.clock.now
        there = instances(4, resource_properties=at(fewest))
        site.create(there, start=begins, end=20000)
        longer = {'end': lease.end + 100}
        with pytest.raises(exception.NotEnoughHostsAvailable):
            site.manager.leases.update(lease.id, None, longer)
        new = site.resize(lease, 4, **longer)
        assert new.end == lease.end + 100
        assert site.held(lease) == {most: 4}
        site.settle(lease)
        site.check(lease)

    def test_reservation_grows_into_the_slots_that_another_gives_up(
        self, site
    ):
        lease = site.active(instances(10), instances(2))
        first, second = lease.reservations
        site.manager.leases.update(lease.id, None, {'reservations': [
            {'id': second.id, 'amount': 5},
            {'id': first.id, 'amount': 7},
        ]})
        site.settle(lease)
        site.check(lease)
        assert sum(
            a.amounts['VCPU'] // 2
            for a, _ in site.ledger.allocations(reservation_id=second.id)
        ) == 5

    def test_another_finds_no_room(self, site):
        """Nothing has changed: slots that were given up are restored."""
        lease = site.active(instances(10), instances(2))
        first, second = lease.reservations
        before = site.held(lease)
        with pytest.raises(exception.NotEnoughHostsAvailable):
            site.manager.leases.update(lease.id, None, {'reservations': [
                {'id': first.id, 'amount': 7},
                {'id': second.id, 'amount': 6},
            ]})
        site.settle(lease)
        assert site.held(lease) == before
        site.check(lease)


def shrunk_at(site, amount, do):
    """Yield a lease for each point that its shrinking passes.

    The lease has 5 slots and a server, and is to shrink to `amount`.

    :param do: called at that point with the lease, its hosts, the host with
        the most slots first, and the name of the point
    """
    reached = True
    for last in itertools.count():
        if not reached:
            break
        lease = site.active(instances(5))
        hosts = hosts_of(site, lease)
        site.boot(lease, hosts[0])
        passed = itertools.count()
        reached = False

        def meet(name, last=last, passed=passed, lease=lease, hosts=hosts):
            nonlocal reached
            if next(passed) == last:
                reached = True
                do(lease, hosts, name)

        faults.arm(meet)
        yield lease
        faults.arm(None)
        site.end(site.ledger.lease(lease.id))


def shrunk_beside_a_boot(site, amount):
    """Yield (lease, whether it shrank, the point) with a boot at each point.
    """
    for which in (0, -1):
        where = []

        def boot(lease, hosts, name, which=which, where=where):
            where.append((site.boot(lease, hosts[which]), name))

        for lease in shrunk_at(site, amount, boot):
            where.clear()
            try:
                site.resize(lease, amount)
                shrank = True
            except exception.CantUpdateParameter:
                shrank = False
            faults.arm(None)
            yield lease, shrank, *(where or [(False, 'none')])[0]


@pytest.mark.more
class TestBoot:
    """A server boots at any point: before the query, after it, at the end."""

    @pytest.mark.parametrize('amount', [1, 2])
    def test_placement_never_has_more_slots_than_the_ledger(
        self, site, amount
    ):
        seen = set()
        for lease, shrank, booted, name in shrunk_beside_a_boot(site, amount):
            seen.add((shrank, booted))
            # Including a server that boots before the start is repeated.
            site.boot_all(lease)
            assert site.is_within(lease), name
            site.settle(lease)
            assert sum(site.held(lease).values()) == (amount if shrank else 5)
            site.check(lease)
        # Either there is room for both, or only for the first.
        alone = {(True, False), (False, True)}
        both = {(True, True), (True, False)}
        assert seen == (alone if amount == 1 else both)

    def test_without_the_generation_it_would(self, site):
        """The control: without the check of the generation this goes wrong."""
        site.cloud.compares = False
        beyond = [
            name
            for lease, *_, name in shrunk_beside_a_boot(site, 1)
            if not site.is_within(lease)
        ]
        assert 'placement:asked' in beyond

    def test_server_takes_the_last_slot_of_a_host_that_was_to_go(self, site):
        """The server boots after Placement has compared the generation."""
        lease = site.active(instances(5))
        most, fewest = hosts_of(site, lease)

        def meddle(method, path):
            if method != 'PUT':
                return None
            site.cloud.meddle = lambda method, path: None
            assert site.boot(lease, fewest)
            return Trouble(False, conflict('placement.inventory.inuse'))

        site.cloud.meddle = meddle
        site.resize(lease, 4)
        site.settle(lease)
        assert site.held(lease) == {most: 3, fewest: 1}
        site.check(lease)


@pytest.mark.more
class TestTrouble:
    def test_manager_that_hangs_writes_nothing_after_its_claim(self, site):
        other = site.another()

        def hang(lease, hosts, name):
            if name.endswith(':asked'):
                faults.arm(None)
                site.settle(lease, other)
                asked.append(len(site.cloud.asked))

        asked = []
        for lease in shrunk_at(site, 2, hang):
            asked.clear()
            try:
                site.resize(lease, 2)
            except exception.Unavailable:
                # No request was made since.
                assert asked == [len(site.cloud.asked)]
                site.check(lease)
                assert sum(site.held(lease).values()) == 5
            else:
                assert not asked
                site.settle(lease)
                site.check(lease)

    def test_shrinking_lease_cannot_be_changed(self, site):
        other = site.another()
        refused = []

        def meddle(method, path):
            site.cloud.meddle = lambda method, path: None
            for change in (
                lambda: other.leases.update(lease.id, None, {'name': 'x'}),
                lambda: site.resize(lease, 1, other),
                lambda: other.leases.delete(lease.id, None),
                lambda: other.healer.reallocate(host_id, lease.id),
            ):
                with pytest.raises(exception.InvalidStatus):
                    change()
                refused.append(change)
            site.work(other)

        lease = site.active(instances(5))
        [host_id, *_] = (
            host.id
            for host in site.ledger.hosts()
            if host.hypervisor_hostname in site.held(lease)
        )
        site.cloud.meddle = meddle
        site.resize(lease, 2)
        assert len(refused) == 4
        site.settle(lease)
        assert sum(site.held(lease).values()) == 2
        site.check(lease)

    def test_a_manager_that_stops_leaves_it_to_others(self, site):
        other = site.another()
        lease = site.active(instances(5))

        def meddle(method, path):
            site.manager.runner.stopping = True

        site.cloud.meddle = meddle
        with pytest.raises(exception.Unavailable):
            site.resize(lease, 2)
        # The claim is released: no manager has to wait for its expiry.
        site.work(other)
        assert not site.ledger.due_events(site.clock.now)
        site.check(lease)
