# SPDX-License-Identifier: Apache-2.0
"""Floating IPs: registered, allocated to a lease, created at its start.

Neutron is a stand-in at the level of HTTP, with its own statuses.
"""

import contextlib
import copy
import itertools
import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.floating_ip import exception as refusals
from blazar_sched.parts.floating_ip import healing
from blazar_sched.parts.floating_ip import models
from blazar_sched.parts.floating_ip.demand import read
from blazar_sched.parts.floating_ip.neutron import Neutron
from blazar_sched.replica import limited_log
from blazar_sched.service import faults
from tests.standins.neutron import INTERNAL
from tests.standins.neutron import NETWORK
from tests.standins.neutron import refusal
from tests.standins.neutron import SUBNET
from tests.standins.rest import answer
from tests.standins.rest import Trouble
from tests.told import notified

ONE, TWO, THREE = (f'203.0.113.{n}' for n in (101, 102, 103))


def addresses(amount=1, *required, **parameters):
    return {
        'resource_type': 'virtual:floatingip',
        'network_id': NETWORK,
        'amount': amount,
        'required_floatingips': list(required),
        **parameters,
    }


@pytest.fixture
def registered(world):
    """Three floating IPs, not in the order of their addresses."""
    for address in (TWO, ONE, THREE):
        world.floating_ips.create(NETWORK, address)


def allocated(world, lease, number=0):
    """Return the addresses of a lease's reservation."""
    reservation = world.lease(lease).reservations[number]
    return sorted(f.address for f in world.registered(reservation.id))


def refused(error, field, do, *args, **kwargs):
    with pytest.raises(error) as caught:
        do(*args, **kwargs)
    assert caught.value.field == field
    return str(caught.value)


class TestRegistering:
    def test_registered_address_has_the_values_of_neutron(self, world):
        made = world.floating_ips.create(NETWORK, ONE)
        assert (made.network_id, made.address) == (NETWORK, ONE)
        assert made.subnet_id == SUBNET
        assert made.reservable
        assert made.created_at == world.now
        assert world.registered() == [made]
        assert world.ledger.run(models.get, made.id) == made

    @pytest.mark.row('C29', 'C30')
    @pytest.mark.parametrize(
        'address', ['203.0.113.1', '203.0.113.0', '203.0.113.15', 'x', '']
    )
    def test_an_address_that_cannot_be_promised(self, world, address):
        refused(
            exception.InvalidInput, 'floating_ip_address',
            world.floating_ips.create, NETWORK, address,
        )
        assert world.registered() == []

    @pytest.mark.parametrize(
        'network, address',
        [
            (NETWORK, '198.51.100.7'),
            ('no-such', ONE),
            ('../floatingips', ONE),
            (INTERNAL, ONE),
        ],
    )
    def test_no_such_subnet_or_external_network(self, world, network, address):
        with pytest.raises(exception.NotFound):
            world.floating_ips.create(network, address)

    def test_address_is_registered_once(self, world, registered):
        refused(
            refusals.FloatingIPExists, 'floating_ip_address',
            world.floating_ips.create, NETWORK, ONE,
        )
        assert len(world.registered()) == 3

    def test_without_a_network_service(self, world):
        lost = Neutron(None)
        with pytest.raises(exception.Unavailable):
            lost.subnets(NETWORK)

    def test_deleted_address_is_not_listed(self, world, registered):
        first, *rest = world.registered()
        world.floating_ips.delete(first.id)
        assert world.registered() == rest
        with pytest.raises(refusals.FloatingIPNotFound):
            world.floating_ips.delete(first.id)

    def test_address_of_a_lease_cannot_be_deleted(self, world, registered):
        lease = world.create(addresses(3))
        [one, *_] = world.registered()
        for _ in range(2):
            with pytest.raises(refusals.CantDeleteFloatingIP):
                world.floating_ips.delete(one.id)
            world.run(100)
        assert world.lease(lease).status == 'TERMINATED'
        world.floating_ips.delete(one.id)


class TestBooking:
    def test_the_lowest_addresses_that_are_free(self, world, registered):
        lease = world.create(addresses(2))
        assert allocated(world, lease) == [ONE, TWO]
        assert not world.neutron.stored
        world.check()

    def test_required_address_is_allocated(self, world, registered):
        lease = world.create(addresses(2, THREE))
        assert allocated(world, lease) == [ONE, THREE]

    def test_leases_follow_each_other_without_a_gap(self, world, registered):
        world.create(addresses(3), start=100, end=200)
        assert allocated(
            world, world.create(addresses(3), start=200, end=300)
        ) == [ONE, TWO, THREE]
        refused(
            refusals.NotEnoughFloatingIPAvailable, 'amount', world.create,
            addresses(), start=199, end=201,
        )
        world.check()

    @pytest.mark.parametrize(
        'asked, field',
        [
            (addresses(4), 'amount'),
            (addresses(1, network_id='no-such'), 'network_id'),
            (addresses(1, '203.0.113.104'), 'required_floatingips'),
        ],
    )
    def test_no_room_leaves_nothing(self, world, registered, asked, field):
        world.add_host('a')
        whole = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
        refused(
            refusals.NotEnoughFloatingIPAvailable, field, world.create, whole,
            asked,
        )
        assert world.ledger.leases() == []
        assert world.ledger.allocations() == []

    def test_required_address_that_is_taken_is_refused_by_name(
        self, world, registered
    ):
        world.create(addresses(1, TWO))
        said = refused(
            refusals.NotEnoughFloatingIPAvailable, 'required_floatingips',
            world.create, addresses(2, TWO, ONE),
        )
        assert TWO in said and ONE not in said

    @pytest.mark.parametrize(
        'asked, field',
        [
            (addresses(0), 'amount'),
            (addresses('1'), 'amount'),
            (addresses(True), 'amount'),
            (addresses(None), 'amount'),
            (addresses(network_id=None), 'network_id'),
            (addresses(network_id=''), 'network_id'),
            (addresses(network_id='x' * 37), 'network_id'),
            (addresses(1, ONE, TWO), 'required_floatingips'),
            (addresses(2, ONE, ONE), 'required_floatingips'),
            (addresses(1, 'x'), 'required_floatingips'),
            (addresses(1, 7), 'required_floatingips'),
            (addresses(required_floatingips=ONE), 'required_floatingips'),
            (addresses(colour='red'), 'colour'),
        ],
    )
    def test_a_bad_value_is_named(self, world, registered, asked, field):
        refused(exception.InvalidInput, field, world.create, asked)


