# SPDX-License-Identifier: Apache-2.0
"""The restorer: vacated servers are unshelved, and lose their notice."""

import pytest

from tests.functional.manager.managed_cloud import NotifyingCloud
from tests.standins.rest import Trouble

INTERVAL = 60


@pytest.fixture
def conf(conf):
    conf.set_override('vacate_lead_time', 600, 'manager')
    conf.set_override('vacate_notice', 120, 'manager')
    conf.set_override('vacate_order', ['shelve'], 'manager')
    conf.set_override('restore_interval', float(INTERVAL), 'manager')
    return conf


@pytest.fixture
def site(conf, world):
    site = NotifyingCloud(conf, world.clock, 'a', 'b')
    yield site
    site.ledger.close()


@pytest.fixture
def lease(site, whole):
    return site.create(whole())


def shelved(site, **values):
    """Boot a server that the service has shelved to vacate its host."""
    server = site.server(None, **values)
    site.ledger.write(lambda tx: tx.add_shelved_server(server['id']))
    server['status'] = 'SHELVED_OFFLOADED'
    server['metadata'] = {
        'blazar_restore': 'true', 'blazar_vacate_at': '2026-01-01T00:00:00Z',
    }
    return server


def steps(site, count, place=lambda server: None):
    """Run steps; return the number of unshelve requests in each."""
    asked = []
    for _ in range(count):
        site.asked()
        site.manager.restorer.step()
        asked.append(sum(path.endswith('/action') for _, path in site.asked()))
        site.cloud.settle(place)
        site.clock.now += INTERVAL
    return asked


@pytest.mark.row('F57')
def test_server_shelved_for_a_lease_comes_back(site, lease):
    server = site.server('a')
    site.run(400)
    site.run(120)
    site.cloud.settle()
    assert server['status'] == 'SHELVED_OFFLOADED'
    steps(site, 1, lambda server: 'b')
    assert server['status'] == 'ACTIVE'
    # The notice in the metadata is removed.
    steps(site, 1)
    assert server['metadata'] == {}


def test_server_without_room_is_tried_more_and_more_rarely(site):
    shelved(site)
    asked = steps(site, 200)
    tries = [n for n, count in enumerate(asked) if count]
    gaps = [b - a for a, b in zip(tries, tries[1:], strict=False)]
    assert gaps[:6] == [1, 2, 4, 8, 16, 32]
    # After an hour at the latest.
    assert set(gaps[6:]) == {60}


def test_oldest_shelved_servers_are_unshelved_first_in_groups(site):
    servers = [shelved(site, age=n) for n in range(25)]
    assert steps(site, 3, lambda server: 'b') == [10, 10, 5]
    assert all(s['status'] == 'ACTIVE' for s in servers)


def test_servers_without_room_delay_no_other(site):
    old = [shelved(site, age=100) for _ in range(10)]
    young = shelved(site)
    steps(site, 2, lambda s: None if s in old else 'b')
    assert young['status'] == 'ACTIVE'


@pytest.mark.parametrize(
    'name', ['purpose', 'blazar_vacate_at', 'blazar_restore']
)
def test_server_that_others_have_shelved_stays_shelved(site, name):
    """This holds whatever the owner of the server writes into its metadata."""
    server = site.server(None)
    server['status'] = 'SHELVED_OFFLOADED'
    server['metadata'] = {name: 'true'}
    assert steps(site, 2) == [0, 0]


def test_server_that_an_administrator_has_locked_stays_shelved(site):
    server = shelved(site)
    server['locked'] = True
    assert steps(site, 2) == [0, 0]
    server['locked'] = False
    assert steps(site, 1, lambda server: 'b') == [1]


def test_restored_server_that_others_shelve_again_stays_shelved(site):
    """After the return of a server its record is removed."""
    server = shelved(site)
    steps(site, 2, lambda server: 'b')
    assert site.ledger.shelved_servers() == set()
    server['status'] = 'SHELVED_OFFLOADED'
    server['metadata'] = {'blazar_restore': 'true'}
    assert steps(site, 2) == [0, 0]


