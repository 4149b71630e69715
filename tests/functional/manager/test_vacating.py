# SPDX-License-Identifier: Apache-2.0
"""Vacating: the requests to Nova ahead of a lease, and their times."""

import dataclasses
import itertools

import pytest

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain.event import Claim
from blazar_sched.service import faults
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.resources import vacating
from tests.functional.manager.managed_cloud import at
from tests.functional.manager.managed_cloud import NotifyingCloud
from tests.standins.rest import answer
from tests.standins.rest import Trouble

NODE = 'OS-EXT-SRV-ATTR:hypervisor_hostname'
LEAD, NOTICE = 600, 120
PREEMPTIBLE = {'lifecycle:preemptable': 'true'}
# The extra spec of this project, and that of OpenStack Watcher.
PREEMPTIBLE_WORDS = ({'blazar:preemptible': 'true'}, PREEMPTIBLE)


@pytest.fixture
def conf(conf):
    conf.set_override('vacate_lead_time', LEAD, 'manager')
    conf.set_override('vacate_notice', NOTICE, 'manager')
    return conf


@pytest.fixture
def site(conf, world):
    site = NotifyingCloud(conf, world.clock, 'a', 'b')
    yield site
    site.ledger.close()


def policy(action):
    return {'lifecycle:preempt_policy': action}


def vacate(site):
    """Let the time to vacate hosts come, and the notice be over."""
    site.run(1000 - LEAD)
    site.run(NOTICE)


def told(server):
    return server['metadata'].get('blazar_vacate_at')


@pytest.fixture
def meanwhile():
    """meanwhile(act): call `act` in the middle of the next vacating step."""

    def arm(act):
        def reached(point):
            if point == 'vacate_hosts:claimed':
                faults.arm(None)
                act()

        faults.arm(reached)

    yield arm
    faults.arm(None)


class TestChangedMeanwhile:
    """A lease can be changed while its hosts are being vacated."""

    @pytest.fixture
    def lease(self, site, whole):
        return site.create(whole(2, 2))

    def test_servers_lose_their_notice_when_the_lease_is_deleted(
        self, site, lease, meanwhile
    ):
        server = site.server('a')
        leases = site.manager.leases
        meanwhile(lambda: leases.delete(lease.id, None))
        site.run(1000 - LEAD)
        assert site.ledger.leases() == []
        site.run(NOTICE)
        site.manager.restorer.step()
        assert told(server) is None
        assert server['OS-EXT-STS:task_state'] is None

    def test_servers_are_vacated_for_the_deferred_start(
        self, site, lease, meanwhile
    ):
        server = site.server('a')
        later = {'start': lease.start + 5000, 'end': lease.end + 5000}
        leases = site.manager.leases
        meanwhile(lambda: leases.update(lease.id, None, later))
        site.run(1000 - LEAD)
        site.run(NOTICE + 5)
        assert server['OS-EXT-STS:task_state'] is None
        site.run(5000)
        site.run(NOTICE + 5)
        assert server['OS-EXT-STS:task_state'] == 'migrating'

    def test_on_more_hosts(self, site, whole, meanwhile):
        lease = site.create(whole())
        [reservation] = lease.reservations
        [(held, _)] = site.ledger.allocations(lease_id=lease.id)
        [other] = [n for n, uuid in site.hosts.items() if uuid != held.host]
        server = site.server(other)
        grown = {'id': reservation.id, 'min': 2, 'max': 2}
        meanwhile(lambda: site.manager.leases.update(
            lease.id, None, {'reservations': [grown]}
        ))
        # The step itself has nothing left to do.
        site.run(1000 - LEAD)
        site.run()
        assert told(server) is not None

    def test_starting_lease_cannot_be_changed_or_deleted(
        self, site, lease, meanwhile
    ):
        """Another manager may start the lease while this one still vacates."""

        def begin(tx):
            claim = Claim('another', 'token', 10**10)
            [start] = [
                e for e in lease.events if e.event_type == 'start_lease'
            ]
            assert tx.claim_event(start.id, claim, None)

        def act():
            site.ledger.write(begin)
            leases = site.manager.leases
            for change in (
                lambda: leases.update(lease.id, None, {'name': 'new'}),
                lambda: leases.delete(lease.id, None),
            ):
                with pytest.raises(exception.InvalidStatus):
                    change()
            acted.append(True)

        acted = []
        meanwhile(act)
        site.run(1000 - LEAD)
        assert acted


