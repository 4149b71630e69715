# SPDX-License-Identifier: Apache-2.0
"""The reservation service in openstacksdk, with the real API."""

import re
import subprocess
import sys
import textwrap
import time
from urllib import parse

import openstack
from openstack import exceptions
import pytest

from blazar_sched_client._proxy import Proxy
from blazar_sched_client.resources import Lease
from tests import tables
from tests.client import conftest
from tests.standins.neutron import NETWORK

HOST = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
BOTH = {'resource_type': 'physical:host', 'min': 2, 'max': 2}
NIGHT = {
    'name': 'night-run', 'start_date': '2030-01-01 00:00',
    'end_date': '2030-01-01 12:00', 'reservations': [HOST],
}
# The calls of the client's methods, with the operation that each reaches. Each
# has the client, and what the calls above have returned.
CALLS = (
    ('POST /v1/os-hosts', 'host', lambda c, _: c.create_host(
        name='compute-1', gpu='a100', spare=False
    )),
    ('POST /v1/os-hosts', 'other', lambda c, _: c.create_host(
        name='compute-2'
    )),
    ('GET /v1/os-hosts', '', lambda c, _: list(c.hosts())),
    ('GET /v1/os-hosts/{host_id}', '', lambda c, m: c.get_host(m['host'])),
    ('PUT /v1/os-hosts/{host_id}', '', lambda c, m: c.update_host(
        m['host'], rack='7'
    )),
    ('GET /v1/os-hosts/properties', '', lambda c, _: list(c.properties())),
    ('PATCH /v1/os-hosts/properties/{name}', '',
     lambda c, _: c.update_property('rack', private=True)),
    ('GET /v1/properties', '', lambda c, _: c.get_public_properties()),
    ('POST /v1/floatingips', 'ip', lambda c, _: c.create_floating_ip(
        floating_network_id=NETWORK, floating_ip_address='203.0.113.7'
    )),
    ('GET /v1/floatingips', '', lambda c, _: list(c.floating_ips())),
    ('GET /v1/floatingips/{floating_ip_id}', '',
     lambda c, m: c.get_floating_ip(m['ip'])),
    ('DELETE /v1/floatingips/{floating_ip_id}', '',
     lambda c, m: c.delete_floating_ip(m['ip'])),
    ('GET /v1/flavors', '', lambda c, _: list(c.flavors())),
    ('GET /v1/capacity', '', lambda c, _: c.get_capacity(parts=2)),
    ('GET /v1/products', '', lambda c, _: list(
        c.products(end_date='2030-01-01 00:00')
    )),
    ('GET /v1/reports/usage', '', lambda c, _: list(
        c.usage(group_by='project_id,day')
    )),
    ('GET /v1/limits', '', lambda c, _: list(c.limits(project_id='p2'))),
    ('GET /v1/timeline', '', lambda c, _: c.get_timeline()),
    ('POST /v1/offers', 'found', lambda c, _: c.search_offers(
        reservations=[HOST], duration='1h', start_date='2030-01-01 00:00',
        hold='5m',
    )),
    ('GET /v1/offers', '', lambda c, _: list(c.offers())),
    ('GET /v1/offers/{offer_id}', '',
     lambda c, m: c.get_offer(m['found'].offers[0])),
    ('PUT /v1/offers/{offer_id}', '', lambda c, m: c.update_offer(
        m['found'].offers[0], approved=False, hold='6m'
    )),
    ('POST /v1/leases', '', lambda c, m: c.accept_offer(
        m['found'].offers[0], 'accepted'
    )),
    ('DELETE /v1/offers/{offer_id}', '', lambda c, m: c.delete_offer(
        c.search_offers(reservations=[HOST], duration='1h', hold='5m')
        .offers[0]
    )),
    ('POST /v1/leases', 'lease', lambda c, _: c.create_lease(**NIGHT)),
    ('GET /v1/leases', '', lambda c, _: list(c.leases())),
    ('GET /v1/leases/{lease_id}', '', lambda c, m: c.get_lease(m['lease'])),
    ('PUT /v1/leases/{lease_id}', '', lambda c, m: c.update_lease(
        m['lease'], name='day-run'
    )),
    ('GET /v1/leases/{lease_id}/extension', '',
     lambda c, m: c.get_lease_extension(m['lease'], '2030-02-01 00:00')),
    ('PUT /v1/leases/{lease_id}', '', lambda c, m: c.extend_lease(
        m['lease'], '2030-01-02 00:00'
    )),
    ('GET /v1/os-hosts/allocations', '', lambda c, _: list(c.allocations())),
    ('GET /v1/os-hosts/{host_id}/allocation', '',
     lambda c, m: c.get_allocation(m['host'])),
    ('DELETE /v1/leases/{lease_id}', '',
     lambda c, m: c.delete_lease(m['lease'])),
    ('PUT /v1/os-hosts/{host_id}/allocation', '',
     lambda c, m: c.update_allocation(
         next(c.allocations()).id, lease_id=next(c.leases()).id
     )),
    ('POST /v1/series', 'series', lambda c, _: c.create_series(
        name='course', rrule='FREQ=DAILY;COUNT=2', time_zone='UTC',
        start='2031-01-01T09:00', duration='1h', reservations=[HOST],
    )),
    ('GET /v1/series', '', lambda c, _: list(c.series())),
    ('GET /v1/series/{series_id}', '',
     lambda c, m: c.get_series(m['series'])),
    ('PUT /v1/series/{series_id}', '', lambda c, m: c.update_series(
        m['series'], duration='2h'
    )),
    ('DELETE /v1/series/{series_id}', '',
     lambda c, m: c.delete_series(m['series'])),
    ('POST /v1/requests', 'request', lambda c, _: c.create_lease_request(
        name='later', duration='1h', reservations=[BOTH],
        start_date='2030-01-01 00:00', latest_start_date='2030-01-01 00:30',
    )),
    ('GET /v1/requests', '', lambda c, _: list(c.lease_requests())),
    ('GET /v1/requests/{request_id}', '',
     lambda c, m: c.get_lease_request(m['request'])),
    ('DELETE /v1/requests/{request_id}', '',
     lambda c, m: c.delete_lease_request(m['request'])),
    ('POST /v1/maintenances', 'work', lambda c, _: c.create_maintenance(
        name='psu', hosts=['compute-2'], start_date='2031-06-01 00:00',
        end_date='2031-06-02 00:00',
    )),
    ('GET /v1/maintenances', '', lambda c, _: list(c.maintenances())),
    ('GET /v1/maintenances/{maintenance_id}', '',
     lambda c, m: c.get_maintenance(m['work'])),
    ('PUT /v1/maintenances/{maintenance_id}', '',
     lambda c, m: c.update_maintenance(m['work'], reason='a new one')),
    ('DELETE /v1/maintenances/{maintenance_id}', '',
     lambda c, m: c.delete_maintenance(m['work'])),
    ('POST /v1/webhooks', 'webhook', lambda c, _: c.create_webhook(
        url='https://hooks.example/', events=['lease.*']
    )),
    ('GET /v1/webhooks', '', lambda c, _: list(c.webhooks())),
    ('GET /v1/webhooks/{webhook_id}', '',
     lambda c, m: c.get_webhook(m['webhook'])),
    ('DELETE /v1/webhooks/{webhook_id}', '',
     lambda c, m: c.delete_webhook(m['webhook'])),
    ('POST /v1/calendars', 'calendar',
     lambda c, _: c.create_calendar(name='team')),
    ('GET /v1/calendars', '', lambda c, _: list(c.calendars())),
    ('GET /v1/calendars/{calendar_id}', '',
     lambda c, m: c.get_calendar(m['calendar'])),
    ('DELETE /v1/calendars/{calendar_id}', '',
     lambda c, m: c.delete_calendar(m['calendar'])),
    ('DELETE /v1/os-hosts/{host_id}', '',
     lambda c, _: c.delete_host(c.create_host(name='compute-3'))),
)


