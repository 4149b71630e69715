# SPDX-License-Identifier: Apache-2.0
"""Series of leases: booked at once, rolled on, and deleted."""

import dataclasses
import datetime
import functools
import random

import pytest
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.series import models
from blazar_sched.parts.series import pace
from blazar_sched.parts.series import series as rules
from blazar_sched.parts.series.exception import MaxSeries
from blazar_sched.parts.series.exception import SeriesNotFound
from blazar_sched.parts.series.manager import AllSeries
from blazar_sched.parts.series.series import Recurrence
from blazar_sched.service import loop
from blazar_sched.service import metrics
from blazar_sched.service.booking import idempotency
from blazar_sched.service.ledger import tx
from tests import looped
from tests.functional.manager.relocating import RelocatingManager
from tests.seeds import seeds
from tests.told import notified as notifications

HOUR, DAY = 3600, 86400
HORIZON = 10 * DAY
series_of = functools.partial(looped.of, kind=AllSeries)


@pytest.fixture
def conf(conf):
    conf.set_override('series_horizon', HORIZON, 'manager')
    return conf


@pytest.fixture
def world(world):
    """A cloud with two hosts of 8 VCPUs."""
    for name in 'ab':
        world.add_host(name)
    return world


def local(at):
    """Return a time of the world as a local time of UTC."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime(
        '%Y-%m-%dT%H:%M:%S'
    )


@pytest.fixture
def wanted(world, whole):
    """wanted(**values) -> the fields of a request for a daily series."""

    def wanted(*reservations, start=HOUR, **values):
        return {
            'name': 'course', 'project_id': 'project', 'user_id': 'user',
            'rrule': 'FREQ=DAILY', 'time_zone': 'UTC',
            'start': local(world.now + start), 'duration': 8 * HOUR,
            'reservations': list(reservations) or [whole()],
            'except_dates': [], 'if_no_room': 'refuse', **values,
        }

    return wanted


@pytest.fixture
def create(world, wanted):
    def create(*reservations, dry_run=False, key=None, **values):
        made = series_of(world.manager).create(
            wanted(*reservations, **values), key, dry_run
        )
        world.check()
        return made

    return create


def windows(world, made):
    """Return the windows of the leases, in seconds since the first look."""
    return [
        (lease.start, lease.end)
        for lease in world.ledger.run(models.leases, made['id'])
    ]


def missing(made):
    return [
        each['occurrence'] for each in made['leases']
        if each['lease_id'] is None
    ]


def book_all(world, whole, day):
    """Lease both hosts for some time of a day."""
    return world.create(
        whole(2, 2), start=day * DAY + 2 * HOUR, end=day * DAY + 3 * HOUR
    )


def test_reservations_are_checked_ahead_of_the_horizon(world, create, whole):
    wrong = {'resource_type': 'virtual:moon'}
    far = HORIZON + DAY
    with pytest.raises(exception.InvalidInput, match='virtual:moon'):
        create(wrong, start=far)
    made = create(start=far)
    with pytest.raises(exception.InvalidInput, match='virtual:moon'):
        series_of(world.manager).update(
            made['id'], None, {'reservations': [wrong]}
        )


def test_each_occurrence_up_to_the_horizon_is_a_lease(world, create):
    made = create()

    first = world.now + HOUR
    assert windows(world, made) == [
        (first + n * DAY, first + n * DAY + 8 * HOUR) for n in range(10)
    ]
    assert made['booked_until'] == first + 10 * DAY
    leases = world.ledger.leases()
    assert {lease.status for lease in leases} == {'PENDING'}
    assert sorted(lease.name for lease in leases) == [
        f'course {each["occurrence"]}' for each in made['leases']
    ]


def test_a_longer_series_takes_no_more_statements(create):
    """All other commits wait for each statement of a commit."""
    statements = []

    def note(connection, cursor, statement, *_):
        statements.append(statement)

    sa.event.listen(sa.Engine, 'before_cursor_execute', note)
    try:
        counts = []
        for days in (2, 9):
            statements.clear()
            create(rrule=f'FREQ=DAILY;COUNT={days}')
            # What is read before the commit keeps no other commit waiting.
            first = max(
                n for n, statement in enumerate(statements)
                if statement.startswith('UPDATE ledger')
            )
            counts.append(len(statements[first:]))
    finally:
        sa.event.remove(sa.Engine, 'before_cursor_execute', note)
    assert counts[0] == counts[1]


def test_a_series_takes_all_or_nothing(world, whole, create):
    book_all(world, whole, 4)
    before = world.ledger.leases()
    with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
        create()
    day = local(world.now + HOUR + 4 * DAY)[:10]
    assert f'occurrence {day}' in str(refusal.value)
    assert world.ledger.leases() == before
    assert world.ledger.run(models.list_) == []


def test_a_series_takes_what_has_room(world, whole, create):
    book_all(world, whole, 4)
    made = create(if_no_room='skip')
    assert len(windows(world, made)) == 9
    [name] = missing(made)
    assert name.startswith(local(world.now + HOUR + 4 * DAY)[:10])


def test_a_dry_run_shows_what_has_room(world, whole, create):
    book_all(world, whole, 4)
    leases, revision = world.ledger.leases(), world.ledger.replica.revision
    shown = create(dry_run=True, if_no_room='skip')
    assert len(missing(shown)) == 1
    assert len(shown['leases']) == 10
    assert world.ledger.leases() == leases
    assert world.ledger.replica.revision == revision
    assert world.ledger.run(models.list_) == []


def test_a_dry_run_is_answered_as_the_request(world, whole, create):
    book_all(world, whole, 4)
    refusals = []
    for dry_run in (True, False):
        with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
            create(dry_run=dry_run)
        refusals.append(str(refusal.value))
    assert refusals[0] == refusals[1]


def test_occurrences_leave_room_for_cleaning(world, whole, conf, create):
    """Each occurrence is placed beside those before it."""
    conf.set_override('cleaning_time', 60, 'manager')
    made = create(whole(), rrule='FREQ=HOURLY;COUNT=4', duration=HOUR)
    hosts = [
        host for lease in world.ledger.run(models.leases, made['id'])
        for _, host, _ in world.held(lease)
    ]
    assert hosts[0] == hosts[2] != hosts[1] == hosts[3]


def test_a_repeated_request_is_answered_however_late(world, create, wanted):
    asked = {'rrule': 'FREQ=DAILY;COUNT=3', 'start': HOUR}
    values = wanted(**asked)
    made = create(key='k', **asked)
    leases = world.ledger.leases()
    world.clock.step(500 * DAY)
    again = series_of(world.manager).create(values, 'k')
    assert again['id'] == made['id']
    assert {each.id for each in world.ledger.leases()} == {
        each.id for each in leases
    }


def test_a_repeated_request_is_answered_after_a_change(world, create, wanted):
    asked = {'rrule': 'FREQ=DAILY;COUNT=3', 'start': HOUR}
    values = wanted(**asked)
    made = create(key='k', **asked)
    series = series_of(world.manager)
    series.update(made['id'], 'project', {'name': 'other'})
    assert series.create(values, 'k')['name'] == 'other'
    # The values of now are those of another request.
    with pytest.raises(exception.IdempotencyKeyReused):
        series.create({**values, 'name': 'other'}, 'k')
    # A copy of the request may arrive after the series was deleted.
    series.delete(made['id'], 'project')
    with pytest.raises(exception.IdempotencyKeyReused, match='deleted'):
        series.create(values, 'k')
    assert world.ledger.leases() == []


def test_series_from_before_the_digest_was_stored(world, create, wanted):
    asked = {'rrule': 'FREQ=DAILY;COUNT=3', 'start': HOUR}
    made = create(key='k', **asked)
    known = world.ledger.run(models.get, made['id'])
    world.ledger.commit(
        lambda tx: tx.run(models.put, dataclasses.replace(known, digest=''))
    )
    again = series_of(world.manager).create(wanted(**asked), 'k')
    assert again['id'] == made['id']


@pytest.fixture
def forgetting(monkeypatch):
    """Place each occurrence without those before it, in one commit."""
    monkeypatch.setattr(tx.PlacingTx, 'expect', lambda tx, entities: None)
    monkeypatch.setattr(
        pace.Pace, 'parts', lambda self, count: iter([slice(0, count)])
    )


def test_control_without_the_placed_occurrences(
    world, whole, conf, create, forgetting
):
    conf.set_override('cleaning_time', 60, 'manager')
    made = create(whole(), rrule='FREQ=HOURLY;COUNT=4', duration=HOUR)
    hosts = {
        host for lease in world.ledger.run(models.leases, made['id'])
        for _, host, _ in world.held(lease)
    }
    assert len(hosts) == 1


def test_the_series_is_rolled_on(world, create):
    made = create()
    world.clock.now += 2 * DAY
    series_of(world.manager).step()
    assert len(windows(world, made)) == 12
    world.clock.now += DAY
    series_of(world.manager).step()
    series_of(world.manager).step()
    all_ = windows(world, made)
    assert len(all_) == len(set(all_)) == 13
    world.check()


def test_a_counted_series_ends(world, create):
    made = create(rrule='FREQ=DAILY;COUNT=12')
    assert len(windows(world, made)) == 10
    world.clock.now += 5 * DAY
    series_of(world.manager).step()
    assert len(windows(world, made)) == 12
    [series] = world.ledger.run(models.list_)
    assert series.booked_until == FOREVER
    world.clock.now += 50 * DAY
    series_of(world.manager).step()
    assert len(windows(world, made)) == 12


def test_an_occurrence_without_room_is_booked_once_there_is(
    world, whole, create, monkeypatch
):
    told = notifications(
        world.manager, monkeypatch, lambda kind, payload: (
            kind, payload['occurrences'],
        ) if kind.startswith('series.') else None,
    )
    made = create()
    other = book_all(world, whole, 11)
    world.clock.now += 3 * DAY
    series_of(world.manager).step()
    assert len(windows(world, made)) == 12
    shown = series_of(world.manager).get(made['id'], 'project')
    [name] = missing(shown)
    assert told == [('series.at_risk', [name])]
    series_of(world.manager).step()
    assert len(told) == 1

    world.leases.delete(other.id, None)
    series_of(world.manager).step()
    assert len(windows(world, made)) == 13
    assert missing(series_of(world.manager).get(made['id'], 'project')) == []


@pytest.fixture
def few_at_once(monkeypatch):
    """A commit books three reservations."""
    monkeypatch.setattr(rules, 'MAX_RESERVATIONS', 3)


class TestSlices:
    """A commit books a bounded number of reservations of a series."""

    @pytest.mark.parametrize('count', [1, 3])
    def test_later_steps_book_the_others(
        self, world, slots, create, few_at_once, count
    ):
        made = create(*(slots(1) for _ in range(count)))
        booked = [len(windows(world, made))]
        while series_of(world.manager).step() == loop.PAUSE:
            booked.append(len(windows(world, made)))
        booked.append(len(windows(world, made)))
        assert booked == [*range(3 // count, 10, 3 // count), 10]

    def test_later_steps_replace_the_others(self, world, create, few_at_once):
        """Each occurrence has a lease at any time."""
        made = create()
        while series_of(world.manager).step() == loop.PAUSE:
            pass
        names = [
            each['occurrence'] for each in
            series_of(world.manager).get(made['id'], 'project')['leases']
        ]
        shown = series_of(world.manager).update(
            made['id'], 'project', {'duration': 4 * HOUR}
        )
        replaced = []
        more = loop.PAUSE
        while more == loop.PAUSE:
            assert [e['occurrence'] for e in shown['leases']] == names
            replaced.append(sum(
                e['end'] - e['start'] == 4 * HOUR for e in shown['leases']
            ))
            more = series_of(world.manager).step()
            shown = series_of(world.manager).get(made['id'], 'project')
        assert replaced == [3, 6, 9]
        assert {e['end'] - e['start'] for e in shown['leases']} == {4 * HOUR}
        assert missing(shown) == []
        world.check()

    def test_occurrences_without_room_keep_no_later_one_waiting(
        self, world, whole, create, few_at_once
    ):
        for day in range(5):
            book_all(world, whole, day)
        made = create(if_no_room='skip')
        assert windows(world, made) == []
        while series_of(world.manager).step() == loop.PAUSE:
            pass
        assert len(windows(world, made)) == 5


def test_missing_occurrences_are_tried_again_at_a_pace(
    world, conf, whole, slots, create, monkeypatch
):
    """One of two managers tries them, less and less often, in no commit."""
    for day in range(10):
        book_all(world, whole, day)
    made = create(if_no_room='skip', rrule='FREQ=DAILY;COUNT=10')
    assert len(missing(made)) == 10
    another = world.another(conf)
    searched, commits = [], []
    real = AllSeries._searched

    def search(self, change, *args):
        searched.append((world.now, len(change.due.occurrences)))
        return real(self, change, *args)

    monkeypatch.setattr(AllSeries, '_searched', search)
    for manager in (world.manager, another):
        monkeypatch.setattr(
            manager.ledger, 'commit', lambda work: commits.append(work)
        )
        series_of(manager).step()
    before = world.now
    for _ in range(60):
        world.clock.now += 60
        # Something was committed.
        monkeypatch.setattr(world.ledger, 'newest', lambda: (None, world.now))
        series_of(world.manager).step()
        series_of(another).step()
    another.ledger.close()
    assert commits == []
    assert [at - before for at, _ in searched] == [
        0, 60, 120, 240, 480, 960, 1860, 2760,
    ]
    assert {count for _, count in searched} == {10}


def test_the_number_of_series_is_limited(world, conf, create):
    conf.set_override('max_series', 1, 'manager')
    create(rrule='FREQ=DAILY;COUNT=1', key='k')
    with pytest.raises(MaxSeries):
        create(rrule='FREQ=DAILY;COUNT=1')
    create(rrule='FREQ=DAILY;COUNT=1', key='k')
    create(rrule='FREQ=DAILY;COUNT=1', project_id='another')


@pytest.fixture
def notified(world, monkeypatch):
    """The notifications of series, each with the series' id."""
    return notifications(
        world.manager, monkeypatch, lambda kind, payload: (
            kind, payload['series_id'],
        ) if kind.startswith('series.') else None,
    )


