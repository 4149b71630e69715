# SPDX-License-Identifier: Apache-2.0
"""The calendars of projects, as programs read them at their links."""

from concurrent import futures
import datetime
import json
import logging
import threading

import icalendar
import oslo_messaging
import pytest
import vobject

from blazar_sched.domain import window
from blazar_sched.parts.calendar import api as links
from blazar_sched.parts.calendar import manager
from blazar_sched.parts.calendar import models
from blazar_sched.parts.offer.manager import Offers
from blazar_sched.service.api import deploy
from blazar_sched.service.ledger import reservation
from tests import loopback

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ALICE = {**V1_1, 'X-Auth-Token': 'alice:project'}
BOB = {**V1_1, 'X-Auth-Token': 'bob:other'}


class Near:
    """A manager without its loops: the tests say which events are done."""

    def __init__(self, manager):
        self._endpoint = manager.endpoint

    def call(self, ctxt, method, **kwargs):
        try:
            answer = getattr(self._endpoint, method)(ctxt, **kwargs)
        except oslo_messaging.ExpectedException as e:
            raise e.exc_info[1] from e
        return json.loads(json.dumps(answer))

    def check(self):
        pass


@pytest.fixture
def api(conf, world):
    conf.set_override('auth_strategy', 'noauth', 'api')
    world.add_host('a')
    return loopback.client(deploy.deploy(conf, Near(world.manager)))


@pytest.fixture
def make(api):
    """make(name, headers) -> a calendar with its link."""

    def make(name='team', headers=ALICE):
        answer = api.post(
            '/v1/calendars', headers=headers, json={'name': name}
        )
        assert answer.status_code == 201, answer.text
        return answer.json['calendar']

    return make


@pytest.fixture
def read(api):
    """read(calendar, **headers) -> the response at the link, with no token."""

    def read(calendar, method='GET', **headers):
        path = calendar['url'].removeprefix('http://localhost')
        return api.request(
            method, path, headers={'X-Auth-Token': '', **headers}
        )

    return read


def utc(at):
    return datetime.datetime.fromtimestamp(at, datetime.UTC)


def by_icalendar(text):
    return {
        str(e['UID']): (
            str(e['SUMMARY']), e.decoded('DTSTART'), e.decoded('DTEND'),
            e['SEQUENCE'], str(e['STATUS']),
        )
        for e in icalendar.Calendar.from_ical(text).walk('VEVENT')
    }


def by_vobject(text):
    return {
        e.uid.value: (
            e.summary.value, e.dtstart.value, e.dtend.value,
            int(e.sequence.value), e.status.value,
        )
        for e in vobject.readOne(text).contents.get('vevent', ())
    }


@pytest.mark.row('F90')
@pytest.mark.parametrize('parsed', [by_icalendar, by_vobject])
def test_a_rename_a_move_and_a_cancellation(world, make, read, slots, parsed):
    calendar = make()
    lease = world.create(slots(), start='now', end=1000, name='night, run')
    world.run()
    reserved = lease.reservations[0].id
    world.add_server('a', 'project', reservation_id=reserved)

    def event():
        answer = read(calendar)
        assert answer.headers['content-type'] == 'text/calendar; charset=utf-8'
        [(id_, found)] = parsed(answer.text).items()
        assert id_ == lease.id
        return found

    world.leases.update(lease.id, None, {'name': 'night'})
    same_second = event()
    world.leases.update(lease.id, None, {'name': 'night, run'})
    first = event()
    assert first[:3] == ('night, run', utc(lease.start), utc(lease.end))
    assert first[4] == 'CONFIRMED'
    world.clock.now += 10
    world.leases.update(lease.id, None, {'name': 'Türme; \\ A'})
    renamed = event()
    assert renamed[0] == 'Türme; \\ A'
    world.clock.now += 10
    world.leases.update(lease.id, None, {'end': lease.end + 500})
    moved = event()
    assert moved[2] == utc(lease.end + 500)
    world.clock.now += 10
    world.nova.slowness = 10_000
    world.leases.delete(lease.id, None)
    cancelled = event()
    assert cancelled[4] == 'CANCELLED'
    numbers = [each[3] for each in (
        same_second, first, renamed, moved, cancelled
    )]
    assert numbers == sorted(set(numbers))
    world.nova.slowness = 0
    for _ in range(3):
        world.run(100)
    assert parsed(read(calendar).text) == {}


