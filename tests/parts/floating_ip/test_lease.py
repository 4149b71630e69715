# SPDX-License-Identifier: Apache-2.0
"""Leases of floating IPs beside hosts and instances."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.parts.floating_ip import exception as refusals
from blazar_sched.service import faults
from blazar_sched.service import parts
from blazar_sched.service.api import deploy
from blazar_sched.service.bus import rpc
from blazar_sched.service.ledger.tx import Tx
from tests import loopback
from tests.standins.neutron import NETWORK


class TestAllOrNothing:
    """Reservations of several types are changed together or not at all."""

    @pytest.fixture
    def addresses(self, world):
        """addresses(amount, …) -> a request for floating IPs, of two."""
        for address in ('203.0.113.101', '203.0.113.102'):
            world.floating_ips.create(NETWORK, address)
        return lambda amount, **parameters: {
            'resource_type': 'virtual:floatingip',
            'network_id': NETWORK,
            'amount': amount,
            **parameters,
        }

    def state(self, world, lease):
        ids = [r.id for r in world.lease(lease).reservations]
        return (
            world.lease(lease),
            world.held(lease),
            [world.registered(id_) for id_ in ids],
        )

    def test_new_lease_has_all_reservations_or_none(
        self, world, slots, addresses
    ):
        world.add_host('a', vcpus=8)
        for asked in ((slots(1), addresses(3)), (slots(5), addresses(1))):
            with pytest.raises(exception.Conflict):
                world.create(*asked)
        assert world.ledger.leases() == []
        world.create(slots(4), addresses(2))
        world.check()

    @pytest.mark.parametrize('start', ['now', 100])
    def test_of_an_update(self, world, slots, addresses, start):
        world.add_host('a', vcpus=8)
        lease = world.create(slots(1), addresses(1), start=start)
        world.run()
        before = self.state(world, lease)
        first, second = (r.id for r in lease.reservations)

        def update(amount, number, **values):
            world.leases.update(
                lease.id, None,
                {
                    'reservations': [
                        {'id': first, 'amount': amount},
                        {'id': second, 'amount': number},
                    ],
                    **values,
                },
            )

        for values in ((2, 3), (5, 2)):
            with pytest.raises(exception.Conflict):
                update(*values, name='new', end=lease.end + 50)
            assert self.state(world, lease) == before
        update(2, 2, name='new', end=lease.end + 50)
        assert len(self.state(world, lease)[2][1]) == 2
        world.check()

    def test_reservation_is_added_to_and_removed_from_an_active_lease(
        self, world, slots, addresses
    ):
        world.add_host('a')
        lease = world.create(slots(1), start='now', end=1000)
        world.run()
        wanted = '203.0.113.102'
        asked = addresses(1, required_floatingips=[wanted])
        change = {'reservations': [asked]}
        added = world.leases.update(lease.id, None, change).reservations[1]
        world.run()
        assert world.neutron.owned('project') == [wanted]
        change = {'reservations': [{'id': added.id, 'remove': True}]}
        world.leases.update(lease.id, None, change)
        world.run()
        assert world.neutron.owned('project') == []
        assert len(world.ledger.leases()) == 1
        world.create(addresses(2))
        world.check()


@pytest.mark.row('F7')
@pytest.mark.parametrize(
    'step', ['add_leases', 'put_off_hosts', 'commit']
)
def test_of_each_kind_all_is_kept_or_nothing(
    world, whole, slots, monkeypatch, step
):
    for name in 'ab':
        world.add_host(name)
    address = {
        'resource_type': 'virtual:floatingip',
        'network_id': NETWORK,
        'amount': 1,
    }

    def die(*args, **kwargs):
        raise RuntimeError(f'the manager dies in {step}')

    def nothing_is_kept():
        assert world.ledger.leases() == []
        assert world.ledger.allocations() == []
        assert world.ledger.due_events(window.TIME_LIMIT) == []
        world.check()

    with pytest.raises(refusals.NotEnoughFloatingIPAvailable):
        world.create(whole(), slots(2), address)
    nothing_is_kept()
    world.floating_ips.create(NETWORK, '203.0.113.101')
    with monkeypatch.context() as dying:
        if step == 'commit':
            dying.setattr(faults, '_hook', die)
        else:
            dying.setattr(Tx, step, die)
        with pytest.raises(RuntimeError, match=step):
            world.create(whole(), slots(2), address)
    nothing_is_kept()
    lease = world.create(whole(), slots(2), address)
    assert len(world.held(lease)) == 2
    assert world.registered(lease.reservations[2].id)
    world.check()


@pytest.mark.parametrize('use', [{'projects': []}, {'on_end': 'keep'}])
def test_floating_ips_have_no_use(world, use):
    [field] = use
    with pytest.raises(exception.InvalidInput) as refusal:
        world.create(
            {
                'resource_type': 'virtual:floatingip',
                'network_id': NETWORK,
                'amount': 1,
                **use,
            }
        )
    assert refusal.value.field == field


def test_a_cloud_without_the_part_refuses_the_resource_type(conf, world):
    running = parts.installed().keys() - {'floating_ip'}
    conf.set_override('parts', sorted(running))
    conf.set_override('auth_strategy', 'noauth', 'api')
    manager = world.another(conf)
    api = loopback.client(deploy.deploy(conf, rpc.Local(manager.endpoint)))

    refused = api.simulate_post(
        '/v1/leases', headers={'X-Auth-Token': 'alice:p1'}, json={
            'name': 'lease', 'start_date': '2030-01-01 00:00',
            'end_date': '2030-01-01 01:00', 'reservations': [{
                'resource_type': 'virtual:floatingip', 'network_id': NETWORK,
                'amount': 1,
            }],
        },
    )

    assert refused.status_code == 400
    assert 'resource_type' in refused.json['error_message']
    assert world.ledger.leases() == []
    assert world.ledger.check() == []