def test_a_rule_that_fails_later_stops_no_other_series(
    world, create, slots, monkeypatch, caplog, notified
):
    """dateutil cannot evaluate the second rule for 2034."""
    monkeypatch.setattr(rules, '_check_part', lambda *_: None)
    ids = [f'{n}0000000-0000-4000-8000-000000000000' for n in range(3)]
    new_ids = iter(ids)
    monkeypatch.setattr(idempotency, 'new_id', lambda *_: next(new_ids))
    days = ','.join(
        f'{n}{day}' for n in (1, 2) for day in rules._WEEKDAYS.split('|')
    )
    hours = ','.join(map(str, range(8)))
    faulty = f'YEARLY;BYMONTH=1,2,3,4,5;BYDAY={days},38SU;BYHOUR={hours}'

    def pass_to(year, day):
        at = datetime.datetime(year, 5, day, tzinfo=datetime.UTC).timestamp()
        world.clock.now = int(at)
        series_of(world.manager).step()

    pass_to(2031, 3)
    for rule in ('WEEKLY', faulty, 'WEEKLY'):
        create(slots(1), rrule=f'FREQ={rule}', duration=600)
    pass_to(2032, 3)
    pass_to(2033, 3)
    assert notified == []
    # The first occurrence after those of this month is in 2034.
    for day in range(4, 12):
        pass_to(2033, day)
    assert notified == [('series.failed', ids[1])]
    assert f'series: {ids[1]} failed' in caplog.text
    assert world.manager.metrics.registry.get_sample_value(
        metrics.FAILING.name, {'loop': 'series'}
    ) == 1
    for id_ in ids[::2]:
        [*_, last] = world.ledger.run(models.leases, id_)
        assert last.start > world.now + HORIZON - 7 * DAY
    series_of(world.manager).delete(ids[1], None)
    pass_to(2033, 12)
    assert world.manager.metrics.registry.get_sample_value(
        metrics.FAILING.name, {'loop': 'series'}
    ) == 0