def test_record_of_a_deleted_shelved_server_is_removed(site):
    there, gone = shelved(site), shelved(site)
    del site.cloud.servers[gone['id']]
    steps(site, 1)
    assert site.ledger.shelved_servers() == {there['id']}


@pytest.mark.parametrize('hints', [
    {'lease_end': '2027-01-01T00:00'},
    {'lease_start': '2028-01-01T00:00', 'lease_end': '2029-01-01T00:00'},
], ids=['over', 'to come'])
def test_out_of_its_own_time_it_stays_shelved(site, hints):
    server = shelved(site)
    server['created'] = '2026-12-01T00:00:00Z'
    server['scheduler_hints'] = hints
    assert steps(site, 1) == [0]


def test_another_end_of_its_lease_is_what_holds(site):
    server = site.server('a')
    server['scheduler_hints'] = {'lifetime': '1h'}
    site.sync()
    [lease] = site.ledger.leases()
    site.run()
    site.manager.leases.update(lease.id, 'other', {'end': site.now + 7200})
    server['OS-EXT-SRV-ATTR:hypervisor_hostname'] = None
    site.ledger.write(lambda tx: tx.add_shelved_server(server['id']))
    server['status'] = 'SHELVED_OFFLOADED'
    site.clock.now += 3700
    assert steps(site, 1) == [1]


def test_two_managers_ask_for_no_more_than_one(site):
    server = shelved(site)
    other = site.another()
    site.manager.restorer.step()
    other.restorer.step()
    site.cloud.settle(lambda server: 'b')
    assert server['status'] == 'ACTIVE'
    for manager in (site.manager, other):
        manager.restorer.step()
    assert server['metadata'] == {}
    other.ledger.close()


@pytest.mark.row('F57')
def test_while_its_host_is_vacated_it_stays_told(site, lease):
    server = site.server('a')
    site.run(400)
    said = dict(server['metadata'])
    steps(site, 1)
    assert server['metadata'] == said
    # This lasts until the lease is over.
    site.manager.leases.delete(lease.id, None)
    steps(site, 1)
    assert server['metadata'] == {}


def test_notice_given_during_the_list_of_servers_stays(
    site, lease, monkeypatch
):
    """The vacating has become due since the poll began."""
    server = site.server('a')
    site.clock.now += 399
    nova = site.manager.services.nova
    listed = nova.servers

    def servers(**filters):
        monkeypatch.setattr(nova, 'servers', listed)
        site.run(1)
        return listed(**filters)

    monkeypatch.setattr(nova, 'servers', servers)
    site.manager.restorer.step()
    assert server['metadata'].keys() == {'blazar_vacate_at'}


def test_shelved_server_on_a_host_being_vacated_stays_shelved(site, lease):
    server = shelved(site)
    server['status'] = 'SHELVED'
    server['OS-EXT-SRV-ATTR:hypervisor_hostname'] = 'a'
    site.run(400)
    assert steps(site, 1) == [0]


def test_server_that_has_moved_loses_its_notice(site, lease):
    server = site.server('a')
    site.run(400)
    server['OS-EXT-SRV-ATTR:hypervisor_hostname'] = 'b'
    steps(site, 1)
    assert server['metadata'] == {}


def test_notice_of_a_moving_server_is_removed_later(site):
    server = site.server('b')
    server['metadata'] = {'blazar_vacate_at': '2026-01-01T00:00:00Z'}
    server['OS-EXT-STS:task_state'] = 'migrating'
    steps(site, 1)
    assert site.asked() == []
    server['OS-EXT-STS:task_state'] = None
    steps(site, 1)
    assert server['metadata'] == {}


def test_while_nova_is_away_nothing_is_lost(site):
    server = shelved(site)
    site.cloud.meddle = lambda method, path: Trouble(False)
    with pytest.raises(Exception, match='cannot be reached'):
        site.manager.restorer.step()
    site.cloud.meddle = lambda method, path: None
    steps(site, 1, lambda server: 'b')
    assert server['status'] == 'ACTIVE'
