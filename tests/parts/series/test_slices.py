# SPDX-License-Identifier: Apache-2.0
"""Series are booked, changed and deleted in slices that others can follow."""

import contextlib
import dataclasses
import datetime
import functools

import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.series import models
from blazar_sched.parts.series import pace
from blazar_sched.parts.series import series as rules
from blazar_sched.parts.series.exception import SeriesNotFound
from blazar_sched.parts.series.manager import AllSeries
from blazar_sched.service import faults
from blazar_sched.service.ledger import tx
from tests import looped

HOUR, DAY = 3600, 86400
COUNT = 20
# The reservations of a commit, in these tests.
MOST = 3
series_of = functools.partial(looped.of, kind=AllSeries)


@pytest.fixture
def conf(conf):
    conf.set_override('series_horizon', 30 * DAY, 'manager')
    return conf


@pytest.fixture
def world(world, monkeypatch):
    monkeypatch.setattr(rules, 'MAX_IN_COMMIT', MOST)
    # However slow the machine is.
    monkeypatch.setattr(pace, 'SECONDS', 60)
    world.add_host('a')
    return world


@pytest.fixture
def create(world, whole):
    def create(key=None, start=HOUR, **values):
        at = datetime.datetime.fromtimestamp(world.now + start, datetime.UTC)
        return series_of(world.manager).create({
            'name': 'course', 'project_id': 'project', 'user_id': 'user',
            'rrule': f'FREQ=HOURLY;COUNT={COUNT}', 'time_zone': 'UTC',
            'start': at.strftime('%Y-%m-%dT%H:%M:%S'), 'duration': 600,
            'reservations': [whole()], 'except_dates': [],
            'if_no_room': 'refuse', **values,
        }, key)

    return create


@pytest.fixture
def sizes(world, monkeypatch):
    """The number of leases that each commit has added and deleted."""
    sizes = []
    real = world.ledger.commit

    def commit(work, dry_run=False):
        def counted(attempt):
            before = {lease.id for lease in attempt.leases()}
            result = work(attempt)
            sizes.append(len(before ^ {x.id for x in attempt.leases()}))
            return result

        return real(counted, dry_run)

    monkeypatch.setattr(world.ledger, 'commit', commit)
    return sizes


def windows(world):
    return [
        (lease.start - world.now, lease.end - lease.start)
        for lease in sorted(world.ledger.leases(), key=lambda x: x.start)
    ]


def hourly(duration, start=HOUR):
    return [(start + n * HOUR, duration) for n in range(COUNT)]


def settle(world, conf):
    """Let another manager take over."""
    another = world.another(conf)
    for _ in range(3):
        world.clock.now += 60
        series_of(another).step()
    another.ledger.close()


class TestSizes:
    def test_no_commit_books_or_deletes_more_than_a_slice(
        self, world, create, sizes
    ):
        made = create()
        assert windows(world) == hourly(600)
        assert max(sizes) == MOST
        sizes.clear()
        shown = series_of(world.manager).update(
            made['id'], 'project', {'duration': 1200}
        )
        assert windows(world) == hourly(1200)
        assert len(shown['leases']) == COUNT
        assert max(sizes) <= MOST
        sizes.clear()
        series_of(world.manager).delete(made['id'], 'project')
        assert windows(world) == []
        assert max(sizes) == MOST

    def test_a_rule_with_few_occurrences_takes_no_longer_commits(
        self, world, create, sizes
    ):
        """There is one new lease for all that go."""
        made = create()
        sizes.clear()
        series_of(world.manager).update(
            made['id'], 'project', {'rrule': 'FREQ=WEEKLY;COUNT=1'}
        )
        assert windows(world) == [(HOUR, 600)]
        assert max(sizes) <= MOST

    def test_leases_of_many_reservations(self, world, create, sizes, slots):
        made = create(reservations=[slots(1, 1), slots(1, 1)])
        assert max(sizes) == 1
        sizes.clear()
        series_of(world.manager).delete(made['id'], 'project')
        assert max(sizes) == 1

    def test_a_commit_does_what_fits_in_the_time_of_a_commit(
        self, world, create, sizes, monkeypatch
    ):
        monkeypatch.setattr(pace, 'SECONDS', 1e-5)
        series = create()
        assert sizes == [1] * COUNT
        sizes.clear()
        series_of(world.manager).delete(series['id'], None)
        assert sizes == [1] * COUNT

    def test_missing_occurrences_are_booked_in_slices(
        self, world, create, sizes, whole
    ):
        taken = world.create(whole(), start=60, end=30 * HOUR)
        create(if_no_room='skip')
        series_of(world.manager).step()
        world.manager.leases.delete(taken.id, 'project')
        sizes.clear()
        world.clock.now += 900
        series_of(world.manager).step()
        assert len(windows(world)) == COUNT
        assert max(sizes) == MOST

    def test_a_dry_run_makes_no_commit(self, world, create, sizes):
        made = create()
        sizes.clear()
        shown = series_of(world.manager).update(
            made['id'], 'project', {'duration': 1200}, dry_run=True
        )
        assert sizes == []
        assert {x['end'] - x['start'] for x in shown['leases']} == {1200}
        assert windows(world) == hourly(600)


