# SPDX-License-Identifier: Apache-2.0
"""Programs around Blazar, unmodified, with the real API.

Where a program would get its client of Blazar from Keystone, it gets one of
the service under test.
"""

import datetime
import os
from types import SimpleNamespace
import zoneinfo

import pytest

REASON = 'needs the program: make test-programs'
HOSTS = {'resource_type': 'physical:host', 'min': 1, 'max': 1}


@pytest.fixture(autouse=True)
def hosts(service, login):
    service.manager.flavors.sync()
    for n in (1, 2):
        login('admin').host.create(f'compute-{n}', node_type='gpu')


@pytest.fixture
def alice(login):
    return login('alice:p1')


@pytest.fixture
def stack(alice, login, monkeypatch):
    """Return Heat's resources of a template."""
    pytest.importorskip('heat', reason=REASON)
    from heat.engine import stack
    from heat.engine import template
    from heat.engine.clients.os import blazar
    from heat.tests import utils

    monkeypatch.setattr(blazar.BlazarClientPlugin, '_create', lambda *_: alice)
    # The user of a template is no administrator, who may list the hosts.
    monkeypatch.setattr(blazar.BlazarClientPlugin, 'has_host', lambda _: True)

    # A resource does not keep its stack.
    stacks = []

    def make(kind, **properties):
        stacks.append(stack.Stack(utils.dummy_context(), 's', (
            template.Template({
                'heat_template_version': '2018-03-02',
                'resources': {'it': {'type': kind, 'properties': properties}},
            })
        )))
        found = stacks[-1]['it']
        found.validate()
        found.resource_id = found.handle_create()
        return found

    return make


@pytest.mark.row('F93')
@pytest.mark.parametrize('reservation', [
    HOSTS,
    {
        **HOSTS, 'resource_properties': '["==", "$node_type", "gpu"]',
        'hypervisor_properties': '[">=", "$vcpus", "1"]',
        'before_end': 'snapshot',
    },
    {
        'resource_type': 'virtual:instance', 'amount': 1, 'vcpus': 1,
        'memory_mb': 64, 'disk_gb': 1,
    },
])
def test_heat_has_a_lease(stack, alice, reservation):
    lease = stack(
        'OS::Blazar::Lease', name='heat', start_date='2030-01-01 00:00',
        end_date='2030-01-02 00:00', reservations=[reservation],
    )
    shown = {
        name: lease._resolve_attribute(name)
        for name in lease.attributes_schema if name != 'show'
    }
    assert shown['status'] == 'PENDING'
    assert shown['reservations'] == alice.lease.get(lease.resource_id)[
        'reservations'
    ]
    lease.handle_delete()
    assert alice.lease.list() == []


def test_heat_has_a_host(stack, alice, login, monkeypatch):
    monkeypatch.setattr(alice, 'host', login('admin').host)
    host = stack(
        'OS::Blazar::Host', name='compute-3', extra_capability={'ssd': 'yes'}
    )
    assert host._resolve_attribute('hypervisor_hostname') == 'compute-3'
    assert alice.host.get(host.resource_id)['ssd'] == 'yes'
    host.handle_delete()
    assert len(alice.host.list()) == 2


@pytest.fixture
def chi_lease(alice, monkeypatch):
    """Return python-chi's module of leases."""
    lease = pytest.importorskip('chi.lease', reason=REASON)
    monkeypatch.setattr(lease, 'blazar', lambda: alice)
    return lease


def test_chi_has_a_lease(chi_lease, alice):
    lease = chi_lease.Lease('chi', duration=datetime.timedelta(hours=2))
    lease.add_node_reservation(amount=1, node_type='gpu')
    lease.add_flavor_reservation(id='m1.small')
    lease.submit(wait_for_active=False)
    lease.refresh()
    assert lease.status in ('PENDING', 'STARTING', 'ACTIVE')
    [listed] = chi_lease.list_leases()
    assert (listed.name, listed.id) == ('chi', lease.id)
    assert len(listed.node_reservations + listed.flavor_reservations) == 2
    assert chi_lease.get_lease('chi').end_date == lease.end_date
    lease.delete()
    assert alice.lease.list() == []