class TestUpdating:
    def change(self, world, lease, **values):
        id_ = world.lease(lease).reservations[0].id
        return world.leases.update(
            lease.id, None, {'reservations': [{'id': id_, **values}]}
        )

    def move(self, world, lease, **times):
        return world.leases.update(
            lease.id, None, {k: world.now + v for k, v in times.items()}
        )

    @pytest.mark.parametrize('amount', [1, 3])
    def test_the_amount_before_the_start(self, world, registered, amount):
        lease = world.create(addresses(2, THREE))
        self.change(world, lease, amount=amount)
        assert len(allocated(world, lease)) == amount
        assert THREE in allocated(world, lease)
        world.run(100)
        assert world.neutron.owned('project') == allocated(world, lease)
        world.check()

    def test_grown_lease_keeps_its_addresses(self, world, registered):
        first = world.create(addresses(1))
        lease = world.create(addresses(1))
        world.leases.delete(first.id, None)
        self.change(world, lease, amount=2)
        assert allocated(world, lease) == [ONE, TWO]
        self.change(world, lease, amount=1)
        assert allocated(world, lease) == [ONE]

    def test_refused_amount_changes_no_address(self, world, registered):
        lease = world.create(addresses(2))
        world.create(addresses(1))
        refused(
            refusals.NotEnoughFloatingIPAvailable, 'amount', self.change,
            world, lease, amount=3,
        )
        assert world.lease(lease).reservations == lease.reservations
        assert allocated(world, lease) == [ONE, TWO]

    def test_the_network_never(self, world, registered):
        lease = world.create(addresses())
        refused(
            exception.CantUpdateParameter, 'network_id', self.change, world,
            lease, network_id=INTERNAL,
        )
        self.change(world, lease, network_id=NETWORK)

    def test_required_addresses_can_only_be_given_up(self, world, registered):
        lease = world.create(addresses(1, THREE))
        refused(
            exception.CantUpdateParameter, 'required_floatingips', self.change,
            world, lease, required_floatingips=[ONE],
        )
        self.change(world, lease, required_floatingips=[THREE])
        updated = self.change(world, lease, required_floatingips=[])
        assert read(updated.reservations[0].demand).required == ()
        assert allocated(world, lease) == [THREE]

    def test_amount_below_the_required_addresses_is_refused(
        self, world, registered
    ):
        lease = world.create(addresses(2, ONE, TWO))
        refused(
            exception.InvalidInput, 'required_floatingips', self.change, world,
            lease, amount=1,
        )
        self.change(world, lease, amount=1, required_floatingips=[])

    def test_the_window_moves_with_the_lease(self, world, registered):
        lease = world.create(addresses(3), start=100, end=200)
        self.move(world, lease, start=300, end=400)
        world.create(addresses(3), start=100, end=300)
        world.create(addresses(3), start=400, end=500)
        refused(
            refusals.NotEnoughFloatingIPAvailable, 'amount', self.move, world,
            lease, end=401,
        )
        world.check()

    def test_other_addresses_where_the_window_moves_to(
        self, world, registered
    ):
        lease = world.create(addresses(1))
        world.create(addresses(1, ONE), start=200, end=300)
        self.move(world, lease, end=250)
        assert allocated(world, lease) == [TWO]

    def test_refused_move_of_an_active_lease_keeps_its_address(
        self, world, registered
    ):
        lease = world.create(addresses(1))
        world.create(addresses(1, ONE), start=200, end=300)
        world.run(100)
        refused(
            refusals.NotEnoughFloatingIPAvailable, 'reservations', self.move,
            world, lease, end=101,
        )
        world.run()
        assert world.neutron.owned('project') == [ONE]

    def test_an_active_lease_gets_more_at_once(self, world, registered):
        lease = world.create(addresses(1), start='now')
        world.run()
        self.change(world, lease, amount=3)
        world.run()
        assert world.neutron.owned('project') == [ONE, TWO, THREE]
        assert world.lease(lease).status == 'ACTIVE'
        refused(
            exception.CantUpdateParameter, 'amount', self.change, world, lease,
            amount=2,
        )
        world.run(200)
        assert world.neutron.owned('project') == []
        world.check()

    def test_a_reservation_comes_and_goes(self, world, registered):
        lease = world.create(addresses(1), start='now')
        world.run()
        world.leases.update(
            lease.id, None, {'reservations': [addresses(1, THREE)]}
        )
        world.run()
        assert world.neutron.owned('project') == [ONE, THREE]
        first = lease.reservations[0].id
        world.leases.update(
            lease.id, None, {'reservations': [{'id': first, 'remove': True}]}
        )
        world.run()
        assert world.neutron.owned('project') == [THREE]
        assert allocated(world, lease) == [THREE]
        world.create(addresses(2), start='now')
        world.check()

    def test_end_now_frees_the_addresses(self, world, registered):
        lease = world.create(addresses(3), start='now')
        world.run(10)
        world.leases.update(lease.id, None, {'end': 'now'})
        world.run()
        assert world.neutron.stored == {}
        later = world.create(addresses(3), start='now')
        world.run()
        assert world.lease(later).status == 'ACTIVE'
        assert len(world.neutron.stored) == 3