@pytest.mark.row('F102')
@tables.EVERY
def test_every_operation_has_a_method(service, connect):
    service.manager.flavors.sync()
    conn = connect()
    reached = []
    made = {}
    conn.session.session.hooks['response'].append(
        lambda response, **_: reached.append(conftest.operation(
            response.request.method, parse.urlsplit(response.url).path
        ))
    )
    for wanted, name, call in CALLS:
        before = len(reached)
        made[name] = call(conn.reservation, made)
        assert wanted in reached[before:]
    assert 'GET /v1' in reached
    assert {wanted for wanted, *_ in CALLS} == (
        conftest.OPERATIONS - conftest.NEEDLESS
    )
    methods = {
        name for name, member in vars(Proxy).items()
        if callable(member) and not name.startswith(('_', 'find_'))
    }
    called = {name for *_, call in CALLS for name in call.__code__.co_names}
    assert methods - called == {'request', 'wait_for_status'}


@pytest.fixture
def admin(connect):
    client = connect().reservation
    for n in (1, 2):
        client.create_host(name=f'compute-{n}')
    return client


@tables.EVERY
def test_the_program_of_the_guide_deletes_all_of_a_project(
    admin, connect, monkeypatch
):
    def nouns():
        return [
            (kind, each.project_id) for kind, found in (
                ('series', admin.series()), ('lease', admin.leases()),
                ('request', (
                    each for each in admin.lease_requests()
                    if each.status == 'WAITING'
                )),
                ('offer', admin.offers()),
            ) for each in found
        ]

    for project in 'p1', 'p2':
        client = connect(f'someone:{project}').reservation
        client.create_lease(**NIGHT)
        client.create_series(
            name='course', rrule='FREQ=DAILY;COUNT=2', time_zone='UTC',
            start='2031-01-01T09:00', duration='1h', reservations=[HOST],
        )
        client.search_offers(reservations=[HOST], duration='1h', hold='5m')
        for name in 'cancelled', 'later':
            made = client.create_lease_request(
                name=name, duration='1h', reservations=[BOTH],
                start_date='2030-01-01 00:00',
                latest_start_date='2030-01-01 00:30',
            )
            if name == 'cancelled':
                client.delete_lease_request(made)
    kept = [each for each in nouns() if each[1] == 'p2']
    monkeypatch.setattr(openstack, 'connect', lambda cloud: connect())
    text = (conftest.DOC / 'admin' / 'operate.rst').read_text()
    [program] = re.findall(
        r'^.. code-block:: python\n\n((?:(?:   .*)?\n)+)', text, re.M
    )
    names = {}
    exec(textwrap.dedent(program), names)

    names['delete_all']('p1')

    assert nouns() == kept
    assert {kind for kind, _ in kept} == {
        'series', 'lease', 'request', 'offer',
    }


