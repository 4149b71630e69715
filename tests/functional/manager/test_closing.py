# SPDX-License-Identifier: Apache-2.0
"""Hosts that are closed, come or go: no leases, and vacated in time."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.service.bus import notifier
from tests import closed
from tests.functional.manager.managed_cloud import NotifyingCloud

LEAD, NOTICE = 600, 120


@pytest.mark.row('F75')
class TestHostThatComesOrGoes:
    def test_host_is_closed_before_it_comes_and_after_it_goes(self, world, on):
        world.add_host('a')
        host = world.host('a')
        world.hosts.update(host.id, {
            'available_from': '2027-02-01 00:00',
            'available_until': '2027-03-01 00:00',
        })
        start = world.host('a').available_from - world.now
        for at in (100, start - 10, start + 40 * 86400):
            with pytest.raises(exception.NotEnoughHostsAvailable):
                world.create(start=at, end=at + 20)
        assert on(world.create(start=start, end=start + 20)) == ['a']
        world.check()
        world.hosts.update(
            host.id, {'available_from': None, 'available_until': None}
        )
        world.create(start=100, end=120)
        world.check()

    def test_a_host_that_is_gone_before_it_comes(self, world):
        world.add_host('a')
        with pytest.raises(exception.InvalidInput) as error:
            world.hosts.update(world.host('a').id, {
                'available_from': '2027-03-01 00:00',
                'available_until': '2027-02-01 00:00',
            })
        assert error.value.field == 'available_until'

    def test_leases_leave_a_host_that_will_be_gone(self, world, on):
        world.add_host('a')
        lease = world.create(start=10**6, end=10**6 + 100)
        world.add_host('b')
        world.hosts.update(
            world.host('a').id, {'available_until': '2027-01-16 00:00'}
        )
        world.manager.replanner.replan()
        assert on(lease) == ['b']
        world.check()


class TestDrain:
    @pytest.fixture
    def conf(self, conf):
        conf.set_override('vacate_lead_time', LEAD, 'manager')
        conf.set_override('vacate_notice', NOTICE, 'manager')
        return conf

    @pytest.fixture
    def site(self, conf, world):
        site = NotifyingCloud(conf, world.clock, 'a', 'b')
        yield site
        site.ledger.close()

    @pytest.fixture
    def shut(self, site):
        closed.close(site.ledger, 'a', site.now + 1000, site.now + 2000)

    def step(self, site, seconds=0, manager=None):
        site.clock.now += seconds
        site.sync()
        (manager or site.manager).closing.step()

    def test_server_has_no_notice_before_the_lead_time(self, site, shut):
        server = site.server('a')
        self.step(site, 1000 - LEAD - 1)
        assert server['metadata'] == {}

    def test_server_gets_a_notice_and_is_migrated_then(self, site, shut):
        server, other = site.server('a'), site.server('b')
        self.step(site, 1000 - LEAD)
        assert 'blazar_vacate_at' in server['metadata']
        assert server['OS-EXT-STS:task_state'] is None
        self.step(site, NOTICE)
        assert server['OS-EXT-STS:task_state'] == 'migrating'
        assert other['OS-EXT-STS:task_state'] is None
        assert other['metadata'] == {}

    def test_the_owner_of_a_server_is_told_the_reason(self, site, shut):
        server = site.server('a')
        self.step(site, 1000 - LEAD)
        [payload] = [
            payload for type_, payload in site.sent()
            if type_ == notifier.INSTANCE_VACATE
        ]
        assert payload['instance_id'] == server['id']
        assert payload['lease_id'] is None
        assert payload['maintenance_id'] == 'm1'
        assert payload['reason'] == 'power'

    def test_a_server_that_ends_before_is_left_alone(self, site, shut):
        ending = site.server('a', **{'blazar:lifetime': '900s'})
        staying = site.server('a', **{'blazar:lifetime': '1100s'})
        site.sync()
        self.step(site, 1000 - LEAD)
        assert 'blazar_vacate_at' not in ending['metadata']
        assert 'blazar_vacate_at' in staying['metadata']

    def test_a_preemptible_server_is_deleted(self, site, shut):
        server = site.preemptible('a')
        self.step(site, 1000 - LEAD)
        self.step(site, NOTICE)
        path = f'/servers/{server["id"]}/action'
        assert ('POST', path) in site.asked()
        assert server['id'] not in site.cloud.servers

    def test_another_manager_goes_on(self, site, shut):
        server = site.server('a')
        self.step(site, 1000 - LEAD)
        at = server['metadata']['blazar_vacate_at']
        other = site.another()
        self.step(site, NOTICE // 2, other)
        assert server['metadata']['blazar_vacate_at'] == at
        assert server['OS-EXT-STS:task_state'] is None
        self.step(site, NOTICE // 2, other)
        assert server['OS-EXT-STS:task_state'] == 'migrating'
        other.ledger.close()

    def test_a_server_that_comes_in_the_window_has_to_go(self, site, shut):
        self.step(site, 1000)
        server = site.server('a')
        self.step(site, 10)
        assert 'blazar_vacate_at' in server['metadata']
        assert server['OS-EXT-STS:task_state'] is None
        self.step(site, NOTICE)
        assert server['OS-EXT-STS:task_state'] == 'migrating'

    def test_what_does_not_help_is_followed_by_the_next(self, site, shut):
        """Also in the window, where the start is over."""
        server = site.server('a')
        self.step(site, 1000)
        self.step(site, NOTICE)
        for task in ('migrating', 'shelving'):
            assert server['OS-EXT-STS:task_state'] == task
            server['OS-EXT-STS:task_state'] = None
            self.step(site, 10)

    def test_cancelled_while_it_drains(self, site, shut):
        server = site.server('a')
        self.step(site, 1000 - LEAD)
        closed.put(site.ledger, 'a')
        self.step(site, NOTICE)
        site.manager.restorer.step()
        assert server['OS-EXT-STS:task_state'] is None
        assert 'blazar_vacate_at' not in server['metadata']

    def test_the_restorer_leaves_the_notice_meanwhile(self, site, shut):
        server = site.server('a')
        self.step(site, 1000 - LEAD)
        site.manager.restorer.step()
        assert 'blazar_vacate_at' in server['metadata']

    def test_server_has_no_notice_after_the_maintenance(self, site, shut):
        self.step(site, 2000)
        server = site.server('a')
        self.step(site, 10)
        assert server['OS-EXT-STS:task_state'] is None
        assert server['metadata'] == {}

    def test_a_server_on_a_host_before_it_has_come_stays(self, site):
        server = site.server('a')
        [host] = [
            h for h in site.ledger.hosts() if h.hypervisor_hostname == 'a'
        ]
        site.manager.hosts.update(
            host.id, {'available_from': '2037-01-01 00:00'}
        )
        self.step(site)
        assert server['metadata'] == {}