class TestWindow:
    @pytest.mark.row('C29', 'F4')
    def test_there_in_the_window_only(self, world, registered):
        lease = world.create(addresses(2))
        id_ = lease.reservations[0].id
        assert world.neutron.asked == [
            ('GET', '/v2.0/networks'), ('GET', '/v2.0/subnets')
        ] * 3
        world.run(99)
        assert not world.neutron.stored
        world.run(1)
        assert world.neutron.owned('project') == [ONE, TWO]
        made = world.neutron.stored
        assert all(
            f['tags'] == ['blazar', f'reservation:{id_}']
            and f['floating_network_id'] == NETWORK
            for f in made.values()
        )
        reservation = world.lease(lease).reservations[0]
        assert reservation.made == {'floating_ips': sorted(made)}
        assert not reservation.missing_resources
        assert not world.lease(lease).degraded
        world.run(100)
        assert not world.neutron.stored
        assert world.lease(lease).status == 'TERMINATED'
        assert allocated(world, lease) == []
        world.check()

    def test_a_deleted_lease_leaves_nothing(self, world, registered):
        for start in (100, 'now'):
            lease = world.create(addresses(3), start=start)
            world.run()
            world.leases.delete(lease.id, None)
            assert world.neutron.stored == {}
            assert world.ledger.leases() == []
        world.check()

    def test_addresses_of_others_stay_in_neutron(self, world, registered):
        kept = [
            world.neutron.take('203.0.113.15', 'project'),
            world.neutron.take('203.0.113.16', 'thief'),
        ]
        lease = world.create(addresses(1), start='now')
        kept[1]['description'] = (
            f'blazar reservation {lease.reservations[0].id}'
        )
        world.run()
        world.run(200)
        assert list(world.neutron.stored.values()) == kept

    def test_floating_ips_that_the_project_changed_are_deleted_at_the_end(
        self, world, registered
    ):
        world.create(addresses(3), start='now')
        world.run()
        one, two, three = world.neutron.stored
        world.neutron.stored[one].update(description='mine', tags=[])
        world.neutron.forward(two)
        del world.neutron.stored[three]
        world.run(200)
        assert world.neutron.stored == {}

    def test_floating_ip_that_the_project_changed_belongs_to_the_lease(
        self, world, registered
    ):
        lease = world.create(addresses(1), start='now')
        world.run()
        [one] = world.neutron.stored.values()
        one['description'] = 'mine'
        TestUpdating().change(world, lease, amount=2)
        world.run()
        assert outcome(world, lease) == (False, False, [ONE, TWO])
        assert world.neutron.stored[one['id']] is one
        world.run(200)
        assert world.neutron.stored == {}

    def test_floating_ip_that_the_project_deleted_is_created_again(
        self, world, registered
    ):
        """This is done when a start is repeated: when the lease grows."""
        lease = world.create(addresses(1), start='now')
        world.run()
        world.neutron.stored.clear()
        TestUpdating().change(world, lease, amount=2)
        world.run()
        assert world.neutron.owned('project') == [ONE, TWO]

    def test_floating_ip_deleted_during_the_start_is_created_again(
        self, world, registered
    ):
        lease = world.create(addresses(2), start='now')
        deleted = []

        def meddle(method, path):
            if method == 'PUT' and not deleted:
                deleted.append(world.neutron.stored.popitem())

        world.neutron.meddle = meddle
        for _ in range(10):
            world.run(5)
        assert deleted
        assert world.neutron.owned('project') == [ONE, TWO]
        assert world.lease(lease).status == 'ACTIVE'

    def test_the_next_lease_waits_for_the_last_one(self, world, registered):
        first = world.create(addresses(3), start='now', end=100)
        second = world.create(addresses(3), start=100, end=200)
        world.run()
        world.neutron.meddle = lambda method, path: (
            Trouble(False, answer(500))
            if method == 'DELETE'
            else None
        )
        world.run(100)
        assert world.lease(first).status == 'TERMINATING'
        assert world.lease(second).status == 'PENDING'
        world.neutron.meddle = lambda method, path: None
        for _ in range(10):
            world.run(2)
        assert world.lease(first).status == 'TERMINATED'
        assert world.lease(second).status == 'ACTIVE'
        assert allocated(world, second) == [ONE, TWO, THREE]


