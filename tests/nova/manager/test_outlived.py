# SPDX-License-Identifier: Apache-2.0
"""Servers that outlive their reservation are ordinary servers in a real Nova.

Each type of reservation is tested with each action of Nova that moves or
restores a server, and with each way in which a reservation ends.
"""

import pytest

from blazar_sched.hooks import request_filter
from blazar_sched.service.clients.placement import resource_class
from demo import cloud as demo_cloud
from tests.nova import clouds
from tests.nova.clouds import OTHER_IMAGE
from tests.nova.manager.conftest import having
from tests.nova.manager.test_leases import classes
from tests.nova.manager.test_leases import fed
from tests.nova.manager.test_leases import reserved
from tests.nova.managing import book
from tests.nova.managing import hosts
from tests.nova.managing import on
from tests.nova.managing import OWNER
from tests.nova.managing import slots
from tests.nova.managing import slots_of

pytestmark = [pytest.mark.more, pytest.mark.usefixtures('both')]

CLOUD = clouds.PAIR
PLAIN = {'VCPU': 2, 'MEMORY_MB': 512, 'DISK_GB': 1}


@pytest.fixture
def conf(conf):
    conf.set_override('vacate_notice', 0, 'manager')
    conf.set_override('vacate_lead_time', 3600, 'manager')
    conf.set_override('restore_interval', 1.0, 'manager')
    return conf


def by_hint(cloud, manager):
    return hosts()


def by_size(cloud, manager):
    return slots(2)


def by_group(cloud, manager):
    # Without trusts the group belongs to the service's own project.
    return slots(2, affinity=False, projects=[cloud.project_id])


def by_flavor(cloud, manager):
    source = cloud.flavor(2)
    manager.flavors.sync()
    return slots_of(source, 2)


@pytest.fixture(params=[by_size, by_group, by_flavor])
def wanted(request, cloud, manager):
    return request.param(cloud, manager)


class Outlived:
    """A lease, and the only server of its first reservation."""

    def __init__(self, manager, cloud, wait_for, lease):
        self.manager = manager
        self.cloud = cloud
        self.wait_for = wait_for
        self.lease = lease
        self.reservation = lease.reservations[0]
        # Nova's table on SQLite gives the number of a deleted flavor again.
        self.another = cloud.flavor(1)
        fed(cloud, manager, wait_for)
        self.server = self.boot()
        assert self.server['status'] == 'ACTIVE', self.server.get('fault')

    def boot(self, project_id=OWNER):
        made = self.reservation.made
        if 'flavor_id' not in made:
            return self.cloud.boot(
                self.cloud.flavor(2), {'reservation': self.reservation.id},
                project_id=project_id,
            )
        group = made['server_group_id']
        return self.cloud.boot(
            made['flavor_id'], group and {'group': group},
            project_id=self.cloud.project_id if group else project_id,
        )

    def end(self):
        """End the lease now, also if another lease has an event in progress.
        """
        leases, id_ = self.manager.leases, self.lease.id
        leases.update(id_, None, {'end': 'now'})
        self.wait_for(
            'lease TERMINATED', lambda: having(self.manager, id_, 'TERMINATED')
        )

    def told(self):
        """Wait until the manager and nova-scheduler know what Nova says."""
        self.manager.instances.sync()
        fed(self.cloud, self.manager, self.wait_for)

    @property
    def status(self):
        return self.cloud.show(self.server)['status']

    @property
    def host(self):
        return demo_cloud.host_of(self.cloud.show(self.server))

    def act(self, action, *statuses, **body):
        self.told()
        return self.cloud.act(self.server, action, *statuses, **body)

    def error(self):
        self.act('os-resetState', 'ERROR', state='error')

    # The actions. Each tells whether the server was moved or restored.

    def unshelve(self):
        shown = self.act('unshelve', 'ACTIVE', 'SHELVED_OFFLOADED')
        return shown['status'] == 'ACTIVE'

    def shelve(self):
        self.act('shelve', 'SHELVED_OFFLOADED')
        return self.unshelve()

    def live_migrate(self):
        before = self.host
        self.act('os-migrateLive', host=None, block_migration='auto')
        return self.host != before

    def migrate(self):
        return self._confirmed('migrate')

    def resize(self):
        return self._confirmed('resize', flavorRef=self.another)

    def _confirmed(self, action, **body):
        shown = self.act(action, 'VERIFY_RESIZE', 'ACTIVE', **body)
        if shown['status'] != 'VERIFY_RESIZE':
            return False
        self.act('confirmResize')
        return True

    def rebuild(self):
        shown = self.act('rebuild', imageRef=OTHER_IMAGE)
        return shown['image']['id'] == OTHER_IMAGE

    def evacuate(self):
        before = self.host
        self.told()
        self.cloud.stop_compute(before)
        try:
            self.cloud.evacuate(self.server)
            return self.host != before
        finally:
            self.cloud.start_compute(before)

    def actions(self):
        """Return the outcomes of all actions; the last changes the flavor."""
        return {
            action.__name__: action() for action in (
                self.shelve, self.live_migrate, self.migrate, self.rebuild,
                self.evacuate, self.start, self.resize,
            )
        }

    def start(self):
        """An evacuated server is stopped."""
        return self.status == 'ACTIVE' or bool(self.act('os-start'))


