# SPDX-License-Identifier: Apache-2.0
"""A server that has left its host, before the ledger knows."""

from nova.scheduler import host_manager
import pytest

pytestmark = pytest.mark.more

SOON = 900


@pytest.fixture
def site(lab):
    """A site where half of c1 will be reserved for others."""
    lab.register('c1')
    return lab


def forget(site, server):
    """Delete the record of a server."""
    site.ledger.commit(lambda tx: tx.delete_instances([server['id']]))
    site.sync()


def test_a_deleted_server_opens_no_room_of_a_lease(site):
    """The server had an end, so its room was given back from the end on."""
    server = site.boot(site.flavor(4), {'lifetime': '600'}, host='c1')
    site.know(server, end=600)
    site.cloud.report()
    site.reserve('c1', start=SOON, vcpus=4, project_id='other')
    assert not site.passes('c1', site.flavor(8))

    site.cloud.delete(server)
    site.cloud.report()

    assert not site.passes('c1', site.flavor(8))
    assert site.passes('c1', site.flavor(4))
    forget(site, server)
    assert not site.passes('c1', site.flavor(8))


def test_a_reservation_whose_server_is_deleted_keeps_its_room(site):
    reservation = site.reserve('c1', start=-60, vcpus=4)
    server = site.boot(site.flavor(4), {'reservation': reservation}, host='c1')
    site.know(server, end=3540, reservation_id=reservation)
    site.cloud.report()
    assert site.passes('c1', site.flavor(4))

    site.cloud.delete(server)
    site.cloud.report()

    assert not site.passes('c1', site.flavor(8))
    assert not site.passes('c1', site.flavor(5))
    assert site.passes('c1', site.flavor(4))


def test_nova_names_servers_also_without_track_instance_changes(
    site, monkeypatch
):
    """Nova then reads the servers of a host from its database."""
    monkeypatch.setattr(
        host_manager.HostManager, '_get_instance_info',
        lambda self, context, compute: (
            self._get_instances_by_host(context, compute.host)
        ),
    )
    server = site.boot(site.flavor(4), {'lifetime': '600'}, host='c1')
    site.know(server, end=600)
    site.cloud.report()
    site.reserve('c1', start=SOON, vcpus=4, project_id='other')

    assert site.passes('c1', site.flavor(4))
    assert not site.passes('c1', site.flavor(5))