def outcome(world, lease):
    """Return (degraded, missing, addresses) of a lease that has started."""
    held = world.lease(lease)
    assert held.status == 'ACTIVE'
    [reservation] = held.reservations
    assert reservation.made['floating_ips'] == sorted(
        id_
        for id_, f in world.neutron.stored.items()
        if f['project_id'] == 'project'
    )
    return (
        held.degraded,
        reservation.missing_resources,
        world.neutron.owned('project'),
    )


def spoil(world, how, address):
    """Make an address unusable after its registration."""
    [subnet] = world.neutron.subnets
    if how == 'in a pool':
        subnet['allocation_pools'].append({'start': address, 'end': address})
    elif how == 'the gateway':
        subnet['gateway_ip'] = address
    elif how == 'taken':
        world.neutron.take(address)
    elif how == 'used':
        world.neutron.use(address)
    elif how == 'refused':
        # The change comes between the list of subnets and the request.
        asked = world.neutron.request

        def request(url, method, json=None, **kwargs):
            if json and address in str(json):
                return refusal(400, 'InvalidIpForSubnet')
            return asked(url, method, json, **kwargs)

        world.neutron.request = request


class TestBroken:
    """Addresses that are unusable by the time the lease starts."""

    @pytest.mark.row('C30')
    @pytest.mark.parametrize(
        'how', ['in a pool', 'the gateway', 'taken', 'used', 'refused']
    )
    def test_broken_address_is_replaced_at_the_start(
        self, world, registered, how
    ):
        lease = world.create(addresses(2))
        spoil(world, how, ONE)
        world.run(100)
        assert outcome(world, lease) == (False, False, [TWO, THREE])
        assert allocated(world, lease) == [TWO, THREE]
        world.run(100)
        assert world.neutron.owned('project') == []
        world.check()

    def test_required_address_is_replaced_and_reported_missing(
        self, world, registered
    ):
        lease = world.create(addresses(1, TWO))
        spoil(world, 'in a pool', TWO)
        world.run(100)
        assert outcome(world, lease) == (True, False, [ONE])

    @pytest.mark.row('C30')
    @pytest.mark.parametrize('what', ['network', 'subnet'])
    def test_lease_starts_without_its_network_and_misses_its_addresses(
        self, world, registered, what
    ):
        lease = world.create(addresses(1))
        if what == 'network':
            del world.neutron.networks[NETWORK]
        else:
            world.neutron.subnets.clear()
        world.run(100)
        assert outcome(world, lease) == (True, True, [])

    def test_the_projects_quota(self, world, registered):
        lease = world.create(addresses(3))
        world.neutron.quota = 1
        world.run(100)
        assert outcome(world, lease) == (True, True, [ONE])
        assert allocated(world, lease) == [ONE, TWO, THREE]
        # With more quota, any repeated start creates them, and nothing is
        # missing any more.
        world.neutron.quota = 50
        world.floating_ips.create(NETWORK, '203.0.113.104')
        TestUpdating().change(world, lease, amount=4)
        world.run()
        degraded, missing, owned = outcome(world, lease)
        assert (degraded, missing, len(owned)) == (False, False, 4)

    def test_a_replacement_counts_from_then_on(self, world, registered):
        """After a crash the next attempt begins with the replacement."""
        lease = world.create(addresses(1))
        spoil(world, 'taken', ONE)
        posts = []

        def meddle(method, path):
            if method == 'POST':
                posts.append(path)
                if len(posts) == 2:
                    return Trouble(True)
            return None

        world.neutron.meddle = meddle
        world.run(100)
        assert allocated(world, lease) == [TWO]
        assert world.lease(lease).status != 'ACTIVE'
        for _ in range(10):
            world.run(5)
        assert outcome(world, lease) == (False, False, [TWO])
        assert len(posts) == 2


@pytest.fixture
def commits(world, monkeypatch):
    """Return the number of commits since the last call.

    Commits that place something are left out: hosts are healed in those.
    """
    made = []
    write = world.ledger.write

    def count(work):
        made.append(work)
        return write(work)

    monkeypatch.setattr(world.ledger, 'write', count)

    def commits():
        number = len(made)
        made.clear()
        return number

    return commits


def reservable(world):
    """Return the addresses that can be reserved."""
    return [f.address for f in world.registered() if f.reservable]