@pytest.fixture
def outlived(manager, cloud, wait_for, lease, wanted):
    """outlived(**fields) -> a server of an active lease."""

    def create(*others, **fields):
        mine = lease({**wanted, **fields}, *others)
        return Outlived(manager, cloud, wait_for, mine)

    return create


def kept(each, ended, settle):
    ended(each.lease)


def kept_in_error(each, ended, settle):
    each.error()
    ended(each.lease)
    assert each.status == 'ERROR'
    each.act('os-resetState', 'ACTIVE', state='active')


def shelved_before(each, ended, settle):
    each.act('shelve', 'SHELVED_OFFLOADED')
    ended(each.lease)
    assert each.unshelve()


def deleted(each, ended, settle):
    settle()
    each.manager.leases.delete(each.lease.id, OWNER)
    each.wait_for('lease gone', lambda: not each.manager.ledger.leases())


def removed(each, ended, settle):
    settle()
    other = each.manager.leases.update(
        each.lease.id, OWNER,
        {'reservations': [slots(1, vcpus=1, memory_mb=64)]},
    ).reservations[1].id
    each.wait_for(
        'the other reservation',
        lambda: [
            r.status for r
            in each.manager.ledger.lease(each.lease.id).reservations
        ] == ['active', 'active'],
    )
    settle()
    each.manager.leases.update(
        each.lease.id, OWNER,
        {'reservations': [{'id': each.reservation.id, 'remove': True}]},
    )
    each.wait_for(
        'the reservation is gone',
        lambda: [
            r.id for lease in each.manager.ledger.leases()
            for r in lease.reservations
        ] == [other],
    )
    deleted(each, ended, settle)


@pytest.mark.row('F124')
@pytest.mark.parametrize(
    'wanted', [by_hint, by_size, by_group, by_flavor], indirect=True
)
def test_each_action_moves_a_kept_server(outlived, ended, placement_api):
    each = outlived(on_end='keep')
    ended(each.lease)
    assert classes(placement_api) == set()

    outcomes = each.actions()

    assert all(outcomes.values()), outcomes


@pytest.mark.parametrize(
    ('wanted', 'end'),
    [
        (by_size, kept_in_error), (by_size, shelved_before),
        (by_size, deleted), (by_size, removed),
        (by_group, removed), (by_flavor, deleted),
    ],
    indirect=['wanted'],
)
def test_a_server_is_moved_however_the_reservation_has_ended(
    outlived, end, ended, settle, placement_api
):
    each = outlived(on_end='keep')
    end(each, ended, settle)
    assert classes(placement_api) == set()
    assert each.live_migrate()


def test_a_server_that_the_end_has_shelved_is_unshelved_and_moved(
    outlived, ended, placement_api
):
    each = outlived(on_end='shelve')
    ended(each.lease)
    assert each.status == 'SHELVED_OFFLOADED'
    assert classes(placement_api) == set()
    assert each.unshelve()
    assert each.live_migrate()


@pytest.mark.parametrize('wanted', [by_size], indirect=True)
def test_a_server_in_error_that_cannot_be_shelved_stays(
    outlived, ended, placement_api
):
    each = outlived(on_end='shelve')
    each.error()
    ended(each.lease)
    assert each.status == 'ERROR'
    assert classes(placement_api) == set()
    each.act('os-resetState', 'ACTIVE', state='active')

    assert each.live_migrate()
    assert each.shelve()


