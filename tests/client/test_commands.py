# SPDX-License-Identifier: Apache-2.0
"""The commands of `openstack` beside those of python-blazarclient."""

import datetime
from importlib import metadata
import json
import logging
import os
import pathlib
import re
import shlex
import zoneinfo

import pytest

from blazar_sched.service.api import request_log
from tests import programs
from tests import tables
from tests.client import conftest
from tests.parts.report import usages

# The operations that commands of python-blazarclient reach.
BLAZARS = {
    'GET /v1/leases': 'lease list', 'GET /v1/leases/{lease_id}': 'lease show',
    'DELETE /v1/leases/{lease_id}': 'lease delete',
    'GET /v1/os-hosts': 'host list', 'POST /v1/os-hosts': 'host create',
    'GET /v1/os-hosts/{host_id}': 'host show',
    'PUT /v1/os-hosts/{host_id}': 'host set',
    'DELETE /v1/os-hosts/{host_id}': 'host delete',
    'GET /v1/os-hosts/allocations': 'allocation list',
    'GET /v1/os-hosts/{host_id}/allocation': 'allocation show',
    'GET /v1/os-hosts/properties': 'host property list',
    'PATCH /v1/os-hosts/properties/{name}': 'host property set',
    'GET /v1/floatingips': 'floatingip list',
    'POST /v1/floatingips': 'floatingip create',
    'GET /v1/floatingips/{floating_ip_id}': 'floatingip show',
    'DELETE /v1/floatingips/{floating_ip_id}': 'floatingip delete',
}
# The operation that each command reaches.
OURS = {
    'book': 'POST /v1/leases',
    'allocation move': 'PUT /v1/os-hosts/{host_id}/allocation',
    'capacity show': 'GET /v1/capacity', 'flavor list': 'GET /v1/flavors',
    'lease book': 'POST /v1/leases',
    'lease change': 'PUT /v1/leases/{lease_id}',
    'lease extend': 'GET /v1/leases/{lease_id}/extension',
    'lease search': 'GET /v1/leases', 'limit list': 'GET /v1/limits',
    'usage list': 'GET /v1/reports/usage', 'list': 'GET /v1/leases',
    'maintenance create': 'POST /v1/maintenances',
    'maintenance delete': 'DELETE /v1/maintenances/{maintenance_id}',
    'maintenance list': 'GET /v1/maintenances',
    'maintenance set': 'PUT /v1/maintenances/{maintenance_id}',
    'maintenance show': 'GET /v1/maintenances/{maintenance_id}',
    'offer accept': 'POST /v1/leases',
    'offer delete': 'DELETE /v1/offers/{offer_id}',
    'offer list': 'GET /v1/offers', 'offer search': 'POST /v1/offers',
    'offer set': 'PUT /v1/offers/{offer_id}',
    'offer show': 'GET /v1/offers/{offer_id}',
    'product list': 'GET /v1/products', 'property list': 'GET /v1/properties',
    'request create': 'POST /v1/requests',
    'request delete': 'DELETE /v1/requests/{request_id}',
    'request list': 'GET /v1/requests',
    'request show': 'GET /v1/requests/{request_id}',
    'series create': 'POST /v1/series',
    'series delete': 'DELETE /v1/series/{series_id}',
    'series list': 'GET /v1/series',
    'series set': 'PUT /v1/series/{series_id}',
    'series show': 'GET /v1/series/{series_id}',
    'timeline show': 'GET /v1/timeline',
    'calendar create': 'POST /v1/calendars',
    'calendar delete': 'DELETE /v1/calendars/{calendar_id}',
    'calendar list': 'GET /v1/calendars',
    'calendar show': 'GET /v1/calendars/{calendar_id}',
    'webhook create': 'POST /v1/webhooks',
    'webhook delete': 'DELETE /v1/webhooks/{webhook_id}',
    'webhook list': 'GET /v1/webhooks',
    'webhook show': 'GET /v1/webhooks/{webhook_id}',
}
HOST = '--reservation resource_type=physical:host,min=1,max=1'
BOTH = '--reservation resource_type=physical:host,min=2,max=2'
DAY = '--start-date "2030-01-01 00:00" --end-date "2030-01-02 00:00"'