class TestLook:
    """Neutron's view of an address, at each polling interval."""

    @pytest.mark.parametrize(
        'how', ['in a pool', 'the gateway', 'taken', 'used']
    )
    def test_broken_address_is_not_reservable_until_it_is_right(
        self, world, registered, how
    ):
        subnets = copy.deepcopy(world.neutron.subnets)
        world.run(10)
        spoil(world, how, ONE)
        world.look()
        assert reservable(world) == [TWO, THREE]
        assert world.registered()[0].updated_at == world.now
        refused(
            refusals.NotEnoughFloatingIPAvailable, 'required_floatingips',
            world.create, addresses(1, ONE),
        )
        refused(
            refusals.NotEnoughFloatingIPAvailable, 'amount', world.create,
            addresses(3),
        )
        world.neutron.subnets = subnets
        world.neutron.stored.clear()
        world.neutron.ports.clear()
        world.look()
        assert reservable(world) == [ONE, TWO, THREE]
        world.create(addresses(3))

    @pytest.mark.parametrize('what', ['network', 'external', 'subnet'])
    def test_addresses_of_a_deleted_network_are_not_reservable(
        self, world, registered, what
    ):
        if what == 'network':
            del world.neutron.networks[NETWORK]
        elif what == 'external':
            world.neutron.networks[NETWORK] = False
        else:
            world.neutron.subnets.clear()
        world.look()
        assert reservable(world) == []

    def test_floating_ips_of_a_lease_are_reservable(self, world, registered):
        world.create(addresses(3), start='now')
        world.run()
        one, two, _ = world.neutron.stored.values()
        one['description'] = 'changed by the project'
        two['description'] = ''
        world.look()
        assert reservable(world) == [ONE, TWO, THREE]

    def test_another_project_cannot_pass_for_it(self, world, registered):
        lease = world.create(addresses(1))
        world.neutron.take(
            ONE, 'thief',
            description=f'blazar reservation {lease.reservations[0].id}',
        )
        world.look()
        assert reservable(world) == [TWO, THREE]

    def test_floating_ip_that_the_project_took_is_not_reservable(
        self, world, registered
    ):
        lease = world.create(addresses(1))
        world.leases.delete(lease.id, None)
        world.neutron.take(
            ONE, 'project',
            description=f'blazar reservation {lease.reservations[0].id}',
        )
        world.look()
        assert reservable(world) == [TWO, THREE]

    def test_lease_that_starts_during_the_query_keeps_its_addresses(
        self, world, registered
    ):
        """The lease is not known yet when the poll begins."""
        leases = []

        def meddle(method, path):
            if not leases:
                leases.append(None)
                leases[:] = [world.create(addresses(1), start='now')]
                world.run()

        world.neutron.meddle = meddle
        world.look()
        assert world.neutron.owned('project') == [ONE]
        assert reservable(world) == [ONE, TWO, THREE]
        assert world.registered()[0].updated_at is None

    def test_while_neutron_is_away_all_stays(
        self, world, registered, caplog, commits, monkeypatch
    ):
        monkeypatch.setattr(limited_log, 'PERIOD', 0.0)
        lease = world.create(addresses(1))
        world.neutron.asked.clear()
        world.look()
        requests = len(world.neutron.asked)
        assert requests >= 4
        spoil(world, 'in a pool', ONE)
        commits()
        for unlucky in range(requests):
            passed = itertools.count()
            world.neutron.meddle = lambda *_, last=unlucky, passed=passed: (
                Trouble(False) if next(passed) == last else None
            )
            caplog.clear()
            world.look()
            assert 'floating IP healing failed, retrying: ' in caplog.text
            assert commits() == 0
        world.neutron.meddle = lambda *_: None
        world.look()
        assert reservable(world) == [TWO, THREE]
        assert allocated(world, lease) == [TWO]

    def test_only_what_differs_is_written_and_in_one_commit(
        self, world, registered, commits
    ):
        spoil(world, 'in a pool', ONE)
        spoil(world, 'taken', TWO)
        commits()
        for expected in (1, 0):
            world.look()
            assert commits() == expected
        assert reservable(world) == [THREE]

    def test_neutron_is_not_queried_without_registered_addresses(self, world):
        world.look()
        assert world.neutron.asked == []

    def test_neutron_is_not_queried_without_the_polling_monitor(
        self, world, registered, conf
    ):
        conf.set_override('enable_polling_monitor', False, 'manager')
        world.neutron.asked.clear()
        world.look()
        assert world.neutron.asked == []

    def test_floating_ips_are_not_healed_without_neutron(
        self, world, registered, caplog
    ):
        healing.Healer(
            world.manager.conf, world.ledger, Neutron(None), world.healer,
            world.clock, world.manager.metrics,
        ).heal()
        assert caplog.text == ''
        assert reservable(world) == [ONE, TWO, THREE]


def flags(world, lease):
    """Return degraded, and the first reservation's two flags."""
    lease = world.lease(lease)
    first = lease.reservations[0]
    return lease.degraded, first.missing_resources, first.resources_changed


