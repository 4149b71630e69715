# SPDX-License-Identifier: Apache-2.0
"""Moves use the known data of the instance, not its hints."""

import datetime

import pytest

from demo import cloud
from tests.nova.clouds import OTHER_IMAGE
from tests.nova.conftest import lasting

pytestmark = pytest.mark.more

HOUR = 3600
SOON = 900


@pytest.fixture(autouse=True)
def as_reported(lab):
    """Begin without the remains of the previous test's moves."""
    lab.cloud.report()


def cold(lab, server):
    """Migrate a server; return its host afterwards."""
    server = lab.cloud.act(server, 'migrate', 'VERIFY_RESIZE', 'ACTIVE')
    if server['status'] == 'VERIFY_RESIZE':
        server = lab.cloud.act(server, 'confirmResize')
    return cloud.host_of(server)


def live(lab, server):
    server = lab.cloud.act(
        server, 'os-migrateLive', host=None, block_migration='auto'
    )
    return cloud.host_of(server)


def shelved(lab, server):
    lab.cloud.act(server, 'shelve', 'SHELVED_OFFLOADED')
    server = lab.cloud.act(server, 'unshelve', 'ACTIVE', 'SHELVED_OFFLOADED')
    return cloud.host_of(server)


MIGRATIONS = pytest.mark.parametrize('move', [cold, live])


@pytest.mark.row('F43')
@MIGRATIONS
def test_goes_where_there_is_room_for_the_rest_of_its_life(lab, move):
    lab.only('c1', 'c2', 'c3')
    server = lab.boot(hints=lasting(HOUR), host='c1')
    lab.register('c1', 'c2', 'c3')
    lab.reserve('c2', start=SOON)
    lab.reserve('c3', start=2 * HOUR, end=3 * HOUR)
    lab.know(server, end=HOUR)

    assert move(lab, server) == 'c3'


@pytest.mark.row('F43')
@MIGRATIONS
def test_stays_if_there_is_room_nowhere(lab, move):
    lab.only('c1', 'c2')
    server = lab.boot(hints=lasting(HOUR), host='c1')
    lab.register('c1', 'c2')
    lab.reserve('c2', start=SOON)
    lab.know(server, end=HOUR)

    assert move(lab, server) == 'c1'


@MIGRATIONS
def test_bound_instance_moves_within_its_reservation(lab, move):
    lab.register('c1', 'c2')
    mine = lab.reserve('c1', 'c2', start=-60)
    server = lab.boot(hints={'reservation': mine})
    lab.know(server, end=HOUR, reservation_id=mine)
    [other] = {'c1', 'c2'} - {cloud.host_of(server)}

    assert move(lab, server) == other


def test_known_reservation_goes_before_the_hint(lab):
    """The reservation of the hint is over, and the server was kept."""
    lab.only('c1', 'c2')
    lab.register('c1')
    mine = lab.reserve('c1', start=-60)
    server = lab.boot(hints={'reservation': mine})
    lab.know(server)
    lab.ledger.commit(
        lambda tx: [tx.delete_lease(each.id) for each in tx.leases()]
    )
    lab.sync()

    assert cold(lab, server) == 'c2'


@pytest.mark.row('F43')
class TestResize:
    """Resizes on the same host and to another host."""

    @pytest.fixture(autouse=True)
    def in_place(self, lab):
        lab.cloud.configure('DEFAULT', allow_resize_to_same_host=True)

    @staticmethod
    def resize(lab, server, flavor):
        server = lab.cloud.act(
            server, 'resize', 'VERIFY_RESIZE', 'ACTIVE', flavorRef=flavor
        )
        if server['status'] == 'VERIFY_RESIZE':
            server = lab.cloud.act(server, 'confirmResize')
        return cloud.host_of(server), server['flavor']['vcpus']

    def test_own_use_of_a_resized_server_is_not_counted_twice(self, lab):
        lab.only('c1')
        server = lab.boot(lab.flavor(2), lasting(HOUR), host='c1')
        lab.register('c1')
        lab.reserve('c1', start=SOON, vcpus=4)
        lab.know(server, end=HOUR)

        # The compute reports its servers to the scheduler a moment later.
        cloud.wait_for(
            'growth in place',
            lambda: self.resize(lab, server, lab.flavor(4)) == ('c1', 4),
        )

    def test_server_that_grows_goes_to_another_host(self, lab):
        lab.only('c1', 'c2')
        server = lab.boot(lab.flavor(2), lasting(HOUR), host='c1')
        lab.register('c1', 'c2')
        lab.reserve('c1', start=SOON, vcpus=5)
        lab.know(server, end=HOUR)

        assert self.resize(lab, server, lab.flavor(4)) == ('c2', 4)


@pytest.mark.row('F43')
class TestUnshelve:
    """Unshelving: the server has no host, so its hints are all that is known.
    """

    @staticmethod
    def until(lab, seconds):
        """Return the hints of an end, as nova-api stores them."""
        at = datetime.datetime.fromtimestamp(lab.now + seconds, datetime.UTC)
        return {'lease_end': at.isoformat()}

    def test_unshelved_server_keeps_its_end(self, lab):
        server = lab.boot(hints=self.until(lab, SOON - 300), host='c1')
        lab.only('c1')
        lab.register('c1')
        lab.reserve('c1', start=SOON)

        assert shelved(lab, server) == 'c1'

    @pytest.mark.parametrize('by_flavor', [False, True])
    def test_a_lifetime_does_not_begin_again(self, lab, by_flavor):
        """The time at which the lifetime began is not known any more."""
        flavor = lab.flavor(lifetime='300') if by_flavor else None
        hints = None if by_flavor else lasting(300)
        server = lab.boot(flavor, hints, host='c1')
        lab.only('c1')
        lab.register('c1')
        lab.reserve('c1', start=SOON)
        assert lab.passes('c1', flavor, hints)

        assert shelved(lab, server) is None

    def test_bound_goes_back_to_its_reservation(self, lab):
        lab.register('c1')
        mine = lab.reserve('c1', start=-60)
        server = lab.boot(hints={'reservation': mine})

        assert shelved(lab, server) == 'c1'


@pytest.mark.row('F43')
class TestRebuild:
    """A rebuild on the same host always passes."""

    @pytest.mark.parametrize('on_stale', ['closed', 'open'])
    def test_rebuild_passes_where_no_other_request_would(self, lab, on_stale):
        lab.cloud.configure(on_stale=on_stale)
        server = lab.boot(host='c1')
        lab.register('c1', hold='dedicated', unbounded='never')
        lab.reserve('c1', start=-60, project_id='b8a2e1c09f6d4c7f8e7d6c5b')

        server = lab.cloud.act(server, 'rebuild', imageRef=OTHER_IMAGE)

        assert server['status'] == 'ACTIVE'
        assert server['image']['id'] == OTHER_IMAGE


@pytest.mark.row('F43')
class TestEvacuate:
    """Evacuation from a host that has failed."""

    @pytest.fixture
    def failed(self, lab):
        lab.cloud.stop_compute('c1')
        yield
        lab.cloud.start_compute('c1')

    def test_goes_where_there_is_room(self, lab, request):
        lab.only('c1', 'c2', 'c3')
        server = lab.boot(hints=lasting(HOUR), host='c1')
        lab.register('c1', 'c2', 'c3')
        lab.reserve('c2', start=SOON)
        lab.know(server, end=HOUR)
        request.getfixturevalue('failed')

        server = lab.cloud.evacuate(server)
        assert (cloud.host_of(server), server['status']) == ('c3', 'SHUTOFF')