def commands(group):
    return {
        each.name.removeprefix('reservation_').replace('_', ' ')
        for each in metadata.entry_points(group=group)
    }


@pytest.mark.row('F102')
@tables.EVERY
def test_every_operation_has_a_command():
    ours = commands('openstack.blazar_sched.v1')
    blazars = commands('openstack.reservation.v1')
    assert ours == OURS.keys()
    assert set(BLAZARS.values()) <= blazars
    assert ours & blazars == set()
    reached = {*OURS.values(), *BLAZARS}
    assert reached == conftest.OPERATIONS - conftest.NEEDLESS
    assert conftest.NEEDLESS <= conftest.OPERATIONS


def test_every_command_is_tried_here():
    tried = re.findall(
        r"\b(?:do|read|refused)\(\s*f?'((?:[a-z]+ )?[a-z]+)\b",
        pathlib.Path(__file__).read_text(),
    )
    assert set(OURS) - set(tried) == set()


class Program:
    """The program `openstack`, whose commands reach their operations."""

    def __init__(self, shell, log):
        self.shell = shell
        self._log = log

    def run(self, line):
        self._log.clear()
        done = self.shell.run(*shlex.split(line))
        # Blazar's client names its own fault before any output.
        done.stderr = re.sub('Could not load .*\n', '', done.stderr)
        return done

    def do(self, line):
        """Run a command; return what it shows."""
        done = self.run(line)
        assert done.returncode == 0, done.stderr
        name = ' '.join(line.split()[:2])
        known = OURS.get(name) or OURS.get(line.split()[0])
        assert known in [
            conftest.operation(*record.args[1:3])
            for record in self._log.records
            if record.name == request_log.__name__
        ]
        return done.stdout

    def read(self, line):
        return json.loads(self.do(f'{line} -f json'))

    def refused(self, line):
        """Run a command that is refused; return the reason."""
        done = self.run(line)
        assert done.returncode != 0, done.stdout
        return done.stderr


@pytest.fixture
def program(endpoint, tmp_path, caplog):
    caplog.set_level(logging.INFO, request_log.__name__)

    def make(token='admin', **environ):
        return Program(
            conftest.Shell(
                'openstack', endpoint, tmp_path, OS_TOKEN=token, COLUMNS='80',
                **environ,
            ),
            caplog,
        )

    return make


@pytest.fixture
def client(connect):
    """A client of the SDK, with two hosts."""
    client = connect().reservation
    for n in (1, 2):
        client.create_host(name=f'compute-{n}')
    return client


@pytest.fixture
def night(client):
    """The lease night, of one host for one day."""
    return client.create_lease(
        name='night', start_date='2030-01-01 00:00',
        end_date='2030-01-02 00:00',
        reservations=[{'resource_type': 'physical:host', 'min': 1, 'max': 1}]
    )


def test_a_lease_is_booked_and_changed(program, client):
    openstack = program('alice:p1')
    asked = openstack.read(f'lease book night {HOST} {DAY} --dry-run --wait')
    assert asked['status'] == 'PENDING'
    lease = openstack.read(
        "lease book night --reservation 'resource_type=physical:host,min=1,"
        'max=1,on_end=keep,magnetic=true,projects=["p2"]\' --start-date '
        '"2030-01-01 01:00" --duration 1d --times Europe/Berlin'
    )
    assert lease['start_date'] == '2030-01-01T00:00:00Z'
    assert lease['end_date'] == '2030-01-02T00:00:00Z'
    [reservation] = openstack.read('list night')
    assert reservation['hosts'] == ['compute-1']
    [whole] = lease['reservations']
    assert (whole['on_end'], whole['magnetic'], whole['projects']) == (
        'keep', True, ['p2']
    )
    changed = openstack.read(
        'lease change night --name long --end-date none --reservation '
        f'id={reservation["id"]},on_end=shelve'
    )
    assert (changed['name'], changed['end_date']) == ('long', None)
    assert changed['reservations'][0]['on_end'] == 'shelve'
    assert openstack.refused(f'lease book day {BOTH} {DAY}') == (
        'reservations: 2 hosts are needed, 1 is free; in the way: your lease '
        f'long ({lease["id"]}) on 1 host; 1 would find room\n'
    )
    assert openstack.read('list')[0]['lease_id'] == lease['id']
    other = openstack.read(
        f'lease book other {BOTH} --alternative '
        f'resource_type=physical:host,min=3,max=3 '
        f'--alternative resource_type=physical:host,min=1,max=1 {DAY}'
    )
    assert other['alternative'] == 2