class TestHealingPending:
    @pytest.mark.row('F70')
    @pytest.mark.parametrize(
        'how', ['in a pool', 'the gateway', 'taken', 'used']
    )
    def test_only_broken_addresses_are_replaced(self, world, registered, how):
        lease = world.create(addresses(2))
        spoil(world, how, ONE)
        world.look()
        assert allocated(world, lease) == [TWO, THREE]
        assert flags(world, lease) == (False, False, False)
        assert world.neutron.owned('project') == []
        world.run(100)
        assert outcome(world, lease) == (False, False, [TWO, THREE])
        world.check()

    def test_replacement_spares_addresses_that_others_require(
        self, world, registered
    ):
        world.floating_ips.create(NETWORK, '203.0.113.104')
        lease = world.create(addresses(1), addresses(1, TWO))
        first = world.create(addresses(1, THREE))
        spoil(world, 'taken', TWO)
        world.look()
        assert allocated(world, lease, 1) == ['203.0.113.104']
        world.leases.delete(first.id, None)
        world.neutron.stored.clear()
        spoil(world, 'taken', ONE)
        world.look()
        assert allocated(world, lease, 0) == [THREE]
        assert allocated(world, lease, 1) == [TWO]
        assert not world.lease(lease).degraded
        world.check()

    def test_address_without_replacement_is_missing(
        self, world, registered, commits
    ):
        lease = world.create(addresses(3))
        spoil(world, 'in a pool', ONE)
        world.look()
        assert flags(world, lease) == (True, True, False)
        assert world.lease(lease).status == 'PENDING'
        commits()
        world.look()
        assert commits() == 0
        world.check()

    def test_missing_address_is_replaced_by_a_new_one(self, world, registered):
        lease = world.create(addresses(3))
        spoil(world, 'in a pool', ONE)
        world.look()
        world.floating_ips.create(NETWORK, '203.0.113.104')
        world.look()
        assert allocated(world, lease) == [TWO, THREE, '203.0.113.104']
        assert flags(world, lease) == (False, False, False)
        [one, *_] = world.registered()
        world.floating_ips.delete(one.id)

    def test_missing_address_is_not_missing_once_it_is_right(
        self, world, registered
    ):
        lease = world.create(addresses(3))
        spoil(world, 'taken', ONE)
        world.look()
        refused(
            refusals.NotEnoughFloatingIPAvailable, 'amount', world.create,
            addresses(1),
        )
        world.neutron.stored.clear()
        world.look()
        assert allocated(world, lease) == [ONE, TWO, THREE]
        assert flags(world, lease) == (False, False, False)
        world.run(100)
        assert outcome(world, lease) == (False, False, [ONE, TWO, THREE])

    def test_required_address_is_replaced_and_reported_missing(
        self, world, registered
    ):
        lease = world.create(addresses(1, TWO))
        spoil(world, 'taken', TWO)
        world.look()
        assert allocated(world, lease) == [ONE]
        assert flags(world, lease) == (True, False, False)
        world.look()
        assert flags(world, lease) == (True, False, False)
        world.neutron.stored.clear()
        world.look()
        assert allocated(world, lease) == [TWO]
        assert flags(world, lease) == (False, False, False)

    def test_addresses_of_later_leases_stay_until_the_start_is_near(
        self, world, registered
    ):
        lease = world.create(addresses(1), start=7200, end=9000)
        spoil(world, 'in a pool', ONE)
        world.look()
        assert allocated(world, lease) == [ONE]
        world.clock.now += 3600
        world.look()
        assert allocated(world, lease) == [TWO]

    def test_lease_is_degraded_until_hosts_and_addresses_are_there(
        self, world, registered, whole
    ):
        world.add_host('a')
        lease = world.create(whole(), addresses(3))
        spoil(world, 'taken', ONE)
        world.fail('a')
        world.set_up('a')
        first, second = world.lease(lease).reservations
        assert not first.missing_resources
        assert second.missing_resources
        assert world.lease(lease).degraded
        world.fail('a')
        world.neutron.stored.clear()
        world.look()
        first, second = world.lease(lease).reservations
        assert first.missing_resources
        assert not second.missing_resources
        assert world.lease(lease).degraded
        world.set_up('a')
        assert not world.lease(lease).degraded

    def test_degraded_and_healed_leases_are_notified(
        self, world, registered, monkeypatch
    ):
        told = notified(
            world.manager, monkeypatch,
            lambda type_, payload: (type_, payload['degraded']),
        )
        world.create(addresses(2))
        for address in (ONE, TWO):
            spoil(world, 'taken', address)
            for _ in range(2):
                world.look()
        world.neutron.stored.clear()
        world.look()
        assert told == [
            ('lease.create', False),
            ('lease.healed', False),
            ('lease.degraded', True),
            ('lease.healed', False),
        ]

    def test_lease_with_missing_addresses_can_be_shortened(
        self, world, registered
    ):
        lease = world.create(addresses(3))
        spoil(world, 'in a pool', ONE)
        world.look()
        move = TestUpdating().move
        move(world, lease, end=190)
        refused(
            refusals.NotEnoughFloatingIPAvailable, 'amount', move, world,
            lease, end=191,
        )
        TestUpdating().change(world, lease, amount=2)
        move(world, lease, end=191)
        world.look()
        assert flags(world, lease) == (False, False, False)
        world.check()


