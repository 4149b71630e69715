# SPDX-License-Identifier: Apache-2.0
"""What an operator sees of relocation: metrics and notifications."""

import dataclasses

import pytest

from blazar_sched.domain import duration
from blazar_sched.service import metrics
from blazar_sched.service.upkeep.relocation import PAUSE
from tests.functional.manager.relocating import LEAD
from tests.functional.manager.relocating import NOTICE
from tests.functional.manager.relocating import RelocatingManager
from tests.told import notified


class Site(RelocatingManager):
    """A cloud whose events do not run; times are in seconds from now."""

    def look(self, seconds=0):
        self.clock.now += seconds
        self.manager.instances.sync()
        self.manager.relocations.step()

    def sent(self):
        """Return the notifications of servers since the last call."""
        sent = [each for each in self.told if each[0].startswith('instance.')]
        self.told.clear()
        return sent


@pytest.fixture
def site(conf, monkeypatch):
    site = Site(conf)
    site.told = notified(site.manager, monkeypatch)
    yield site
    site.ledger.close()


def headroom(site, name='VCPU'):
    return site.manager.metrics.registry.get_sample_value(
        metrics.HEADROOM.name, {'resource_class': name}
    )


def test_the_headroom_is_what_is_left_at_the_fullest_time(site):
    site.look()
    assert headroom(site) == 1
    site.boot('a', 1)
    assert headroom(site) == pytest.approx(15 / 16)
    assert headroom(site, 'MEMORY_MB') == pytest.approx(15 / 16)
    # Before the notice is over, nobody needs headroom.
    site.reserve('b', start=10, end=NOTICE)
    assert headroom(site) == pytest.approx(15 / 16)
    site.reserve('c', start=10 * NOTICE, end=11 * NOTICE)
    assert headroom(site) == pytest.approx(11 / 16)
    site.clock.now += 11 * NOTICE
    assert headroom(site) == pytest.approx(15 / 16)


def test_there_is_no_headroom_where_nobody_is_relocated(world):
    world.add_host('a')
    assert headroom(world) is None


def test_live_migration_is_notified_from_start_to_end(site):
    server = site.boot('a')
    lease = site.reserve('a')
    site.nova.slowness = 1
    assert site.sent() == []

    site.look(NOTICE - LEAD)
    [(begun, payload)] = site.sent()
    assert begun == 'instance.relocation.start'
    target = payload.pop('target_hypervisor_hostname')
    assert target in 'bcd'
    assert payload == {
        'instance_id': server.uuid, 'project_id': 'other',
        'hypervisor_hostname': 'a',
        'vacate_at': duration.format_time(lease.start),
        'start_date': '2027-01-15T08:04:00.000000', 'end_date': None,
    }

    # The server has not moved: the move is requested again.
    site.look(PAUSE)
    site.look()
    payload['target_hypervisor_hostname'] = target
    assert site.sent() == [
        ('instance.relocation.error', payload),
        ('instance.relocation.start', payload),
        ('instance.relocation.end', payload),
    ]
    site.look()
    assert site.sent() == []


def test_a_move_that_nova_refuses_is_told(site, monkeypatch):
    site.boot('a')
    site.reserve('a')
    monkeypatch.setattr(
        site.nova, 'migrate_server', lambda server, service_name, way: False
    )
    site.look(NOTICE - LEAD)
    site.look(PAUSE)
    assert [event_type for event_type, _ in site.sent()] == 2 * [
        'instance.relocation.error'
    ]


def test_a_move_that_another_manager_has_begun_is_not_told_as_refused(
    site, monkeypatch
):
    server = site.boot('a')
    site.reserve('a')

    def migrate_server(asked, service_name, way):
        # The other manager's request came between the look and this request.
        site.nova.stored[server.uuid] = dataclasses.replace(
            server, task='migrating'
        )
        return False

    monkeypatch.setattr(site.nova, 'migrate_server', migrate_server)
    site.look(NOTICE - LEAD)
    assert site.sent() == []
    assert site.manager.metrics.registry.get_sample_value(
        'blazar_sched_manager_moves_total', {'outcome': 'refused'}
    ) == 0


def test_a_server_that_stays_too_long_is_told_once(site, monkeypatch):
    server = site.boot('a')
    lease = site.reserve('a')
    move = site.nova.migrate_server
    monkeypatch.setattr(
        site.nova, 'migrate_server', lambda server, service_name, way: False
    )
    site.clock.now = lease.start - 1
    site.look()
    assert late(site) == []
    site.clock.now = lease.start
    site.look()
    site.look(1)

    [(_, payload)] = late(site)
    assert payload['instance_id'] == server.uuid
    assert number_late(site) == 1

    monkeypatch.setattr(site.nova, 'migrate_server', move)
    site.look(PAUSE)
    site.look()
    assert number_late(site) == 0
    assert late(site) == []


def late(site):
    return [
        (event_type, payload) for event_type, payload in site.sent()
        if event_type == 'instance.relocation.late'
    ]


def number_late(site):
    return site.manager.metrics.registry.get_sample_value(
        'blazar_sched_manager_instances_late'
    )


def test_a_move_of_an_operator_elsewhere_is_no_end(site):
    """The control: only the next host of the path is the end of a move."""
    site.boot('a')
    site.reserve('a')
    [record] = site.ledger.instances()
    next_ = site.names()[record.relocations[0].host]
    other = min({'b', 'c', 'd'} - {next_})
    site.nova.migrate_server(site.nova.server(record.uuid), other)
    site.look()
    assert site.sent() == []


@pytest.mark.parametrize('policy, movable', [
    (None, 'live'), ('relocate', 'live'), ('forever', 'live'), ('never', ''),
    ('assume:1h', ''),
])
def test_no_server_is_moved_from_a_host_of_another_policy(
    site, policy, movable
):
    if policy is not None:
        site.hosts.update(site.host('a').id, {'unbounded': policy})
    site.boot('a')
    [record] = site.ledger.instances()
    assert record.movable == movable