@pytest.fixture
def booked(manager, outlived, settle):
    """booked() -> a server, and its host, which the next lease has booked.

    The host cannot be booked any more once the server has no end.
    """

    def book_host():
        each = outlived(on_end='keep')
        host, end = each.host, each.lease.end
        settle()
        book(manager, end, end + 300, hosts(**on(host)), project_id='next')
        each.told()
        return each, host

    return book_host


@pytest.mark.parametrize('wanted', [by_size], indirect=True)
def test_an_outlived_server_is_moved_for_the_next_lease(
    booked, cloud, wait_for
):
    each, booked_host = booked()
    each.end()
    wait_for('moved', lambda: each.host not in (booked_host, None))
    assert cloud.settled(each.server)['status'] == 'ACTIVE'


@pytest.mark.parametrize('wanted', [by_flavor], indirect=True)
def test_an_outlived_server_is_shelved_for_the_next_lease_and_restored(
    booked, cloud, wait_for
):
    each, booked_host = booked()
    [other] = cloud.hosts.keys() - {booked_host}
    filler = cloud.boot(cloud.flavor(8), host=other)
    assert filler['status'] == 'ACTIVE', filler.get('fault')
    each.end()
    wait_for('shelved', lambda: each.status == 'SHELVED_OFFLOADED')
    cloud.delete(filler)
    wait_for('restored', lambda: each.host == other)
    assert cloud.settled(each.server)['status'] == 'ACTIVE'


@pytest.fixture
def without_the_request_filter(monkeypatch):
    monkeypatch.setattr(request_filter, '_has_class', lambda slot: True)


@pytest.mark.parametrize('wanted', [by_size, by_flavor], indirect=True)
def test_control_without_the_request_filter(
    outlived, ended, without_the_request_filter
):
    each = outlived(on_end='keep')
    ended(each.lease)

    assert each.rebuild()
    assert not each.live_migrate()
    assert not each.migrate()
    assert not each.shelve()


@pytest.mark.parametrize('wanted', [by_size], indirect=True)
class TestSlots:
    """What Placement and nova-scheduler make of the slots that are over."""

    def test_an_outlived_server_holds_what_any_server_holds(
        self, outlived, ended, cloud, placement_api
    ):
        each = outlived(on_end='keep')
        ended(each.lease)
        assert each.live_migrate()
        assert held(placement_api, each.server['id']) == [PLAIN]
        each.told()
        [record] = each.manager.ledger.instances()
        assert (record.host, record.amounts, record.claim) == (
            cloud.hosts[each.host], PLAIN, None
        )
        assert each.resize()
        cloud.delete(each.server)
        assert held(placement_api, each.server['id']) == []
        assert classes(placement_api) == set()
        assert reserved(placement_api, cloud) == {}

    def test_a_slot_that_is_over_cannot_be_booted(
        self, outlived, ended, cloud
    ):
        each = outlived(on_end='keep')
        specs = cloud.api.get_flavor(each.reservation.id)['extra_specs']
        ended(each.lease)
        each.told()
        copy = cloud.flavor(2, extra_specs=specs)
        for flavor, hints in (
            (copy, None),
            (cloud.flavor(2), {'reservation': each.reservation.id}),
        ):
            for project_id in (OWNER, 'stranger'):
                refused = cloud.boot(flavor, hints, project_id=project_id)
                assert refused['status'] == 'ERROR'

    def test_a_server_of_an_open_reservation_keeps_to_its_slots(
        self, outlived, cloud, placement_api
    ):
        """Both hosts have a slot, then one only."""
        each = outlived(on_end='keep', amount=5)
        assert each.live_migrate()
        [used] = [
            amounts for amounts in held(placement_api, each.server['id'])
            if amounts != PLAIN
        ]
        assert used == {resource_class(each.reservation.id): 1}


def held(placement_api, consumer):
    """Return the amounts that a consumer has of each provider."""
    answer = placement_api.get(f'/allocations/{consumer}').json()
    return [each['resources'] for each in answer['allocations'].values()]