class TestHealingActive:
    @pytest.fixture
    def lease(self, world, registered):
        """A lease with the addresses ONE and TWO."""
        lease = world.create(addresses(2), start='now', end=500)
        world.run()
        return lease

    def lose(self, world, address):
        """Delete a floating IP, as its project."""
        [id_] = [
            id_
            for id_, f in world.neutron.stored.items()
            if f['floating_ip_address'] == address
        ]
        del world.neutron.stored[id_]

    def heal(self, world):
        world.look()
        world.run()

    def test_floating_ip_that_the_project_deleted_is_created_again(
        self, world, lease
    ):
        kept = [
            f
            for f in world.neutron.stored.values()
            if f['floating_ip_address'] == TWO
        ]
        self.lose(world, ONE)
        self.heal(world)
        assert outcome(world, lease) == (False, False, [ONE, TWO])
        assert kept[0] in world.neutron.stored.values()
        assert not flags(world, lease)[2]

    def test_address_that_another_project_has_is_replaced(self, world, lease):
        self.lose(world, ONE)
        spoil(world, 'taken', ONE)
        self.heal(world)
        assert outcome(world, lease) == (False, False, [TWO, THREE])
        assert allocated(world, lease) == [TWO, THREE]
        assert flags(world, lease) == (False, False, True)
        world.run(500)
        assert world.neutron.owned('project') == []
        assert world.neutron.owned('somebody') == [ONE]
        world.check()

    def test_missing_address_is_replaced_by_a_new_one(
        self, world, lease, commits
    ):
        world.create(addresses(1, THREE), start=300, end=400)
        self.lose(world, ONE)
        spoil(world, 'taken', ONE)
        self.heal(world)
        assert flags(world, lease) == (True, True, False)
        commits()
        self.heal(world)
        assert commits() == 0
        assert world.lease(lease).status == 'ACTIVE'
        world.floating_ips.create(NETWORK, '203.0.113.104')
        self.heal(world)
        assert outcome(world, lease) == (False, False, [TWO, '203.0.113.104'])
        assert flags(world, lease) == (False, False, True)
        world.check()

    @pytest.mark.parametrize('how', ['in a pool', 'the gateway'])
    def test_floating_ip_in_use_stays(self, world, lease, commits, how):
        """Neutron gives the address to no other project; it is not reservable.
        """
        spoil(world, how, ONE)
        self.heal(world)
        assert reservable(world) == [TWO, THREE]
        assert outcome(world, lease) == (False, False, [ONE, TWO])
        commits()
        self.heal(world)
        assert commits() == 0
        move = TestUpdating().move
        for end in (600, 400):
            move(world, lease, end=end)
            assert allocated(world, lease) == [ONE, TWO]
        TestUpdating().change(world, lease, amount=3)
        world.run()
        assert outcome(world, lease) == (False, False, [ONE, TWO, THREE])
        world.run(400)
        assert world.neutron.stored == {}

    def test_lease_with_missing_addresses_can_be_ended(self, world, lease):
        world.create(addresses(1, THREE), start=300, end=400)
        self.lose(world, ONE)
        spoil(world, 'taken', ONE)
        self.heal(world)
        world.run(10)
        world.leases.update(lease.id, None, {'end': 'now'})
        world.run()
        assert world.lease(lease).status == 'TERMINATED'
        assert world.neutron.owned('project') == []
        world.check()

    def test_no_quota_is_not_tried_again_and_again(
        self, world, registered, commits
    ):
        lease = world.create(addresses(3), start='now', end=500)
        world.neutron.quota = 1
        world.run()
        commits()
        for _ in range(3):
            self.heal(world)
        assert commits() == 0
        assert outcome(world, lease) == (True, True, [ONE])
        world.neutron.quota = -1
        self.heal(world)
        assert outcome(world, lease) == (False, False, [ONE, TWO, THREE])

    def test_lost_required_address_stays_missing(
        self, world, registered, commits
    ):
        lease = world.create(addresses(1, TWO), start='now', end=500)
        world.run()
        self.lose(world, TWO)
        spoil(world, 'taken', TWO)
        self.heal(world)
        assert outcome(world, lease) == (True, False, [ONE])
        self.lose(world, TWO)
        for _ in range(2):
            self.heal(world)
            assert outcome(world, lease) == (True, False, [ONE])
        commits()
        self.heal(world)
        assert commits() == 0

    @pytest.mark.parametrize('change', ['starts', 'is deleted'])
    def test_outdated_answer_of_neutron_changes_no_lease(
        self, world, registered, change, caplog
    ):
        """The lease changes meanwhile, and the fault is corrected."""
        lease = world.create(addresses(1))
        subnets = copy.deepcopy(world.neutron.subnets)
        spoil(world, 'in a pool', ONE)
        answer = world.neutron.request

        def request(url, method, *args, **kwargs):
            said = answer(url, method, *args, **kwargs)
            if '/floatingips?' in url:
                world.neutron.request = answer
                world.neutron.subnets = subnets
                if change == 'starts':
                    world.run(100)
                else:
                    world.leases.delete(lease.id, None)
            return said

        world.neutron.request = request
        world.look()
        assert world.neutron.request is answer
        assert 'Could not heal' not in caplog.text
        world.run()
        if change == 'starts':
            assert outcome(world, lease) == (False, False, [ONE])
            assert allocated(world, lease) == [ONE]
        world.check()

    def test_starting_lease_is_not_healed(self, world, registered):
        lease = world.create(addresses(1))
        world.neutron.meddle = lambda method, path: (
            Trouble(False) if method == 'POST' else None
        )
        world.run(100)
        assert world.lease(lease).status == 'STARTING'
        spoil(world, 'in a pool', ONE)
        world.look()
        assert allocated(world, lease) == [ONE]
        world.neutron.meddle = lambda method, path: None
        world.run(20)
        assert outcome(world, lease) == (False, False, [TWO])