def test_a_deleted_lease_is_not_booked_again(world, create):
    made = create()
    world.leases.delete(made['leases'][5]['lease_id'], 'project')
    world.clock.now += DAY
    series_of(world.manager).step()
    series_of(world.manager).step()
    starts = [start for start, _ in windows(world, made)]
    assert made['leases'][5]['start'] not in starts
    assert len(starts) == 10


def test_a_changed_lease_stays_as_it_is(world, create):
    made = create()
    first = made['leases'][0]
    world.leases.update(
        first['lease_id'], 'project', {'end': first['end'] - HOUR}
    )
    world.clock.now += DAY // 2
    series_of(world.manager).step()
    shown = series_of(world.manager).get(made['id'], 'project')
    assert shown['leases'][0]['end'] == first['end'] - HOUR


def test_a_lease_that_loses_a_reservation_is_shown_once(world, create, slots):
    """The removed reservation is ended in a lease apart from the series."""
    made = create(slots(1), slots(2), start=60)
    world.run(61)
    lease = world.ledger.lease(made['leases'][0]['lease_id'])
    world.leases.update(lease.id, 'project', {
        'reservations': [{'id': lease.reservations[1].id, 'remove': True}],
    })
    shown = series_of(world.manager).get(made['id'], 'project')
    assert [each['lease_id'] for each in shown['leases']] == [
        each['lease_id'] for each in made['leases']
    ]
    world.check()