def test_leases_are_searched(program, night):
    openstack = program()
    changed = openstack.read(
        'lease change night --label "team=vision: x" --label run=1'
    )
    assert changed['labels'] == {'team': 'vision: x', 'run': '1'}
    window = '--start-date "2030-01-01 23:00" --end-date "2030-01-03 00:00"'
    for options in (
        window, '--label run=1 --label "team=vision: x"', '--host compute-1',
        '--active-at "2030-01-01 00:00"',
        '--name night --status PENDING --resource-type physical:host',
    ):
        [found] = openstack.read(f'lease search {options}')
        assert (found['name'], found['degraded']) == ('night', False)
    for options in (
        '--active-at now', '--host compute-2', '--degraded', '--label run=2',
        '--start-date "2030-01-02 00:00"', '--end-date "2030-01-01 00:00"',
    ):
        assert openstack.read(f'lease search {options}') == []
    changed = openstack.read('lease change night --no-label')
    assert changed['labels'] == {}


def test_a_lease_is_prolonged_as_far_as_possible(program, night):
    openstack = program()
    openstack.do(
        f'lease book next {BOTH} --start-date "2030-01-05 00:00" '
        '--end-date "2030-01-06 00:00"'
    )
    shown = openstack.do('lease extend night --dry-run')
    assert '2030-01-05 00:00 UTC' in shown
    assert '| limited_by     | capacity' in shown
    done = openstack.run('lease extend night --until "2030-01-03 00:00"')
    assert '| end_date     | 2030-01-03 00:00 UTC' in done.stdout
    refusal = openstack.refused(f'lease book day {BOTH} {DAY}')
    assert 'there is room from 2030-01-03 00:00 UTC to' in refusal


@pytest.mark.row('F128')
def test_a_lease_is_prolonged_by_a_duration(program, night):
    openstack = program()
    shown = openstack.run('lease extend night --by 2h --dry-run').stdout
    assert '| end_date     | 2030-01-02 02:00 UTC' in shown
    assert openstack.read('lease search')[0]['end_date'].startswith(
        '2030-01-02T00:00'
    )
    done = openstack.run('lease extend night --by 2h').stdout
    assert '| end_date     | 2030-01-02 02:00 UTC' in done


def test_a_lease_is_endless_for_who_says_so_only(program, night):
    openstack = program()
    assert '--by, --until or' in openstack.refused('lease extend night')
    assert 'name an option' in openstack.refused('lease change night')
    shown = openstack.read('lease search')[0]
    assert shown['end_date'].startswith('2030-01-02T00:00')
    done = openstack.run('lease extend night --as-far-as-possible').stdout
    assert '| end_date     | None' in done


def test_a_lease_that_starts_is_waited_for(program, client):
    openstack = program()
    done = openstack.run(f'lease book now {HOST} --duration 1h --wait')
    assert '| status       | ACTIVE' in done.stdout
    assert re.fullmatch(
        r'(now: (PENDING|STARTING), \d+ s\n)+now: ACTIVE, \d+ s\n', done.stderr
    )