def test_the_owner_sees_the_link_once_and_revokes_it(
    api, make, read, world, caplog
):
    caplog.set_level(logging.DEBUG)
    calendar = make()
    assert read(calendar).status_code == 200
    token = calendar['url'].rpartition('/')[2].removesuffix('.ics')
    assert len(token) == 43
    assert token not in repr(world.ledger.run(models.list_, None))
    listed = api.get('/v1/calendars', headers=ALICE)
    [found] = listed.json['calendars']
    assert found == {**calendar, 'url': None}
    path = f'/v1/calendars/{calendar["id"]}'
    for method in 'GET', 'DELETE':
        answer = api.request(method, path, headers=BOB)
        assert answer.json['error_name'] == 'CalendarNotFound'
    assert api.delete(path, headers=ALICE).status_code == 204
    gone = read(calendar)
    unknown = read({'url': '/v1/calendars/unknown.ics'})
    assert (gone.status_code, gone.json) == (404, unknown.json)
    assert read(calendar, 'POST').status_code == 405
    assert 'GET' in caplog.text
    assert token not in caplog.text


def test_each_project_has_a_calendar_of_its_own(make, read, world):
    mine, theirs = make(), make(headers=BOB)
    lease = world.create()
    assert list(by_icalendar(read(mine).text)) == [lease.id]
    assert by_icalendar(read(theirs).text) == {}


def test_what_is_unchanged_is_not_sent_again(make, read, world):
    calendar = make()
    lease = world.create()
    first = read(calendar)
    tag = first.headers['etag']
    assert first.headers['cache-control'] == 'private, no-cache'
    world.clock.now += 10
    again = read(calendar, **{'If-None-Match': tag})
    assert (again.status_code, again.text) == (304, '')
    assert read(calendar, **{'If-None-Match': '*'}).status_code == 304
    world.leases.update(lease.id, None, {'name': 'other'})
    changed = read(calendar, **{'If-None-Match': tag})
    assert (changed.status_code, 'other' in changed.text) == (200, True)


def test_what_is_unchanged_is_not_made_again(make, read, world, monkeypatch):
    """Nor are the reservations of the leases read."""
    calendar = make()
    lease = world.create()
    tag = read(calendar).headers['etag']
    made = []
    content = links.content
    monkeypatch.setattr(
        links, 'content', lambda *args: made.append(args) or content(*args)
    )
    monkeypatch.setattr(reservation, 'from_row', None)
    assert read(calendar, **{'If-None-Match': tag}).status_code == 304
    # A change of another lease changes the ledger, and not the calendar.
    monkeypatch.undo()
    world.create(project_id='other', start=300, end=400)
    monkeypatch.setattr(links, 'content', lambda *args: made.append(args))
    assert read(calendar, **{'If-None-Match': tag}).status_code == 304
    assert made == []
    monkeypatch.undo()
    world.leases.update(lease.id, None, {'end': world.now + 250})
    assert read(calendar, **{'If-None-Match': tag}).status_code == 200