def test_the_leases_of_a_deleted_series_go(world, create, whole):
    made = create(start=60)
    world.run(61)
    with pytest.raises(SeriesNotFound):
        series_of(world.manager).delete(made['id'], 'another')
    series_of(world.manager).delete(made['id'], 'project')

    [lease] = world.ledger.leases()
    assert (lease.status, lease.series_id) == ('ACTIVE', None)
    assert world.ledger.run(models.list_) == []
    series_of(world.manager).step()
    assert len(world.ledger.leases()) == 1
    world.check()


def test_only_its_project_sees_a_series(world, create):
    made = create()
    operations = series_of(world.manager)
    with pytest.raises(SeriesNotFound):
        operations.get(made['id'], 'another')
    assert operations.list('another') == []
    assert [each['id'] for each in operations.list(None)] == [made['id']]


def displace(conf, whole):
    """Create a series that displaces servers; return the world.

    In each window one of two servers has to go to the host of the other.
    """
    world = RelocatingManager(conf)
    for node in 'ab':
        world.boot(node, vcpus=2)
    start = world.now + 600
    series_of(world.manager).create({
        'name': 'course', 'project_id': 'project', 'user_id': 'user',
        'rrule': 'FREQ=HOURLY;COUNT=4', 'time_zone': 'UTC',
        'start': local(start), 'duration': 600,
        'reservations': [whole(3, 3)], 'except_dates': ['2020-01-01'],
        'if_no_room': 'refuse',
    })
    return world