def test_an_offer_is_held_and_accepted(program, client):
    openstack = program()
    first, second = openstack.read(
        f'offer search {BOTH} --alternative resource_type=physical:host,'
        'min=3,max=3 --duration 6h --align 1h --limit 2 --hold 5m'
    )
    assert second['held_until'] is None
    assert [each['id'] for each in openstack.read('offer list')] == [
        first['id']
    ]
    shown = openstack.read(f'offer show {first["id"]}')
    assert shown['start_date'] == first['start_date']
    for option, by in ('--refuse', None), ('--approve', 'admin'):
        shown = openstack.read(f'offer set {first["id"]} {option} --hold 9m')
        assert shown['approved_by'] == by
    assert shown['held_until'] > first['held_until']
    lease = openstack.read(f'offer accept {first["id"]} accepted')
    assert (lease['id'], lease['name']) == (first['id'], 'accepted')
    [other, *_] = client.search_offers(
        reservations=[{'resource_type': 'physical:host', 'min': 1, 'max': 1}],
        duration='6h', hold='5m',
    ).offers
    openstack.do(f'offer delete {other.id}')
    assert list(client.offers()) == []
    none = openstack.run(
        'offer search --reservation resource_type=physical:host,min=9,max=9 '
        '--duration 1h'
    )
    assert none.stderr == (
        'No offer: 9 hosts are needed, 2 such hosts are registered\n'
    )


@tables.EVERY
def test_a_series_is_booked_and_changed(program, client):
    openstack = program()
    made = openstack.read(
        f'series create course {HOST} --rrule "FREQ=WEEKLY;COUNT=3" '
        '--time-zone UTC --start 2031-01-06T09:00 --duration 8h '
        '--except 2031-01-13 --if-no-room skip'
    )
    assert made['except_dates'] == ['2031-01-13']
    assert [each['name'] for each in openstack.read('series list')] == [
        'course'
    ]
    changed = openstack.read(
        'series set course --duration 6h --from 2031-01-06'
    )
    assert changed['duration'] == 21600
    assert openstack.read('series show course')['duration'] == 21600
    openstack.do('series delete course')
    assert list(client.series()) == []


@tables.EVERY
def test_a_request_waits_and_is_cancelled(program, client, night):
    openstack = program()
    client.update_lease(night, reservations=[
        {'id': night.reservations[0]['id'], 'min': 2, 'max': 2}
    ])
    made = openstack.read(
        f'request create later {BOTH} --duration 6h '
        '--start-date "2030-01-01 00:00" '
        '--latest-start-date "2030-01-01 12:00" --priority low --flexible'
    )
    assert (made['status'], made['flexible']) == ('WAITING', True)
    assert openstack.read('request list')[0]['position'] == 1
    shown = openstack.do('request show later')
    assert '| estimate          | 2030-01-02 00:00 UTC' in shown
    assert 'reservations' not in shown
    openstack.do('request delete later')
    assert client.get_lease_request(made['id']).status == 'CANCELLED'
    tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(1)
    done = openstack.run(
        f'request create soon {BOTH} --duration 6h --latest-start-date '
        f'{tomorrow:%Y-%m-%dT%H:%M} --wait -c status -c lease_start_date '
        '-c reservations'
    )
    assert 'BOOKED' in done.stdout
    today = datetime.datetime.now(datetime.UTC)
    assert f'| lease_start_date | {today:%Y-%m-}' in done.stdout
    assert 'resource_type=physical:host' in done.stdout


@tables.EVERY
def test_a_webhook_shows_its_secret_once(program, client):
    openstack = program()
    made = openstack.read(
        'webhook create https://example.org/leases --event "lease.*" '
        '--event request.book'
    )
    assert made['secret'].startswith('whsec_')
    assert made['events'] == ['lease.*', 'request.book']
    [listed] = openstack.read('webhook list')
    assert listed['url'] == 'https://example.org/leases'
    assert openstack.read(f'webhook show {made["id"]}')['secret'] is None
    openstack.do(f'webhook delete {made["id"]}')
    assert list(client.webhooks()) == []