def test_chi_is_told_why_it_gets_no_lease(chi_lease, caplog):
    lease = chi_lease.Lease('chi', duration=datetime.timedelta(hours=2))
    lease.add_node_reservation(amount=1, node_type='fpga')
    with pytest.raises(Exception, match='Unable to make lease'):
        lease.submit(wait_for_active=False)
    assert 'no host meets the requirements' in caplog.text
    assert chi_lease.list_leases() == []


def test_chi_leases_by_functions(chi_lease):
    reservations = []
    chi_lease.add_node_reservation(reservations, count=1)
    start, end = chi_lease.lease_duration(hours=3)
    made = chi_lease.create_lease(
        'chi-f', reservations, start_date=start, end_date=end
    )
    assert chi_lease.get_lease_id('chi-f') == made['id']
    chi_lease.delete_lease(made['id'])


@pytest.fixture
def dashboard(alice, login, monkeypatch):
    """Return blazar-dashboard's modules, and a request of a user."""
    monkeypatch.setitem(
        os.environ, 'DJANGO_SETTINGS_MODULE', 'openstack_dashboard.settings'
    )
    django = pytest.importorskip('django', reason=REASON)
    pytest.importorskip('blazar_dashboard', reason=REASON)
    django.setup()
    from blazar_dashboard.api import client
    from blazar_dashboard.content.leases import forms
    monkeypatch.setattr(client, 'blazarclient', lambda request: request.client)
    request = SimpleNamespace(
        client=alice, session={}, COOKIES={},
        headers={'x-requested-with': 'XMLHttpRequest'},
        horizon={'async_messages': []}
    )
    return SimpleNamespace(client=client, forms=forms, request=request)


@pytest.mark.row('F93')
@pytest.mark.parametrize('asked', [
    {'resource_type': 'host', 'min_hosts': 1, 'max_hosts': 2},
    *(
        {
            'resource_type': 'instance', 'amount': 2, 'vcpus': 1,
            'memory_mb': 64, 'disk_gb': 0, 'affinity': affinity,
        }
        for affinity in ('', 'None', 'True', 'False')
    ),
])
def test_the_dashboard_has_a_lease(dashboard, asked):
    d = dashboard
    d.request.session['django_timezone'] = 'Asia/Kolkata'
    form = d.forms.CreateForm(d.request, {
        'name': 'dash', 'start_date': '2030-01-01 05:30',
        'end_date': '2030-01-01 06:30', **asked,
    })
    assert form.is_valid(), form.errors
    assert form.handle(d.request, form.cleaned_data)
    [lease] = d.client.lease_list(d.request)
    assert lease.start_date == '2030-01-01T00:00:00.000000'
    d.client.lease_update(d.request, lease.id, name='other', prolong_for='1h')
    assert d.client.lease_get(d.request, lease.id).name == 'other'
    d.client.lease_delete(d.request, lease.id)


def test_the_dashboard_draws_the_calendar(dashboard, alice, login):
    alice.lease.create(
        name='x', start='2030-01-01 00:00', end='2030-01-01 01:00',
        reservations=[{
            **HOSTS, 'resource_properties': '', 'hypervisor_properties': ''
        }], events=[],
    )
    request = SimpleNamespace(client=login('admin'))
    hosts, [reservation] = dashboard.client.reservation_calendar(request)
    assert {each['hypervisor_hostname'] for each in hosts} == {
        'compute-1', 'compute-2'
    }
    assert reservation['start_date'] == datetime.datetime(
        2030, 1, 1, tzinfo=zoneinfo.ZoneInfo('UTC')
    )


def test_hammers_delete_a_lease_that_no_server_uses(endpoint, alice):
    blazar = pytest.importorskip('hammers.osrest.blazar', reason=REASON)
    admin = SimpleNamespace(token='admin', endpoint=lambda _: endpoint)
    assert blazar.hosts(admin).keys() == {'1', '2'}
    blazar.host_update(admin, '1', {'node_type': 'cpu'})
    assert blazar.host(admin, '1')['node_type'] == 'cpu'
    lease = alice.lease.create(
        'x', '2030-01-01 00:00', '2030-01-01 01:00',
        [{**HOSTS, 'resource_properties': '', 'hypervisor_properties': ''}], []
    )
    assert blazar.leases(admin) == {lease['id']: lease}
    assert blazar.lease(admin, lease['id']) == lease
    blazar.lease_delete(admin, lease['id'])
    assert alice.lease.list() == []