def test_occurrences_displace_servers_together(conf, whole):
    world = displace(conf, whole)
    world.check_promises()
    world.ledger.close()


def test_control_occurrences_displace_servers_each_for_itself(
    conf, whole, forgetting
):
    world = displace(conf, whole)
    with pytest.raises(AssertionError):
        world.check_promises()
    world.ledger.close()


@pytest.mark.parametrize('control', [False, True])
def test_two_managers_roll_on_at_once(
    world, conf, create, monkeypatch, caplog, control
):
    """The second commit finds nothing to book; the control is refused."""
    made = create(rrule='FREQ=DAILY')
    world.clock.now += 2 * DAY
    another = world.another(conf)
    stale = world.ledger.run(models.get, made['id'])
    commit = world.ledger.commit

    def overtaken(work):
        monkeypatch.setattr(world.ledger, 'commit', commit)
        series_of(another).step()
        if control:
            monkeypatch.setattr(models, 'get', lambda *_: stale)
            monkeypatch.setattr(models, 'booked', lambda *_: set())
        return commit(work)

    monkeypatch.setattr(world.ledger, 'commit', overtaken)
    series_of(world.manager).step()
    another.ledger.close()
    assert ('IntegrityError' in caplog.text) == control
    found = windows(world, made)
    assert len(set(found)) == len(found) == 12