def test_one_link_does_not_keep_the_turns_of_others(
    make, read, monkeypatch, conf, world
):
    """Half of the reads that may run or wait are of one link."""
    mine, theirs = make(), make(headers=BOB)
    go_on, running = threading.Event(), threading.Semaphore(0)
    content = links.content

    def slow(*args):
        running.release()
        assert go_on.wait(30)
        return content(*args)

    monkeypatch.setattr(links, 'content', slow)
    most = max(1, conf.api.threads // 4)
    with futures.ThreadPoolExecutor(2 * most) as pool:
        answers = [pool.submit(read, mine) for _ in range(most)]
        ended = futures.as_completed(answers, timeout=30)
        refused = [
            next(ended).result() for _ in range(most - max(1, most // 2))
        ]
        assert {each.status_code for each in refused} <= {429}
        assert all(each.headers['retry-after'] for each in refused)
        assert running.acquire(timeout=30)
        other = pool.submit(read, theirs)
        go_on.set()
        assert other.result(30).status_code == 200


def test_the_window_and_the_number_are_bounded(make, read, world, monkeypatch):
    day = 86400
    calendar = make()
    for name, start in ('far', 367), ('second', 300), ('third', 365):
        world.create(name=name, start=start * day, end=start * day + 100)
    world.create(name='first', start='now', end=100)
    world.run()
    world.run(100)
    assert names(read(calendar)) == ['first', 'second', 'third']
    monkeypatch.setattr(manager, 'MAX_LEASES', 2)
    assert names(read(calendar)) == ['first', 'second']
    world.clock.now += 32 * day
    assert names(read(calendar)) == ['second', 'third']


def names(answer):
    return [each[0] for each in by_icalendar(answer.text).values()]


def test_a_lease_without_an_end(make, read, world):
    calendar = make()
    world.create(end=window.FOREVER)
    text = read(calendar).text
    [event] = icalendar.Calendar.from_ical(text).walk('VEVENT')
    # Programs show an event that has no end at its start alone.
    year = datetime.timedelta(365)
    assert event.decoded('DTEND') > datetime.datetime.now(datetime.UTC) + year


def test_the_name_of_a_calendar_is_text(make, read, world):
    text = read(make('a, b; c')).text
    assert 'X-WR-CALNAME:a\\, b\\; c\r\n' in text


def test_a_held_offer_is_no_event(make, read, world):
    calendar = make()
    Offers(world.manager).hold({
        'project_id': 'project', 'user_id': 'user', 'start': 'now',
        'latest_start': None, 'latest_end': None, 'duration': 100,
        'max_duration': None, 'align': None, 'best': 'earliest', 'limit': 1,
        'distance': 0,
        'alternatives': [[{
            'resource_type': 'physical:host', 'min': 1, 'max': 1,
        }]],
    }, 60)
    assert by_icalendar(read(calendar).text) == {}


@pytest.mark.parametrize('body, field', [
    ({}, 'name'), ({'name': ''}, 'name'), ({'name': 5}, 'name'),
    ({'name': 'a\nb'}, 'name'), ({'name': 'x' * 256}, 'name'),
    ({'name': 'team', 'digest': 'mine'}, 'digest'), ([], None),
])
def test_a_wrong_body_is_refused(api, body, field):
    answer = api.post('/v1/calendars', headers=ALICE, json=body)
    assert answer.status_code == 400
    assert field is None or field in answer.json['error_message']
    listed = api.get('/v1/calendars', headers=ALICE)
    assert listed.json == {'calendars': []}


def test_a_project_has_few_calendars(api, make):
    for _ in range(models.MAX_CALENDARS):
        make()
    answer = api.post('/v1/calendars', headers=ALICE, json={'name': 'more'})
    assert answer.json['error_name'] == 'MaxCalendars'
    make(headers=BOB)


@pytest.mark.parametrize('path', [
    '/v1/calendars/.ics', '/v1/calendars/a/b.ics', '/v1/calendars/%00.ics',
    '/v1/calendars/%F0%9F%98%80.ics', f'/v1/calendars/{"x" * 9000}.ics',
])
def test_an_odd_link_is_not_there(api, path):
    assert api.get(path, headers=BOB).status_code in (404, 400)


def test_a_name_cannot_forge_lines(make, read, world):
    calendar = make()
    lease = world.create(name='a\r\nEND:VEVENT\r\n\x00\x1b\u2028b')
    text = read(calendar).text
    assert list(by_icalendar(text)) == [lease.id]
    assert text.count('END:VEVENT') == 2
    assert text.count('\r\nEND:VEVENT') == 1
