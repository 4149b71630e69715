# SPDX-License-Identifier: Apache-2.0
"""A database that Blazar 18 itself has made, through its REST API.

The output of its client with Blazar and with blazar-sched is compared.
"""

import datetime
import time

import pytest

from tests.cloud import polling
from tests.parts.blazar import conftest
from tests.parts.blazar import shown
from tests.standins.neutron import NETWORK

pytestmark = pytest.mark.services

HOST = {
    'resource_type': 'physical:host', 'min': 1, 'max': 1,
    'hypervisor_properties': '',
    'resource_properties': '["==", "$gpu", "yes"]',
}
INSTANCES = {
    'resource_type': 'virtual:instance', 'vcpus': 2, 'memory_mb': 512,
    'disk_gb': 1, 'amount': 2, 'affinity': True, 'resource_properties': '',
}
FLAVOR = {
    'resource_type': 'flavor:instance', 'flavor_id': 'm1.small', 'amount': 2,
    'affinity': None,
}
FLOATING_IPS = {
    'resource_type': 'virtual:floatingip', 'network_id': NETWORK, 'amount': 1,
}


@pytest.fixture
def ledger_url(real_blazar):
    return real_blazar.ledger


def at(**ahead):
    """Return a time from now, in whole minutes of UTC."""
    when = datetime.datetime.now(datetime.UTC) + datetime.timedelta(**ahead)
    return when.strftime('%Y-%m-%d %H:%M')


def book(owner, name, *reservations, start='now', end=None):
    return owner.lease.create(
        name, start, at(days=3) if end is None else end,
        [dict(r) for r in reservations], [],
    )


def become(owner, lease, status):
    """Wait until a lease has a status; return it."""

    def look():
        now = owner.lease.get(lease['id'])
        return now if now['status'] == status else None

    return polling.until(look)


def fill(url):
    """Create leases of each type: pending, active and ended."""
    admin, member = conftest.client(url), conftest.client(url, 'amy:demo')
    admin.host.create('compute-1', gpu='yes', rack='7')
    admin.host.create('compute-2')
    admin.host.create('compute-3')
    admin.host.set_property('rack', True)
    for address in ('203.0.113.5', '203.0.113.7'):
        admin.floatingip.create(NETWORK, address)
    ended = book(member, 'ended', HOST, INSTANCES, FLOATING_IPS)
    become(member, ended, 'ACTIVE')
    # Blazar's update does not accept 'now'.
    member.lease.request_manager.put(
        f'/leases/{ended["id"]}', body={'end_date': 'now'}
    )
    become(member, ended, 'TERMINATED')
    for name, reservation in (
        ('hosts', HOST),
        ('flavor', FLAVOR),
        ('instances', INSTANCES),
        (
            'floating IPs',
            {**FLOATING_IPS, 'required_floatingips': ['203.0.113.7']},
        ),
    ):
        become(member, book(member, name, reservation), 'ACTIVE')
    other = conftest.client(url, 'bob:other')
    book(
        other, 'to come', HOST, FLOATING_IPS, {**INSTANCES, 'affinity': False},
        start=at(days=5), end=at(days=6),
    )  # fmt: skip
    book(other, 'later', FLAVOR, start=at(days=7), end=at(days=8))


def test_the_client_shows_the_same_before_and_after(
    real_blazar, importer, serve, site
):
    with real_blazar.running() as url:
        fill(url)
        before = shown.shown(conftest.client(url))
    plan = importer.plan(real_blazar.url)
    assert plan.refused == []
    importer.write(plan)
    assert shown.shown(conftest.client(serve())) == before
    assert len(before['leases']) == 7
    manager = site.manager()
    assert manager.ledger.check() == []
    # The next number, although other numbers come from Blazar.
    assert manager.hosts.create('compute-4', {}).id == '4'


def test_lease_that_blazar_has_overbooked_is_refused(real_blazar, importer):
    with real_blazar.running('compute-1') as url:
        admin = conftest.client(url)
        admin.host.create('compute-1')
        # Each of the two slots takes 3 of 8 VCPUs; Blazar counts one slot.
        first = book(admin, 'first', {**INSTANCES, 'vcpus': 3})
        # Blazar's times are whole seconds on MySQL; the older lease stays the
        # older.
        time.sleep(1)
        second = book(admin, 'second', {**INSTANCES, 'vcpus': 5, 'amount': 1})
        become(admin, second, 'ACTIVE')
    plan = importer.plan(real_blazar.url)
    assert [kept.lease.id for kept in plan.leases] == [first['id']]
    [refused] = plan.refused
    assert refused.id == second['id']
    assert 'compute-1 has no room' in refused.reason