def test_many_occurrences(world, conf, create):
    conf.set_override('series_horizon', 300 * DAY, 'manager')
    made = create(rrule='FREQ=DAILY;COUNT=200')
    assert len(windows(world, made)) == 200
    expected = Recurrence.parse({
        **made, 'time_zone': 'UTC', 'except_dates': [],
    }).occurrences(world.now, FOREVER)
    assert windows(world, made) == [
        (each.window.start, each.window.end) for each in expected
    ]


class TestUpdate:
    """A series is changed from an occurrence on."""

    @pytest.fixture
    def update(self, world):
        def update(made, dry_run=False, since=None, **values):
            shown = series_of(world.manager).update(
                made['id'], 'project', values, since, dry_run
            )
            world.check()
            return shown

        return update

    def test_only_changed_occurrences_are_booked_anew(
        self, world, create, update
    ):
        made = create()
        since = made['leases'][4]['occurrence']
        shown = update(made, since=since, duration=4 * HOUR)
        assert shown['leases'][:4] == made['leases'][:4]
        assert [
            (each['occurrence'], each['end'] - each['start'])
            for each in shown['leases'][4:]
        ] == [(each['occurrence'], 4 * HOUR) for each in made['leases'][4:]]
        assert len(world.ledger.leases()) == 10

    @pytest.mark.parametrize('names', [False, True])
    def test_refusal_says_what_is_in_the_way(
        self, world, whole, create, names
    ):
        """The lease that the change would replace is not in the way."""
        made = create()
        at = 4 * DAY + 2 * HOUR
        other = world.create(start=at, end=at + HOUR, name='other')
        with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
            series_of(world.manager).update(
                made['id'], 'project', {'reservations': [whole(2, 2)]},
                names=names,
            )
        [found] = refusal.value.offer['in_the_way']
        assert (found['lease_id'], found['hosts']) == (other.id, 1)
        assert (found['host'] is not None) == names
        assert series_of(world.manager).get(made['id'], None) == made

    def test_flavor_that_the_ledger_lacks_is_copied_from_nova(
        self, world, create
    ):
        made = create(rrule='FREQ=DAILY;COUNT=2')
        world.nova.known_flavors = [Flavor('new', 'new', 1, 512, 1)]
        shown = world.manager.endpoint.update_series(
            {}, series_id=made['id'], project_id='project', values={
                'reservations': [{
                    'resource_type': 'flavor:instance', 'flavor_id': 'new',
                    'amount': 2,
                }],
            },
        )
        assert missing(shown) == []
        assert {
            lease.reservations[0].demand.flavor.id
            for lease in world.ledger.leases()
        } == {'new'}

    def test_leases_as_the_rule_says_stay(self, world, create, update):
        made = create(rrule='FREQ=DAILY;COUNT=4')
        first, altered, skipped, last = made['leases']
        world.manager.leases.update(
            altered['lease_id'], 'project', {'end': altered['end'] + HOUR}
        )
        world.manager.leases.delete(skipped['lease_id'], 'project')
        renamed = update(made, name='other')
        assert renamed['leases'][1]['end'] == altered['end'] + HOUR
        shown = update(
            made, rrule='FREQ=DAILY;COUNT=6',
            except_dates=[skipped['occurrence']],
        )
        assert shown['name'] == 'other'
        assert len(shown['leases']) == 5
        assert [shown['leases'][n]['lease_id'] for n in (0, 2)] == [
            first['lease_id'], last['lease_id'],
        ]
        # The lease that was altered is again as the rule says.
        assert shown['leases'][1]['end'] == altered['end']
        assert skipped['occurrence'] not in {
            each['occurrence'] for each in shown['leases']
        }

    def test_the_leases_give_their_room_to_those_in_their_place(
        self, world, whole, create, update
    ):
        made = create(whole(2, 2))
        shown = update(made, duration=9 * HOUR)
        assert len(windows(world, shown)) == 10
        with pytest.raises(exception.NotEnoughHostsAvailable):
            update(made, reservations=[whole(3, 3)])
        assert series_of(world.manager).get(made['id'], 'project') == shown

    def test_a_dry_run_changes_nothing(self, world, create, update):
        made = create()
        before = world.ledger.leases(), world.ledger.replica.revision
        shown = update(made, dry_run=True, duration=4 * HOUR)
        assert {e['end'] - e['start'] for e in shown['leases']} == {4 * HOUR}
        now = world.ledger.leases(), world.ledger.replica.revision
        assert now == before
        assert series_of(world.manager).get(made['id'], 'project') == made

    def test_occurrence_that_waits_for_room_goes_on_waiting(
        self, world, whole, create, update
    ):
        book_all(world, whole, 4)
        made = create(if_no_room='skip')
        [name] = missing(made)
        shown = update(made, rrule='FREQ=DAILY;COUNT=9', if_no_room='refuse')
        assert missing(shown) == [name]
        assert len(shown['leases']) == 9

    def test_a_series_can_be_ended(self, world, create, update):
        made = create()
        until = made['leases'][2]['occurrence'][:10].replace('-', '')
        shown = update(made, rrule=f'FREQ=DAILY;UNTIL={until}')
        assert shown['leases'] == made['leases'][:3]
        assert shown['booked_until'] == FOREVER
        assert len(world.ledger.leases()) == 3

    @pytest.mark.parametrize('values', [
        {'start': '9999-12-31T23:59:00'},
        {'rrule': 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30'},
        {'rrule': 'FREQ=DAILY;UNTIL=20200101'},
    ])
    @pytest.mark.parametrize('dry_run', [False, True])
    def test_a_change_leaves_an_occurrence(
        self, world, create, update, values, dry_run
    ):
        made = create(rrule='FREQ=DAILY;COUNT=3')
        with pytest.raises(exception.InvalidInput) as refusal:
            update(made, dry_run, **values)
        assert refusal.value.field == 'rrule'
        assert series_of(world.manager).get(made['id'], 'project') == made

    def test_all_occurrences_may_be_excepted(self, world, create, update):
        made = create(rrule='FREQ=DAILY;COUNT=3')
        names = [each['occurrence'] for each in made['leases']]
        assert update(made, except_dates=names)['leases'] == []

    def test_a_lease_that_has_started_stays(self, world, create, update):
        made = create()
        world.run(HOUR + 1)
        started = made['leases'][0]
        shown = update(made, duration=2 * HOUR)
        assert shown['leases'][0]['lease_id'] == started['lease_id']
        assert shown['leases'][0]['end'] == started['end']
        assert shown['leases'][0]['status'] == 'ACTIVE'
        assert {e['end'] - e['start'] for e in shown['leases'][1:]} == {
            2 * HOUR
        }

    @pytest.mark.parametrize('moved, to, wait, since, stays', [
        (1, 2 * DAY + 12 * HOUR, 0, 2, True),
        (2, DAY + 12 * HOUR, 0, 2, False),
        (1, 60, 61, None, True),
        (0, 2 * DAY + 12 * HOUR, 2 * HOUR, None, True),
    ])
    def test_a_change_concerns_occurrences_wherever_their_leases_are(
        self, world, create, update, moved, to, wait, since, stays
    ):
        made = create(rrule='FREQ=DAILY;COUNT=4', duration=HOUR)
        names = [each['occurrence'] for each in made['leases']]
        id_ = made['leases'][moved]['lease_id']
        start = world.now + to
        world.leases.update(id_, 'project', {'start': start, 'duration': HOUR})
        world.run(wait)
        shown = update(
            made, since=since and names[since], duration=2 * HOUR
        )['leases']
        assert sorted(each['occurrence'] for each in shown) == names
        [found] = [e for e in shown if e['occurrence'] == names[moved]]
        assert (found['lease_id'] == id_) == stays
        length = HOUR if stays else 2 * HOUR
        assert found['end'] - found['start'] == length
        assert (found['start'] == start) == stays

    @pytest.mark.parametrize('changes', [
        [{'min': 2, 'max': 2}],
        [{'on_end': 'keep'}],
        [{'projects': ['other']}],
        [{'remove': True}, {
            'resource_type': 'virtual:instance', 'vcpus': 1, 'memory_mb': 1,
            'disk_gb': 1, 'amount': 1, 'affinity': None,
        }],
    ])
    def test_a_lease_that_was_changed_on_its_own_is_replaced(
        self, world, create, update, changes
    ):
        made = create(rrule='FREQ=DAILY;COUNT=3')
        old = [each['lease_id'] for each in made['leases']]
        [known] = world.ledger.lease(old[1]).reservations
        changes[0]['id'] = known.id
        world.leases.update(old[1], 'project', {'reservations': changes})
        excepted = made['leases'][2]['occurrence']
        shown = update(made, except_dates=[excepted])['leases']
        first, second = (each['lease_id'] for each in shown)
        assert (first == old[0], second == old[1]) == (True, False)
        [found] = world.ledger.lease(second).reservations
        assert (found.demand, found.on_end, found.projects) == (
            known.demand, known.on_end, known.projects
        )

    def test_a_series_of_more_than_a_year_can_be_changed(
        self, world, create, update
    ):
        made = create()
        world.clock.step(800 * DAY)
        world.run()
        assert update(made, duration=HOUR)['duration'] == HOUR

    @pytest.mark.parametrize('seed', seeds(20, few=3))
    def test_leases_of_a_series_follow_random_changes_of_the_rule(
        self, world, create, update, seed
    ):
        """The leases are those of the old rule before a time, then the new."""
        luck = random.Random(seed)
        now = world.now
        rules = ['FREQ=DAILY', 'FREQ=DAILY;INTERVAL=2', 'FREQ=DAILY;COUNT=4',
                 'FREQ=WEEKLY;BYDAY=MO,WE,FR', 'FREQ=HOURLY;INTERVAL=12']
        made = create(
            rrule=luck.choice(rules), duration=luck.choice([1, 8]) * HOUR
        )
        for _ in range(6):
            at = now + luck.randrange(8 * DAY)
            values = luck.choice([
                {'rrule': luck.choice(rules)},
                {'duration': luck.choice([1, 4, 8]) * HOUR},
                {'start': local(now + luck.choice([1, 3]) * HOUR)},
                {'except_dates': [local(at)[:10]]},
            ])
            before = [
                window for window in windows(world, made) if window[0] < at
            ]
            made = update(made, since=local(at), **values)
            after = [
                (each.window.start, each.window.end)
                for each in Recurrence.parse(made).occurrences(
                    at, now + HORIZON
                )
            ]
            assert windows(world, made) == before + after

    @pytest.mark.parametrize(
        'values, field',
        [
            ({'rrule': 'FREQ=NEVER'}, 'rrule'),
            ({'duration': 25 * HOUR}, 'duration'),
            ({'time_zone': 'Europe/Nowhere'}, 'time_zone'),
            ({'since': 'tomorrow'}, 'from'),
            ({'since': '2060-01-01'}, 'from'),
        ],
    )
    def test_invalid_change_of_a_series_is_refused_by_field(
        self, world, create, update, values, field
    ):
        made = create()
        with pytest.raises(exception.InvalidInput) as refusal:
            update(made, **values)
        assert refusal.value.field == field
        assert series_of(world.manager).get(made['id'], 'project') == made