def test_a_cloud_of_clouds_yaml_has_the_service(
    endpoint, tmp_path, monkeypatch
):
    clouds = tmp_path / 'clouds.yaml'
    clouds.write_text(
        'clouds:\n  ours:\n    auth_type: admin_token\n'
        f'    auth: {{endpoint: "{endpoint}", token: admin}}\n'
        '    vendor_hook: blazar_sched_client:load\n'
    )
    monkeypatch.setattr('openstack.config.loader.CONFIG_FILES', [str(clouds)])
    conn = openstack.connect(cloud='ours', load_envvars=False)
    assert list(conn.reservation.leases()) == []


def test_a_refusal_has_the_words_of_the_service_and_its_offer(admin, connect):
    alice = connect('alice:p1').reservation
    lease = alice.create_lease(**NIGHT)
    with pytest.raises(
        exceptions.ConflictException, match='2 hosts are needed, 1 is free'
    ) as caught:
        alice.create_lease(**{**NIGHT, 'reservations': [BOTH]})
    assert caught.value.details == (
        'reservations: 2 hosts are needed, 1 is free'
    )
    answer = caught.value.response.json()
    assert answer['offer']['available'] == 1
    assert [each['lease_id'] for each in answer['in_the_way']] == [lease.id]
    other = alice.create_lease(**{
        **NIGHT, 'reservations': [BOTH],
        'alternatives': [NIGHT['reservations']],
    })
    assert other.alternative == 1
    with pytest.raises(exceptions.ForbiddenException, match='policy'):
        list(alice.hosts())
    # A program that does without resources gets the words too.
    answer = alice.post('/leases', json={'name': 'x'}, microversion='1.1')
    assert answer.status_code == 400
    assert answer.reason == 'end_date is missing: null means no end'


def test_leases_are_found_by_their_names(admin):
    lease = admin.create_lease(**NIGHT)
    assert admin.find_lease('night-run').id == lease.id
    assert admin.find_lease('none') is None
    with pytest.raises(exceptions.NotFoundException, match='none'):
        admin.find_lease('none', ignore_missing=False)
    admin.create_lease(**NIGHT)
    with pytest.raises(exceptions.DuplicateResource):
        admin.find_lease('night-run')
    assert admin.find_host('compute-2').id == '2'


@tables.EVERY
@pytest.mark.parametrize(('call', 'near'), [
    (lambda c: c.create_lease(**NIGHT, start='2030-01-01'), 'start_date'),
    (lambda c: c.update_lease('id', nam='x'), 'name'),
    (lambda c: c.update_lease(Lease.new(id='id'), nam='x'), 'name'),
    (lambda c: list(c.leases(stauts='ERROR')), 'status'),
    (lambda c: list(c.leases(active='now')), 'active_at'),
    (lambda c: c.create_maintenance(hosts=['x'], start='y'), 'start_date'),
    (lambda c: c.create_series(rule='FREQ=DAILY'), 'rrule'),
])
def test_a_mistyped_name_is_refused_before_anything_is_sent(admin, call, near):
    with pytest.raises(exceptions.InvalidRequest, match=f'mean {near}'):
        call(admin)
    assert list(admin.leases()) == list(admin.maintenances()) == []