@pytest.mark.parametrize('seed', range(12))
def test_healed_addresses_are_those_of_a_plain_scan(
    world, conf, seed, commits
):
    """Usable addresses stay; an address is missing only if none is free."""
    draw = random.Random(seed)
    conf.set_override('healing_interval', 0, 'manager')
    every = [f'203.0.113.{n}' for n in range(100, 108)]
    for address in every:
        world.floating_ips.create(NETWORK, address)
    leases = []
    for _ in range(8):
        start = draw.randrange(10, 200)
        with contextlib.suppress(refusals.NotEnoughFloatingIPAvailable):
            leases.append(
                world.create(
                    *(addresses(draw.randrange(1, 4)) for _ in 'ab'),
                    start=start, end=start + draw.randrange(1, 100),
                )
            )
    pairs = [(lease, n) for lease in leases for n in (0, 1)]
    before = [set(allocated(world, *pair)) for pair in pairs]
    bad = set(draw.sample(every, 3))
    for address in bad:
        spoil(world, 'taken', address)
    world.look()
    world.check()
    after = [set(allocated(world, *pair)) - bad for pair in pairs]

    for (lease, n), held, right in zip(pairs, before, after, strict=True):
        assert held - bad <= right
        new = world.lease(lease)
        missing = new.reservations[n].demand.least - len(right)
        assert missing >= 0
        assert new.reservations[n].missing_resources == (missing > 0)
        assert new.degraded == any(
            r.missing_resources for r in new.reservations
        )
        used = {
            address
            for (other, _), theirs in zip(pairs, after, strict=True)
            if other.start < lease.end and lease.start < other.end
            for address in theirs
        }
        assert not missing or used == set(every) - bad
    commits()
    world.look()
    assert commits() == 0


def live(world, hook=None):
    """Run a lease to its end; return its objects, and the objects left.

    :param hook: called with the name of each point that its events pass
    """

    def until(status):
        last = world.now + 1200
        while world.lease(lease).status != status:
            assert world.now < last
            with contextlib.suppress(Killed):
                world.run(5)

    lease = world.create(addresses(2), start='now', end=3000)
    faults.arm(hook)
    until('ACTIVE')
    tags = [len(f['tags']) for f in world.neutron.stored.values()]
    inside = outcome(world, lease), tags
    world.neutron.forward(next(iter(world.neutron.stored)))
    world.clock.now = max(world.now, lease.end)
    until('TERMINATED')
    faults.arm(None)
    return inside, dict(world.neutron.stored)


class Killed(BaseException):
    """The end of the manager's process: its claim expires."""


TROUBLES = {
    'fails': lambda: Trouble(False, answer(500)),
    'is done and fails': lambda: Trouble(True, answer(500)),
    'is done and times out': lambda: Trouble(True),
    'meets a proxy': lambda: Trouble(False, answer(200)),
}


@pytest.mark.more
@pytest.mark.parametrize('trouble', TROUBLES)
def test_one_request_meets_trouble(world, registered, trouble):
    """Each request fails in turn: the lease is complete, and leaves nothing.
    """
    world.neutron.asked.clear()
    healthy = live(world)
    assert healthy == (((False, False, [ONE, TWO]), [2, 2]), {})
    met = 0
    for unlucky in range(len(world.neutron.asked)):
        passed = itertools.count()

        def meddle(method, path, unlucky=unlucky, passed=passed):
            nonlocal met
            here = trouble != 'meets a proxy' or method == 'GET'
            if next(passed) != unlucky or not here:
                return None
            met += 1
            return TROUBLES[trouble]()

        world.neutron.meddle = meddle
        assert live(world) == healthy
    assert met > 3
    world.check()


@pytest.fixture
def disarmed():
    yield
    faults.arm(None)


@pytest.mark.more
def test_killed_at_any_point(world, registered, disarmed):
    """At each point in turn, while one address of two is to be replaced."""
    world.neutron.subnets[0]['allocation_pools'].append(
        {'start': ONE, 'end': ONE}
    )
    points = []
    healthy = live(world, points.append)
    assert healthy == (((False, False, [TWO, THREE]), [2, 2]), {})
    assert len(points) > 20
    for last in range(len(points)):
        passed = itertools.count()

        def kill(name, last=last, passed=passed):
            if next(passed) == last:
                raise Killed

        assert live(world, kill) == healthy, points[last]
        world.check()


@pytest.mark.more
def test_killed_at_any_point_of_the_healing(world, registered, disarmed):
    """At each point in turn, while an active lease's address is replaced."""

    def heal(hook):
        lease = world.create(addresses(2), start='now', end=3000)
        world.run()
        TestHealingActive().lose(world, ONE)
        thief = world.neutron.take(ONE)
        faults.arm(hook)
        for _ in range(6):
            with contextlib.suppress(Killed):
                world.look()
            with contextlib.suppress(Killed):
                world.run(30)
        faults.arm(None)
        healed = outcome(world, lease), flags(world, lease)
        world.check()
        del world.neutron.stored[thief['id']]
        world.run(3000)
        world.look()
        assert world.neutron.stored == {}
        return healed

    points = []
    healthy = heal(points.append)
    assert healthy == ((False, False, [TWO, THREE]), (False, False, True))
    first = len(points) // 2
    for last in range(first):
        passed = itertools.count()

        def kill(name, last=last, passed=passed):
            if next(passed) == last:
                raise Killed

        assert heal(kill) == healthy, points[last]