@tables.EVERY
def test_a_calendar_shows_its_link_once(program, client):
    openstack = program()
    made = openstack.read('calendar create team')
    assert made['url'].endswith('.ics')
    [listed] = openstack.read('calendar list')
    assert listed['name'] == 'team'
    assert openstack.read('calendar show team')['url'] is None
    openstack.do('calendar delete team')
    assert list(client.calendars()) == []


@tables.EVERY
def test_a_maintenance_moves_reservations(program, client, night):
    openstack = program()
    asked = openstack.read(
        f'maintenance create psu --host compute-1 {DAY} --dry-run'
    )
    assert asked['moved'][0]['hosts'] == ['compute-1']
    assert openstack.read('maintenance list') == []
    made = openstack.read(
        f'maintenance create psu --host compute-1 {DAY} --reason "a new psu"'
    )
    [moved] = client.get_lease(night).reservations
    assert moved['hosts'] == ['compute-2']
    changed = openstack.read(
        'maintenance set psu --end-date "2030-01-03 00:00"'
    )
    assert changed['end_date'] == '2030-01-03T00:00:00Z'
    assert openstack.read('maintenance show psu')['id'] == made['id']
    openstack.do('maintenance delete psu')
    assert list(client.maintenances()) == []
    openstack.do('allocation move compute-2 --lease night')
    [moved] = client.get_lease(night).reservations
    assert moved['hosts'] == ['compute-1']


def test_what_there_is_room_for(program, client, night, service):
    service.manager.flavors.sync()
    openstack = program()
    window = '--start-date "2030-01-01 12:00" --end-date "2030-01-02 12:00"'
    parts = openstack.read(
        f'capacity show {window} --parts 2 --flavor-id m1.small'
    )
    assert [part['instances'] for part in parts] == [8, 16]
    shown = openstack.do(f'capacity show {window} --parts 2')
    assert re.search(r'2030-01-02 00:00 UTC \| +1 \|.* 16/32 ', shown)
    assert openstack.read('flavor list')[0]['id'] == 'm1.small'
    properties = {
        each['property']: each['values']
        for each in openstack.read('property list')
    }
    assert properties['availability_zone'] == ['nova']


@pytest.mark.parametrize('options', [
    '[enforcement]\nenabled_filters = MaxLeasesFilter\n'
    'max_leases_per_project = 5\n'
])
def test_limits_are_listed(program, client):
    program('alice:p1').do(f'lease book night {HOST} {DAY}')
    limit, *_ = program().read('limit list --project-id p1')
    assert limit == {
        'name': 'max_leases_per_project', 'unit': 'leases', 'limit': 5,
        'used': 1,
    }


@tables.EVERY
def test_the_usage_of_a_project_is_listed(program, night, service):
    usages.of(service.manager).step()
    assert program().read('usage list --group-by lease_id,day') == []


@pytest.mark.parametrize('options', [
    '[manager]\nproduct = {"name": "host", "resource_type": "physical:host"}'
])
def test_products_are_listed(program, night):
    [product] = program().read(f'product list {DAY}')
    assert (product['name'], product['free']) == ('host', 1)
    [product] = program().read('product list')
    assert product['free'] == 2
    lease = program().read(
        'lease book other --reservation product=host,amount=1 --duration 1h'
    )
    assert lease['reservations'][0]['product'] == 'host'