def test_a_lease_is_prolonged_by_what_is_said(admin):
    lease = admin.create_lease(**NIGHT)
    for wrong in ({}, {'end_date': None, 'by': '1h'}, {'by': '1 hour'}):
        with pytest.raises(exceptions.InvalidRequest):
            admin.extend_lease(lease, **wrong)
    assert admin.get_lease(lease).end_date == lease.end_date
    before = lease.end_date
    assert admin.extend_lease(lease.id, by='90m').end_date > before
    assert admin.extend_lease(lease.id, None).end_date is None


def test_lists_come_in_pages(admin):
    for day in range(1, 4):
        admin.create_lease(**{
            **NIGHT, 'name': f'run-{day}',
            'start_date': f'2030-01-0{day} 00:00',
            'end_date': f'2030-01-0{day} 01:00',
        })
    names = [each.name for each in admin.leases(limit=1, sort='start:desc')]
    assert names == ['run-3', 'run-2', 'run-1']
    rows = admin.get_timeline(limit=1).rows
    assert [row['name'] for row in rows] == ['compute-1', 'compute-2']


def test_a_dry_run_changes_nothing(admin):
    asked = admin.create_lease(dry_run=True, **NIGHT)
    assert asked.status == 'PENDING'
    assert list(admin.leases()) == []
    lease = admin.create_lease(**NIGHT)
    assert admin.update_lease(
        lease.id, dry_run=True, name='day-run'
    ).name == 'day-run'
    admin.delete_lease(lease, dry_run=True)
    assert [each.name for each in admin.leases()] == ['night-run']
    with pytest.raises(exceptions.ConflictException):
        admin.create_lease(dry_run=True, **{**NIGHT, 'reservations': [BOTH]})


def test_a_request_that_is_sent_again_makes_no_second_lease(admin):
    first, again = (
        admin.create_lease(idempotency_key='once', **NIGHT) for _ in '12'
    )
    assert again.id == first.id


def test_a_lease_is_waited_for(admin):
    lease = admin.create_lease(name='now', duration='1h', reservations=[HOST])
    told = []
    active = admin.wait_for_status(
        lease, 'ACTIVE', interval=0.1, wait=60, callback=told.append
    )
    assert active.status == 'ACTIVE'
    assert active.reservations[0]['hosts'] == ['compute-1']
    ended = admin.update_lease(lease, end_date='now')
    admin.wait_for_status(ended, 'terminated', interval=0.1, wait=60)


def test_a_wait_ends_before_the_request_that_it_repeats(admin):
    lease = admin.create_lease(**NIGHT)
    begin = time.monotonic()
    with pytest.raises(exceptions.ResourceTimeout):
        admin.wait_for_status(lease, 'ACTIVE', interval=60, wait=1)
    assert time.monotonic() - begin < 30


def test_capabilities_of_a_host_are_set_and_deleted(admin):
    host = admin.update_host('1', rack='7', hold='dedicated')
    assert (host.properties, host.hold) == ({'rack': '7'}, 'dedicated')
    assert admin.update_host(host, rack=None).properties == {}


def test_the_version_can_be_chosen(admin, connect):
    blazar = connect(reservation_default_microversion='1.0').reservation
    lease = blazar.create_lease(**NIGHT)
    assert lease.start_date == '2030-01-01T00:00:00.000000'
    with pytest.raises(exceptions.NotFoundException, match='reservation 1.1'):
        blazar.search_offers(reservations=[HOST], duration='1h')


@pytest.mark.row('F129')
def test_the_client_needs_nothing_of_a_service():
    """Neither Nova, nor a database, nor a message bus is imported."""
    code = (
        'import pkgutil, sys, importlib, blazar_sched_client as c\n'
        'for m in pkgutil.walk_packages(c.__path__, c.__name__ + "."):\n'
        '    importlib.import_module(m.name)\n'
        'print({n.partition(".")[0] for n in sys.modules}'
        ' & {"falcon", "nova", "oslo_messaging", "sqlalchemy"})'
    )
    shown = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True,
        check=True,
    )
    assert shown.stdout == 'set()\n'