class TestRefusal:
    """A change that lacks room in a later slice changes nothing."""

    @pytest.fixture
    def change(self, world, create, whole):
        made = create()
        late = 15 * HOUR
        world.create(whole(), start=late + 1000, end=late + 1200)
        before = windows(world)

        def change():
            with pytest.raises(exception.NotEnoughHostsAvailable):
                series_of(world.manager).update(
                    made['id'], 'project', {'duration': 1200}
                )
            assert windows(world) == before

        return change

    def test_nothing_is_changed(self, change):
        change()

    def test_control_without_the_search(self, change, monkeypatch):
        real = AllSeries._searched
        monkeypatch.setattr(
            AllSeries, '_searched',
            lambda self, change, *rest: real(self, dataclasses.replace(
                change, due=dataclasses.replace(change.due, occurrences=[])
            ), *rest),
        )
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            change()

    def test_a_limit_that_a_later_slice_exceeds(
        self, world, conf, create, limit
    ):
        limit(enabled_filters=['MaxLeasesFilter'], max_leases_per_project=15)
        world.begin(conf)
        with pytest.raises(exception.MaxLeases):
            create()
        assert windows(world) == []
        assert world.ledger.run(models.list_) == []

    def test_an_occurrence_whose_room_is_taken_meanwhile_waits(
        self, world, create, whole
    ):
        made = create()
        late = 15 * HOUR
        passed = []

        def take(name):
            if name == 'series:slice' and not passed:
                passed.append(name)
                world.create(whole(), start=late + 1000, end=late + 1200)

        faults.arm(take)
        try:
            shown = series_of(world.manager).update(
                made['id'], 'project', {'duration': 1200}
            )
        finally:
            faults.arm(None)
        [waiting] = [x for x in shown['leases'] if x['lease_id'] is None]
        assert waiting['start'] - world.now == late
        assert len(windows(world)) == COUNT
        world.check()

    def test_leases_move_within_the_room_of_the_series(self, world, create):
        """Each occurrence takes the room of the lease that is next."""
        made = create(duration=HOUR)
        start = datetime.datetime.fromisoformat(made['start'])
        later = start + datetime.timedelta(minutes=30)
        shown = series_of(world.manager).update(
            made['id'], 'project', {'start': later.isoformat()}
        )
        assert windows(world) == hourly(HOUR, HOUR + 1800)
        assert {x['status'] for x in shown['leases']} == {'PENDING'}
        world.check()


class TestKilled:
    """A manager is killed after each slice, and another one goes on."""

    @pytest.mark.parametrize('after', range(6))
    def test_while_a_series_is_booked(
        self, world, conf, create, killed, after
    ):
        with killed('series:slice', after):
            create('key')
        assert 0 < len(windows(world)) < COUNT
        settle(world, conf)
        world.clock.now -= 180
        assert windows(world) == hourly(600)
        # The repeated request is answered with the same series.
        assert len(create('key')['leases']) == COUNT
        world.check()

    @pytest.mark.parametrize('after', range(6))
    @pytest.mark.parametrize('values', [
        {'duration': 1200}, {'rrule': f'FREQ=HOURLY;COUNT={COUNT - 5}'},
    ])
    def test_while_a_series_is_changed(
        self, world, conf, create, killed, after, values
    ):
        made = create(duration=900, if_no_room='skip')
        before = windows(world)
        with (
            contextlib.suppress(pytest.fail.Exception),
            killed('series:slice', after),
        ):
            series_of(world.manager).update(made['id'], 'project', values)
        assert windows(world) != before
        settle(world, conf)
        world.clock.now -= 180
        count = COUNT - 5 if 'rrule' in values else COUNT
        wanted = hourly(values.get('duration', 900))[:count]
        assert windows(world) == wanted
        world.check()

    @pytest.mark.parametrize('repeated', [False, True])
    @pytest.mark.parametrize('after', range(6))
    def test_while_a_series_is_deleted(
        self, world, conf, create, killed, after, repeated
    ):
        made = create('key')
        with killed('series:deleting', after):
            series_of(world.manager).delete(made['id'], 'project')
        self.check_going(world, create, made)
        if repeated:
            series_of(world.manager).delete(made['id'], 'project')
        else:
            settle(world, conf)
        assert windows(world) == []
        assert world.ledger.run(models.deleted) == []
        with pytest.raises(SeriesNotFound):
            series_of(world.manager).delete(made['id'], 'project')
        world.check()

    def check_going(self, world, create, made):
        """A series that is being deleted is gone for all who read."""
        operations = series_of(world.manager)
        assert operations.list(None) == []
        with pytest.raises(SeriesNotFound):
            operations.get(made['id'], 'project')
        with pytest.raises(SeriesNotFound):
            operations.update(made['id'], 'project', {'duration': 1200})
        with pytest.raises(SeriesNotFound):
            operations.delete(made['id'], 'another')
        with pytest.raises(exception.IdempotencyKeyReused):
            create('key')

    def test_control_without_the_mark_the_series_is_booked_again(
        self, world, conf, create, killed, monkeypatch
    ):
        made = create()
        monkeypatch.setattr(models, 'put', lambda *_: None)
        monkeypatch.setattr(tx.Tx, 'put_key', lambda *_: None)
        with killed('series:deleting', 2):
            series_of(world.manager).delete(made['id'], 'project')
        settle(world, conf)
        assert windows(world) != []


def test_a_series_is_deleted_while_it_is_changed(world, create):
    made = create()

    def delete(name):
        if name == 'series:slice':
            faults.arm(None)
            series_of(world.manager).delete(made['id'], 'project')

    faults.arm(delete)
    try:
        series_of(world.manager).update(
            made['id'], 'project', {'duration': 1200}
        )
    finally:
        faults.arm(None)
    assert windows(world) == []
    world.check()


def test_the_last_of_two_changes_remains(world, conf, create):
    made = create()

    def change(name):
        if name == 'series:slice':
            faults.arm(None)
            series_of(world.manager).update(
                made['id'], 'project', {'duration': 1800}
            )

    faults.arm(change)
    try:
        series_of(world.manager).update(
            made['id'], 'project', {'duration': 1200}
        )
    finally:
        faults.arm(None)
    assert windows(world) == hourly(1800)
    world.check()