@pytest.mark.parametrize('options', [
    '[manager]\nproduct = {"name": "slot", "resource_type": "physical:host"}'
])
def test_a_lease_is_booked_by_a_sentence(program, client):
    openstack = program()
    done = openstack.run('book 2 hosts fri 9-17 --times Europe/Berlin -f json')
    lease = json.loads(done.stdout)
    start, end = (
        datetime.datetime.fromisoformat(lease[f'{name}_date'])
        .astimezone(zoneinfo.ZoneInfo('Europe/Berlin'))
        for name in ('start', 'end')
    )
    assert (start.weekday(), start.hour) == (4, 9)
    assert end == start.replace(hour=17)
    assert end.date() <= datetime.date.today() + datetime.timedelta(8)
    # The dates are shown before the lease is booked.
    assert f'start_date: {start:%Y-%m-%d} 09:00 CE' in done.stderr
    assert f'end_date: {start:%Y-%m-%d} 17:00 CE' in done.stderr
    assert lease['name'] == '2 hosts fri 9-17'
    [reservation] = lease['reservations']
    assert (reservation['min'], reservation['max']) == (2, 2)

    first, last = (f'{time:%Y-%m-%dT%H:%M%z}' for time in (start, end))
    soon = openstack.read(f'book slot for 1h from {first} asap {last}')
    assert soon['start_date'] == lease['end_date']
    assert soon['reservations'][0]['product'] == 'slot'
    small = openstack.read('book 3 instances of m1.small +1h for 2h --dry-run')
    assert small['reservations'][0]['amount'] == 3
    begins = datetime.datetime.fromisoformat(small['start_date'])
    ahead = begins - datetime.datetime.now(datetime.UTC)
    assert 3500 < ahead.total_seconds() <= 3600
    assert len(list(client.leases())) == 2


@tables.EVERY
@pytest.mark.parametrize(('sentence', 'reason'), [
    ('2 hosts tomorrow 9:00', 'until when?'),
    ('2 hosts soonish for 1h', 'soonish: no such time'),
    ('2 hosts tomorrow 9-25', 'tomorrow 25: no such time'),
    ('2 hosts tomorrow 9:75 for 1h', 'tomorrow 9:75: no such time'),
    ('2 hosts 9 for 1h', '9: no such time'),
    ('2 hosts 2030-01-01 to', 'until when?'),
    ('2 hosts tomorrow 17-9', 'end_date'),
    ('2', 'until when?'), ('2 instances of', '0 flavors are named'),
    ('2 unicorns for 1h', 'unicorns'), ('2 hosts for ever', 'duration'),
    ('0 hosts for 1h', 'min'),
])
def test_a_sentence_is_refused(program, client, sentence, reason):
    assert reason in program().refused(f'book {sentence}')
    assert list(client.leases()) == []


@tables.EVERY
def test_times_in_words_are_shown_as_dates(program, night):
    openstack = program()
    for words, date in ('2 jan 6:00', '01-02'), ('next friday at 6', '..-..'):
        done = openstack.run(f'lease change night --end-date "{words}"')
        assert re.match(rf'end_date: 20..-{date} 06:00 UTC\n', done.stderr)
    line = 'lease change night --end-date 2030-01-02T06:00'
    assert openstack.run(line).stderr == ''


def test_the_timeline_is_drawn(program, night):
    openstack = program()
    window = '--start-date "2030-01-01 12:00" --end-date "2030-01-02 12:00"'
    drawn = openstack.do(f'timeline show {window}').splitlines()
    assert {len(line) for line in drawn} == {80}
    [night] = [line for line in drawn if 'compute-1' in line]
    assert re.fullmatch(r'\| compute-1 \| night=+\] {31,32} \|', night)
    rows = openstack.read(f'timeline show {window}')
    assert rows[0]['bars'][0]['name'] == 'night'
    other = program('bob:p2').do(f'timeline show {window}')
    assert re.search(r'\| lease-+\]', other)


def test_a_mistake_is_explained(program):
    openstack = program()
    assert 'must be key=value,key=value, or JSON' in openstack.refused(
        'lease book night --reservation physical:host'
    )
    assert 'Mars is no time zone' in openstack.refused(
        'timeline show --times Mars'
    )
    assert openstack.refused('offer show none') == 'No Offer found for none\n'


def test_commands_are_completed():
    done = programs.run(['openstack', 'complete'], os.environ)
    assert "cmds_reservation_offer='accept delete list search set show'" in (
        done.stdout
    )