class TestWholeHost:
    @pytest.fixture
    def lease(self, site, whole):
        lease = site.create(whole())
        # The server is on the host that the tests fill.
        [(held, _)] = site.ledger.allocations(lease_id=lease.id)
        assert held.host == site.hosts['a']
        return lease

    @pytest.mark.row('F44', 'F57')
    def test_server_gets_a_notice_before_any_request(self, site, lease):
        server = site.server('a')
        site.sent()
        site.run(1000 - LEAD - 1)
        assert told(server) is None
        site.run(1)
        due = at(site.now + NOTICE)
        assert told(server) == due
        site.run(NOTICE - 1)
        assert server['OS-EXT-STS:task_state'] is None
        said = [p for t, p in site.sent() if t == 'instance.vacate']
        assert said == [{
            'instance_id': server['id'], 'project_id': 'other',
            'hypervisor_hostname': 'a', 'lease_id': lease.id, 'vacate_at': due,
        }]
        site.run(5)
        assert server['OS-EXT-STS:task_state'] == 'migrating'

    @pytest.mark.row('F56')
    def test_action_that_does_not_help_is_followed_by_the_next(
        self, site, lease
    ):
        server = site.server('a')
        vacate(site)
        assert server['OS-EXT-STS:task_state'] == 'migrating'
        site.run(60)
        # The lease has found no other host.
        site.cloud.settle()
        site.run(5)
        assert server['OS-EXT-STS:task_state'] == 'shelving'
        assert server['metadata']['blazar_restore'] == 'true'
        site.cloud.settle()
        site.run(5)
        assert server['status'] == 'SHELVED_OFFLOADED'
        assert site.cloud.servers
        site.run(1000)
        assert site.lease(lease).status == 'ACTIVE'
        assert not site.lease(lease).degraded

    def test_a_failure_is_told_once_the_others_have_been_seen_to(
        self, site, lease, monkeypatch
    ):
        servers = [site.server('a') for _ in range(2)]
        vacater = site.manager.services.vacater
        held = [h for h in site.ledger.hosts() if h.uuid == site.hosts['a']]
        [reservation] = lease.reservations
        others = vacater.all_others(lease, reservation, held, site.now)
        failing = others[0].uuid
        mark = Nova.set_server_metadata

        def fail(self, server, metadata):
            if server.uuid == failing:
                raise exception.Unavailable('compute answered 500')
            mark(self, server, metadata)

        monkeypatch.setattr(Nova, 'set_server_metadata', fail)
        with pytest.raises(exception.Unavailable, match='answered 500'):
            vacater.vacate(
                vacating.for_lease(lease, reservation), others, site.now
            )
        assert {s['id']: told(s) is not None for s in servers} == {
            s['id']: s['id'] != failing for s in servers
        }

    @pytest.mark.row('F56')
    def test_server_that_has_moved_gets_no_request(self, site, lease):
        server = site.server('a')
        vacate(site)
        site.cloud.settle(lambda server: 'b')
        site.asked()
        for _ in range(10):
            site.run(30)
        assert site.asked() == []
        assert server[NODE] == 'b'
        site.run(1000)
        assert not site.lease(lease).degraded

    @pytest.mark.parametrize(('status', 'leaves'), [
        ('SHUTOFF', 'shelving'), ('SUSPENDED', 'shelving'), ('ERROR', None),
    ])
    def test_action_that_nova_refuses_is_followed_by_the_next(
        self, site, lease, status, leaves
    ):
        server = site.server('a')
        server['status'] = status
        vacate(site)
        for _ in range(3):
            site.run(5)
        assert (server['id'] in site.cloud.servers) is (leaves is not None)
        assert server['OS-EXT-STS:task_state'] == leaves

    def test_shelved_server_is_offloaded_from_its_host(self, site, lease):
        site.cloud.offloads = False
        site.conf.set_override('vacate_order', ['shelve', 'delete'], 'manager')
        server = site.server('a')
        site.run(1000 - LEAD)
        for _ in range(2):
            site.run(NOTICE)
            site.cloud.settle()
        assert server['status'] == 'SHELVED_OFFLOADED'

    def test_server_that_its_owner_has_shelved_does_not_come_back(
        self, site, lease
    ):
        server = site.server('a')
        server['status'] = 'SHELVED'
        vacate(site)
        site.cloud.settle()
        assert server['status'] == 'SHELVED_OFFLOADED'
        assert server['metadata'] == {}

    @pytest.mark.row('F55')
    def test_a_preemptible_one_goes_by_its_own_order(self, site, lease):
        server = site.preemptible('a')
        site.run(1000 - LEAD)
        assert told(server)
        site.run(NOTICE - 1)
        assert site.cloud.servers
        site.run(5)
        assert not site.cloud.servers

    @pytest.mark.row('F108')
    @pytest.mark.parametrize('word', PREEMPTIBLE_WORDS)
    def test_a_preemptible_one_goes_as_its_flavor_says(
        self, site, lease, word
    ):
        shelved = site.server('a', **word, **policy('shelve'))
        deleted = site.server('a', **word, **policy('delete'))
        site.run(1000 - LEAD)
        assert told(shelved)
        site.run(NOTICE)
        site.cloud.settle()
        assert list(site.cloud.servers) == [shelved['id']]
        assert shelved['status'] == 'SHELVED_OFFLOADED'
        assert shelved['metadata']['blazar_restore'] == 'true'
        assert deleted['id'] not in site.cloud.servers

    def test_policy_counts_when_nothing_is_vacated_ahead(
        self, site, whole, conf
    ):
        conf.set_override('vacate_lead_time', 0, 'manager')
        lease = site.create(whole())
        shelved = site.server('a', **PREEMPTIBLE, **policy('shelve'))
        site.preemptible('a')
        site.run(1000)
        site.cloud.settle()
        assert list(site.cloud.servers) == [shelved['id']]
        assert shelved['status'] == 'SHELVED_OFFLOADED'
        assert not site.lease(lease).degraded

    def test_all_hosts_are_vacated_at_once(self, site, whole):
        lease = site.create(whole(2, 2))
        servers = [site.server(host) for host in 'aabb']
        site.run(1000 - LEAD)
        assert all(map(told, servers))
        site.run(NOTICE)
        assert {s['OS-EXT-STS:task_state'] for s in servers} == {'migrating'}
        site.cloud.settle()
        site.run(5)
        site.cloud.settle()
        site.run(2000)
        assert not site.lease(lease).degraded

    def test_server_that_cannot_be_moved_delays_no_other(self, site, lease):
        servers = [site.server('a') for _ in range(3)]
        stuck = servers[1]['id']

        def meddle(method, path):
            if method != 'GET' and stuck in path:
                return Trouble(False, answer(500))
            return None

        site.cloud.meddle = meddle
        vacate(site)
        assert [s['OS-EXT-STS:task_state'] for s in servers] == [
            'migrating', None, 'migrating',
        ]

    def test_a_long_lead_time_is_used_to_its_end(self, site, whole):
        site.conf.set_override('vacate_lead_time', 7200, 'manager')
        site.conf.set_override('vacate_order', ['live-migrate'], 'manager')
        lease = site.create(whole(), start=8000, end=9000)
        server = site.server('a')
        site.run(800)
        for _ in range(140):
            # All other hosts are full.
            site.run(50)
            site.cloud.settle()
        assert server[NODE] == 'a'
        site.run(50)
        site.cloud.settle(lambda server: 'b')
        site.run(1000)
        assert server[NODE] == 'b'
        assert not site.lease(lease).degraded

    def test_nova_is_not_asked_all_the_time(self, site, whole):
        site.conf.set_override('vacate_order', ['live-migrate'], 'manager')
        site.create(whole())
        site.server('a')
        site.run(1000 - LEAD)
        site.asked()
        for _ in range(40):
            site.run(NOTICE // 12)
            site.cloud.settle()
        assert 4 <= len(site.asked()) <= 6

    @pytest.mark.row('F56')
    @pytest.mark.parametrize('said', [None, 500, 503])
    def test_nova_that_is_away_brings_no_server_nearer_to_its_deletion(
        self, site, lease, said
    ):
        """With a status, Nova answers only requests that need no other host.
        """
        site.conf.set_override(
            'vacate_order', ['live-migrate', 'shelve', 'delete'], 'manager'
        )
        server = site.server('a')
        site.run(1000 - LEAD)
        site.cloud.meddle = lambda method, path: (
            Trouble(False, said and answer(said))
            if said is None or path.endswith('/action') else None
        )
        site.run(NOTICE)
        for _ in range(12):
            site.run(30)
        assert server['OS-EXT-STS:task_state'] is None
        site.cloud.meddle = lambda method, path: None
        for seconds, task in ((30, 'migrating'), (5, 'shelving')):
            site.run(seconds)
            assert server['OS-EXT-STS:task_state'] == task
            site.cloud.settle()
        assert server['status'] == 'SHELVED_OFFLOADED'
        assert server['id'] in site.cloud.servers

    def test_the_start_waits_for_no_vacating(self, site, lease):
        site.conf.set_override('event_retry_interval', 500.0, 'manager')
        site.server('a')
        site.cloud.meddle = lambda method, path: Trouble(False)
        site.run(990)
        site.cloud.meddle = lambda method, path: None
        site.run(10)
        assert site.lease(lease).status == 'ACTIVE'

    def test_a_lease_that_is_booked_late_leaves_time_to_act(self, site, whole):
        lease = site.create(whole(), start=60)
        server = site.server('a')
        site.run()
        assert told(server) == at(site.now + 30)
        site.run(30)
        assert server['OS-EXT-STS:task_state'] == 'migrating'
        site.cloud.settle(lambda server: 'b')
        site.run(30)
        assert site.lease(lease).status == 'ACTIVE'
        assert not site.lease(lease).degraded

    def test_another_manager_goes_on_where_the_first_one_stopped(
        self, site, lease
    ):
        server = site.server('a')
        site.run(1000 - LEAD)
        due = told(server)
        site.sent()
        other = site.another()
        site.run(NOTICE - 10, manager=other)
        assert told(server) == due
        site.run(10, manager=other)
        assert server['OS-EXT-STS:task_state'] == 'migrating'
        assert 'instance.vacate' not in [t for t, _ in site.sent()]
        other.ledger.close()

    @pytest.mark.parametrize(
        'written', ['never', '2020-01-01T00:00:00Z', '2099-01-01T00:00:00Z']
    )
    def test_owner_cannot_defer_the_vacating(self, site, lease, written):
        server = site.server('a')
        server['metadata']['blazar_vacate_at'] = written
        site.run(1000 - LEAD)
        assert told(server) == at(site.now + NOTICE)
        server['metadata']['blazar_vacate_at'] = written
        site.run(NOTICE)
        assert server['OS-EXT-STS:task_state'] == 'migrating'

    def test_a_later_lease_does_not_put_off_the_notice(self, site):
        part = {
            'resource_type': 'virtual:instance', 'vcpus': 6,
            'memory_mb': 512, 'disk_gb': 1, 'amount': 1, 'affinity': None,
            'resource_properties': '["==", "$hypervisor_hostname", "a"]',
        }
        site.create(part, start=1000, end=1010)
        later = site.create(part, start=1010 + NOTICE, end=2000)
        server = site.server('a', vcpus=4)
        site.sync()
        site.run(1000 - LEAD)
        due = told(server)
        site.run(NOTICE)
        assert server['OS-EXT-STS:task_state'] == 'migrating'
        site.run(10)
        assert site.lease(later).vacate == site.now
        assert told(server) == due

    def test_server_that_ends_by_the_start_gets_no_notice(self, site, lease):
        server = site.server('a')
        server['scheduler_hints'] = {'lease_end': at(lease.start)}
        site.sync()
        site.asked()
        vacate(site)
        assert site.asked() == []

    def test_server_that_ends_by_its_own_lease_gets_no_request(
        self, site, lease
    ):
        server = site.server('a')
        site.sync()
        [record] = site.ledger.instances()
        site.asked()
        # This is the state after the end of the lease was moved.
        overdue = dataclasses.replace(record, end=lease.start)
        site.ledger.commit(lambda tx: tx.put_instances([overdue]))
        vacate(site)
        assert site.asked() == []
        assert server['id'] in site.cloud.servers

    def test_server_not_shelved_by_its_own_start_is_not_deleted(
        self, site, lease
    ):
        server = site.server('a')
        server['scheduler_hints'] = {
            'lease_start': at(lease.start), 'lease_end': at(lease.end),
        }
        site.sync()
        site.run(1000)
        assert server['OS-EXT-STS:task_state'] == 'shelving'
        assert server['id'] in site.cloud.servers
        assert site.lease(lease).status == 'ACTIVE'
        assert site.lease(lease).degraded

    def test_bound_server_gets_no_notice(self, site, lease):
        server = site.server('a')
        server['tenant_id'] = 'project'
        server['scheduler_hints'] = {'reservation': lease.reservations[0].id}
        vacate(site)
        assert site.asked() == []

    def test_server_that_the_ledger_has_bound_gets_no_request(
        self, site, lease
    ):
        # The control: the server needs no hint, and the start is repeated.
        site.run(1000)
        server = site.server('a')
        server['tenant_id'] = 'project'
        site.sync()
        [record] = site.ledger.instances()
        site.ledger.commit(lambda tx: tx.put_instances([dataclasses.replace(
            record, end=lease.end, reservation_id=lease.reservations[0].id
        )]))
        site.ledger.commit(lambda tx: tx.put_lease(dataclasses.replace(
            tx.lease(lease.id),
            events=event.start_again(tx.lease(lease.id).events)
        )))
        site.run(10)
        assert site.lease(lease).status == 'ACTIVE'
        assert not site.lease(lease).degraded

    def test_a_kept_server_is_left_alone_until_its_reservation_has_ended(
        self, site, slots, whole
    ):
        """The end changes the allocations that Nova would move."""
        kept = site.create(
            slots(amount=1, vcpus=4, on_end='keep'), start=1, end=1000
        )
        site.run(1)
        [allocation] = site.ledger.allocations(lease_id=kept.id)
        [host] = [
            name for name, uuid in site.hosts.items()
            if uuid == allocation[0].host
        ]
        server = site.server(host, 4)
        server['tenant_id'] = 'project'
        server['scheduler_hints'] = {'reservation': kept.reservations[0].id}
        site.sync()
        site.create(whole(2, 2), start=1500)
        site.cloud.meddle = lambda method, path: (
            Trouble(False) if 'resource_classes' in path else None
        )
        site.run(1000)
        site.run(NOTICE)
        site.run(NOTICE)
        assert site.lease(kept).status == 'TERMINATING'
        assert site.asked() == []

        site.cloud.meddle = lambda method, path: None
        site.run(10)
        assert site.lease(kept).status == 'TERMINATED'
        site.run(10)
        assert told(server)
        site.run(NOTICE)
        assert server['OS-EXT-STS:task_state'] == 'migrating'

    def test_a_lease_that_starts_degraded_says_why(self, site, lease, caplog):
        site.conf.set_override('vacate_order', [], 'manager')
        server = site.server('a')
        site.run(1000)
        [payload] = [p for t, p in site.sent() if t == 'lease.degraded']
        assert payload['in_the_way'] == [server['id']]
        kept = site.lease(lease)
        assert kept.status == 'ACTIVE'
        assert kept.degraded
        [reservation] = kept.reservations
        assert reservation.made['in_the_way'] == [server['id']]
        said = (
            f'server {server["id"]} of project other is in the way on host a'
        )
        assert said in caplog.text

    @pytest.mark.row('F44')
    def test_server_that_comes_after_the_host_was_clear_is_notified(
        self, site, lease
    ):
        site.run(1000 - LEAD)
        server = site.server('a')
        site.run(60)
        assert not told(server)
        site.sync()
        site.run()
        assert told(server)
        site.run(NOTICE)
        site.cloud.settle(lambda server: 'b')
        site.run(1000)
        assert not site.lease(lease).degraded

    def test_server_that_is_being_deleted_degrades_no_lease(self, site, lease):
        server = site.server('a')
        server['OS-EXT-STS:task_state'] = 'deleting'
        site.run(1000)
        assert not site.lease(lease).degraded

    def test_a_lease_that_has_moved_vacates_its_new_host(self, site, lease):
        site.run(1000 - LEAD)
        site.manager.healer.reallocate(site.hosts['a'], lease.id)
        server = site.server('b')
        site.run(100)
        assert told(server)

    def test_a_lease_that_is_brought_forward_leaves_time_to_act(
        self, site, lease
    ):
        server = site.server('a')
        site.run(1000 - LEAD)
        assert told(server) == at(site.now + NOTICE)
        site.manager.leases.update(
            lease.id, 'project', {'start': site.now + 60}
        )
        site.run(10)
        assert told(server) == at(site.now + 25)
        site.run(25)
        assert server['OS-EXT-STS:task_state'] == 'migrating'
        site.cloud.settle(lambda server: 'b')
        site.run(25)
        assert site.lease(lease).status == 'ACTIVE'
        assert not site.lease(lease).degraded

    def test_a_lease_that_gets_more_vacates_that_too(self, site, lease, whole):
        site.run(1000 - LEAD)
        [reservation] = lease.reservations
        site.manager.leases.update(lease.id, 'project', {
            'reservations': [{'id': reservation.id, 'min': 2, 'max': 2}],
        })
        server = site.server('b')
        site.run(100)
        assert told(server)


TROUBLES = {
    'fails': lambda: Trouble(False, answer(500)),
    'is done and fails': lambda: Trouble(True, answer(500)),
    'is done and times out': lambda: Trouble(True),
    'conflicts': lambda: Trouble(False, answer(409, {})),
}


@pytest.mark.more
@pytest.mark.row('F56')
@pytest.mark.parametrize('trouble', TROUBLES)
def test_whatever_goes_wrong_the_host_is_clear_in_time(site, whole, trouble):
    """Each request of the vacating fails once, in turn."""
    for number in itertools.count():
        lease = site.create(whole(), end=1100)
        server, yielding = site.server('a'), site.preemptible('a')
        site.run(1000 - LEAD - 1)
        asked = []

        def meddle(method, path, turn=number, asked=asked):
            asked.append(path)
            return TROUBLES[trouble]() if len(asked) == turn + 1 else None

        site.cloud.meddle = meddle
        for _ in range(30):
            site.run(20)
            site.cloud.settle()
        site.cloud.meddle = lambda method, path: None
        site.run(1)
        assert site.lease(lease).status == 'ACTIVE'
        assert not site.lease(lease).degraded
        assert yielding['id'] not in site.cloud.servers
        # No server is deleted without need, and each is to be unshelved; but
        # Nova shelves no server whose metadata cannot be set.
        left = site.cloud.servers.pop(server['id'])
        if not asked[number:] or not asked[number].endswith('/metadata'):
            assert left['metadata']['blazar_restore'] == 'true'
        site.run(1000)
        if len(asked) <= number:
            assert number > 5
            break


class TestSlots:
    @pytest.fixture
    def lease(self, site, slots):
        # One host of 8 VCPUs has room for two others beside it.
        site.cloud.down.add('b')
        site.manager.monitor.poll()
        return site.create(slots(amount=3, vcpus=2))

    @pytest.mark.row('F55', 'F56')
    def test_as_many_go_as_are_in_the_way(self, site, lease):
        old, young, yielding = (
            site.server('a', age=2000), site.server('a'),
            site.preemptible('a', age=9000),
        )
        site.run(1000 - LEAD)
        assert told(yielding)
        assert not told(old)
        assert not told(young)
        site.run(NOTICE)
        assert list(site.cloud.servers) == [old['id'], young['id']]
        site.run(1000)
        assert site.lease(lease).status == 'ACTIVE'
        assert not site.lease(lease).degraded

    def test_youngest_server_leaves_first(self, site, lease):
        old, young, oldest = (
            site.server('a', age=2000), site.server('a'),
            site.server('a', age=9000),
        )
        site.run(1000 - LEAD)
        assert [s for s in (old, young, oldest) if told(s)] == [young]

    def test_server_with_a_declared_end_stays_longer(self, site, lease):
        other, bounded, last = (
            site.server('a', age=9000), site.server('a'), site.server('a'),
        )
        bounded['scheduler_hints'] = {'lifetime': '1d'}
        last['scheduler_hints'] = {'lifetime': '2d'}
        site.sync()
        site.run(1000 - LEAD)
        assert [s for s in (other, bounded, last) if told(s)] == [other]

    def test_server_of_another_reservation_is_counted_once(self, site, slots):
        first = site.create(slots(amount=1, vcpus=4), start=1)
        site.run(1)
        [reservation] = first.reservations
        [host] = [
            name for name, uuid in site.hosts.items()
            if uuid == site.ledger.allocations(lease_id=first.id)[0][0].host
        ]
        server = site.server(host, 4)
        server['tenant_id'] = 'project'
        server['scheduler_hints'] = {'reservation': reservation.id}
        site.sync()
        site.create(slots(amount=3, vcpus=4))
        site.asked()
        vacate(site)
        assert site.asked() == []

    def test_a_server_is_not_in_the_way_of_its_own_lifetime(self, site):
        """Its start shelved the server, but did not remove it from its host.
        """
        site.cloud.down.add('b')
        site.manager.monitor.poll()
        site.cloud.offloads = False
        server = site.server('a', vcpus=6)
        server['scheduler_hints'] = {
            'lease_start': at(site.now + 500), 'lease_end': at(site.now + 900),
        }
        site.sync()
        assert server['OS-EXT-STS:task_state'] == 'shelving'
        site.run(499)
        site.cloud.settle()
        assert (server['status'], server[NODE]) == ('SHELVED', 'a')
        site.run(1)
        assert server['id'] in site.cloud.servers
        assert server['OS-EXT-STS:task_state'] == 'unshelving'

    def test_a_server_in_the_place_of_its_lifetime_is_counted_once(
        self, site, slots
    ):
        """This holds until its record replaces its allocation."""
        site.cloud.down.add('b')
        site.manager.monitor.poll()
        server = site.server('a', vcpus=4)
        server['scheduler_hints'] = {
            'lease_start': at(site.now + 500),
            'lease_end': at(site.now + 9000),
        }
        site.sync()
        site.cloud.settle()
        site.create(slots(amount=2, vcpus=2), start=600)
        site.run(500)
        site.cloud.settle(lambda server: 'a')
        assert server[NODE] == 'a'
        site.run(99)
        yielding = site.preemptible('a', vcpus=0)
        site.asked()
        site.run(1)
        assert site.asked() == []
        assert {server['id'], yielding['id']} <= site.cloud.servers.keys()

    def test_preemptible_servers_are_deleted_at_the_start_as_needed(
        self, site, lease, conf
    ):
        conf.set_override('vacate_preemptible_order', [], 'manager')
        servers = [site.preemptible('a', age=n) for n in range(4)]
        site.run(1000)
        left = [s['id'] for s in servers if s['id'] in site.cloud.servers]
        assert left == [s['id'] for s in servers[2:]]
        assert not site.lease(lease).degraded

    @pytest.mark.row('F108')
    @pytest.mark.parametrize('order, young, gone', [
        ([], 0, [0, 1]),
        (['age:desc'], 0, [2, 3]),
        (['resource:VCPU:asc'], 0, [0, 1]),
        (['resource:MEMORY_MB:desc', 'age:asc'], 0, [1, 3]),
        ([], 1500, [2, 3]),
        (['age:asc'], 600, [1, 2]),
    ])
    def test_preemptible_servers_go_as_the_operator_prefers(
        self, site, lease, conf, order, young, gone
    ):
        conf.set_override('preemption_preference', order, 'manager')
        conf.set_override('preemption_min_age', young, 'manager')
        servers = [site.preemptible('a', age=1000 * n) for n in range(4)]
        for n in 1, 3:
            servers[n]['flavor']['ram'] = 2
        site.run(1000 - LEAD)
        assert [n for n in range(4) if told(servers[n])] == gone

    def test_server_that_stays_in_the_way_degrades_the_lease(
        self, site, lease, conf
    ):
        conf.set_override('vacate_order', [], 'manager')
        servers = [site.server('a', age=n) for n in range(3)]
        site.run(1000)
        kept = site.lease(lease)
        assert kept.degraded
        [reservation] = kept.reservations
        assert reservation.made['in_the_way'] == [servers[0]['id']]
        assert len(site.cloud.servers) == 3
