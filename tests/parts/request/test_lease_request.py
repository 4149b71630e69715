# SPDX-License-Identifier: Apache-2.0
"""Lease requests: their order, how they are booked, and how they end."""

import itertools
import json
import random
import threading

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.parts.limit.exception import MaxLeases
from blazar_sched.parts.report.usage import DAY
from blazar_sched.parts.report.usage import HOST
from blazar_sched.parts.request import manager
from blazar_sched.parts.request import models
from blazar_sched.parts.request.exception import LeaseRequestNotFound
from blazar_sched.parts.request.lease_request import PRIORITIES
from blazar_sched.parts.request.lease_request import starts_outside
from blazar_sched.parts.request.manager import MAX_MOVED_LEASES
from blazar_sched.parts.request.manager import MaxWaitingRequests
from blazar_sched.parts.request.manager import REST
from blazar_sched.service.booking.search import SECONDS
from tests import looped
from tests.parts.report.test_usage import HOUR
from tests.parts.report.test_usage import measure
from tests.parts.report.test_usage import report
from tests.seeds import seeds
from tests.told import notified

LOW, NORMAL, HIGH = range(len(PRIORITIES))


@pytest.fixture
def conf(conf):
    conf.set_override('max_waiting_requests', 100, 'manager')
    return conf


@pytest.fixture
def world(world):
    """A cloud with two hosts of 8 VCPUs."""
    for name in 'ab':
        world.add_host(name)
    return world


@pytest.fixture
def wanted(world, whole):
    """wanted(*reservations, **values) -> the fields of a lease request.

    Times are seconds from now.
    """

    def wanted(*reservations, start=100, latest=200, until=None, **values):
        now = world.now
        return {
            'name': 'night-run', 'project_id': 'project', 'user_id': 'user',
            'reservations': list(reservations) or [whole(2, 2)],
            'start': now + start, 'latest_start': now + latest,
            'duration': 100,
            'wait_until': now + (latest if until is None else until),
            'priority': NORMAL, **values,
        }

    return wanted


@pytest.fixture
def ask(world, requests, wanted):
    def ask(*reservations, key=None, **values):
        made = requests.create(wanted(*reservations, **values), key)
        world.check()
        return made

    return ask


@pytest.fixture
def full(world, whole):
    """A lease of each host, in which nobody else has room."""
    return [world.create(whole(), start=50, end=1000) for _ in 'ab']


@pytest.mark.row('F77')
def test_projects_take_turns_if_the_operator_says_so(
    world, conf, ask, full, requests
):
    conf.set_override('requests_by_turns', True, 'manager')
    for project in 'p1', 'p1', 'p1', 'p2':
        ask(project_id=project)
        world.run(1)
    ask(project_id='p3', priority=HIGH)
    shown = sorted(requests.list(None), key=lambda each: each['position'])
    assert [each['project_id'] for each in shown] == [
        'p3', 'p1', 'p2', 'p1', 'p1',
    ]


def status(requests, made):
    return requests.get(made['id'], None)['status']


def end(world, *leases):
    for lease in leases:
        world.leases.delete(lease.id, None)


def test_room_is_booked_at_once(world, ask):
    made = ask()
    assert (made['status'], made['position']) == ('BOOKED', None)
    lease = world.ledger.lease(made['lease_id'])
    assert (lease.start, lease.end) == (world.now + 100, world.now + 200)
    assert (lease.name, lease.status) == ('night-run', 'PENDING')


def test_nothing_is_searched_for_twice_at_one_revision(
    world, requests, full, ask, monkeypatch
):
    """A request is created as fast beside others that wait."""
    for _ in range(3):
        ask()
    searches = []
    real = requests._search.result
    monkeypatch.setattr(
        requests._search, 'result',
        lambda *args: searches.append(args) or real(*args),
    )
    ask()
    assert len(searches) == 1
    end(world, full[0])
    searches.clear()
    ask()
    assert len(searches) == 5


@pytest.mark.row('F81')
def test_a_request_waits_until_room_comes(world, requests, full, ask):
    made = ask()
    assert (made['status'], made['position']) == ('WAITING', 1)
    assert made['estimate'] == full[0].end
    requests.step()
    assert world.ledger.run(models.list_, None)[0].is_waiting
    end(world, full[0])
    requests.step()
    assert status(requests, made) == 'WAITING'
    end(world, full[1])
    requests.step()
    shown = requests.get(made['id'], 'project')
    assert (shown['status'], shown['estimate']) == ('BOOKED', None)
    assert world.ledger.lease(shown['lease_id']).start == made['start']
    world.check()


def test_the_lease_starts(world, requests, full, ask):
    made = ask()
    end(world, *full)
    requests.step()
    world.run(100)
    lease_id = requests.get(made['id'], None)['lease_id']
    assert world.ledger.lease(lease_id).status == 'ACTIVE'


def test_the_order_is_priority_then_age(world, requests, whole, full, ask):
    made = [
        ask(priority=each, latest=150) for each in (LOW, NORMAL, HIGH, NORMAL)
    ]
    by_position = sorted(
        requests.list(None), key=lambda shown: shown['position']
    )
    order = [2, 1, 3, 0]
    assert [shown['id'] for shown in by_position] == [
        made[n]['id'] for n in order
    ]
    # One request fits into the range at a time.
    for number in order:
        end(world, *full)
        requests.step()
        booked = requests.get(made[number]['id'], None)['lease_id']
        full = [world.ledger.lease(booked)]
        assert len(world.ledger.leases()) == 1
    world.check()


def test_later_requests_do_not_take_the_window_of_the_first(
    world, requests, whole, full, ask
):
    """A request behind takes no part of the window that the first one keeps.
    """
    first, behind = ask(latest=100), ask(whole(1, 1))
    later = ask(whole(1, 1), start=1000, latest=1000)
    assert later['status'] == 'BOOKED'
    end(world, full[0])
    requests.step()
    assert status(requests, first) == 'WAITING'
    assert status(requests, behind) == 'BOOKED'
    end(world, full[1])
    requests.step()
    assert status(requests, first) == 'BOOKED'
    one, two = (
        world.ledger.lease(requests.get(made['id'], None)['lease_id'])
        for made in (first, behind)
    )
    assert one.start == first['start'] and two.start == one.end


def test_a_request_keeps_one_window_free_and_not_its_range(
    world, requests, whole, full, ask
):
    """The window is that at the last start, as the estimate is later."""
    first = ask(latest=900)
    assert first['estimate'] == full[0].end
    end(world, full[0])
    requests.step()
    ahead_of_it = ask(whole(1, 1), latest=100)
    in_it = ask(whole(1, 1), start=899, latest=899)
    assert (ahead_of_it['status'], in_it['status']) == ('BOOKED', 'WAITING')


def test_a_request_about_to_be_booked_keeps_its_last_window_too(
    world, requests, whole, full, ask
):
    first = ask(start=100, latest=250)
    end(world, *full)
    second = ask(whole(), start=220, latest=230)
    assert second['status'] == 'WAITING'
    requests.step()
    starts = [
        world.ledger.lease(requests.get(each['id'], None)['lease_id']).start
        for each in (first, second)
    ]
    assert starts == [world.now + 100, world.now + 220]


def test_a_request_without_an_estimate_keeps_nobody_waiting(world, whole, ask):
    """No room is in sight beside a lease without an end."""
    world.create(whole(), start=900, end=FOREVER)
    wall = ask(duration=1000, latest=800)
    assert (wall['status'], wall['estimate']) == ('WAITING', None)
    assert ask(whole(1, 1))['status'] == 'BOOKED'


class TestPace:
    """What requests that wait cost other projects."""

    @pytest.fixture
    def searched(self, world, requests, monkeypatch):
        """The starts that were found; each search takes ten seconds."""
        searched, result = [], requests._search.result
        monkeypatch.setattr(
            requests._search, 'thread_time', lambda: float(world.now)
        )
        monkeypatch.setattr(manager, 'REST', REST)

        def slow(*args):
            searched.append(result(*args))
            world.clock.now += 10
            return searched[-1]

        monkeypatch.setattr(requests._search, 'result', slow)
        return searched

    def test_the_loop_rests_longer_than_it_searches(
        self, world, requests, whole, full, ask, searched
    ):
        """However many commits others make meanwhile."""
        ask(latest=900)
        searched.clear()
        for n in range(2 * REST):
            world.create(whole(), start=20000 + n, end=20001 + n)
            requests.step()
            world.clock.now += 10
        assert len(searched) == 2

    def test_the_requests_of_a_project_share_its_time(
        self, requests, full, ask, monkeypatch
    ):
        for project in 'ppq':
            ask(project_id=project)
        budget, seconds = requests._search.budget, []
        monkeypatch.setattr(
            requests._search, 'budget',
            lambda n: seconds.append(n) or budget(n),
        )
        requests.step()
        assert seconds == [SECONDS / 2, SECONDS / 2, SECONDS]

    def test_the_last_estimate_stays_for_lack_of_time(
        self, world, requests, whole, full, ask, searched, monkeypatch
    ):
        """So does the window that the request keeps free."""
        first = ask(latest=100)
        searched.clear()
        monkeypatch.setattr(
            requests._requests, 'starts', lambda *_: lambda reader: None
        )
        world.create(whole(), start=20000, end=20001)
        requests.step()
        monkeypatch.undo()
        assert searched == [None]
        assert requests._requests._estimates == {first['id']: full[0].end}


def test_other_hosts_are_no_delay(world, requests, whole, full, ask):
    """A request behind may have a host that the first one cannot use."""
    world.add_host('c', vcpus=16)
    first = ask(whole(2, 2, hypervisor_properties='["==", "$vcpus", "8"]'))
    assert first['status'] == 'WAITING'
    behind = ask(whole(1, 1, hypervisor_properties='["==", "$vcpus", "16"]'))
    assert behind['status'] == 'BOOKED'


def test_the_cleaning_time_of_the_first_is_kept(world, conf, full, ask, whole):
    conf.set_override('cleaning_time', 1, 'manager')
    ask(start=1000, latest=1000, until=500)
    first = ask(start=500, latest=500)
    assert first['status'] == 'WAITING'
    world.add_host('c')
    # The first may have two hosts up to 600, and a minute for cleaning.
    behind = ask(whole(1, 1), start=590, latest=700)
    lease = world.ledger.lease(behind['lease_id'])
    assert lease.start == world.now + 660


def test_a_request_lapses(world, requests, full, ask):
    made = ask(until=150)
    world.clock.now += 149
    requests.step()
    assert status(requests, made) == 'WAITING'
    world.clock.now += 1
    end(world, *full)
    requests.step()
    assert status(requests, made) == 'LAPSED'
    assert requests.get(made['id'], None)['position'] is None
    assert world.ledger.leases() == []


def test_a_cancelled_request_lets_others_by(world, requests, whole, full, ask):
    first, behind = ask(latest=100), ask(whole(1, 1), latest=150)
    end(world, full[0])
    requests.step()
    assert status(requests, behind) == 'WAITING'
    with pytest.raises(LeaseRequestNotFound):
        requests.delete(first['id'], 'another')
    requests.delete(first['id'], 'project')
    requests.step()
    assert status(requests, first) == 'CANCELLED'
    assert status(requests, behind) == 'BOOKED'
    for made in first, behind:
        with pytest.raises(exception.InvalidStatus):
            requests.delete(made['id'], None)


def test_more_than_the_hosts_there_are_is_refused(
    world, requests, whole, slots, full, ask
):
    for reservation in whole(3, 3), slots(9, 2), slots(1, 9):
        with pytest.raises(exception.NotEnoughHostsAvailable):
            ask(reservation)
    assert requests.list(None) == []
    # A host that has failed may come back.
    world.fail('a')
    assert ask()['status'] == 'WAITING'


@pytest.mark.parametrize('field, values', [
    ('latest_start_date', {'latest': 99}),
    ('latest_start_date', {'latest': 101 + 366 * 86400}),
    ('wait_until', {'until': 201}),
    ('wait_until', {'until': 0}),
    ('start_date', {'start': -100}),
])
def test_dates_that_leave_nothing_to_wait_for(requests, ask, field, values):
    with pytest.raises(exception.InvalidInput) as refusal:
        ask(**values)
    assert refusal.value.field == field
    assert requests.list(None) == []


def test_the_number_of_waiting_requests_is_limited(conf, full, ask):
    conf.set_override('max_waiting_requests', 1, 'manager')
    ask()
    with pytest.raises(MaxWaitingRequests):
        ask()
    assert ask(project_id='another')['position'] == 2


def test_a_repeated_request_is_made_once(requests, full, ask):
    first = ask(key='k')
    assert ask(key='k') == first
    assert ask(key='k', project_id='another')['id'] != first['id']
    with pytest.raises(exception.IdempotencyKeyReused):
        ask(key='k', name='day-run')
    assert len(requests.list(None)) == 2


class TestLimits:
    @pytest.fixture
    def conf(self, conf):
        for name, value in (
            ('enabled_filters', ['MaxLeasesFilter', 'MaxHorizonFilter']),
            ('max_leases_per_project', 1), ('max_end_horizon', 5000),
        ):
            conf.set_override(name, value, 'enforcement')
        return conf

    @pytest.fixture
    def full(self, world, whole):
        return [world.create(
            whole(2, 2), start=50, end=1000, project_id='another'
        )]

    def test_a_project_with_too_much_keeps_nobody_waiting(
        self, world, requests, whole, full, ask
    ):
        first = ask(whole(1, 1))
        behind = ask(whole(1, 1), project_id='third')
        mine = world.create(whole(), start=2000, end=3000)
        end(world, *full)
        requests.step()
        assert status(requests, first) == 'WAITING'
        assert status(requests, behind) == 'BOOKED'
        end(world, mine)
        requests.step()
        assert status(requests, first) == 'BOOKED'

    def test_a_request_is_refused_as_its_lease_would_be(
        self, world, whole, ask
    ):
        world.create(whole(), start=2000, end=3000)
        with pytest.raises(MaxLeases):
            ask()

    def test_the_last_window_counts_in_the_horizon(self, full, ask):
        assert ask(latest=4900)['status'] == 'BOOKED'
        with pytest.raises(exception.MaxEndHorizon) as refusal:
            ask(project_id='third', latest=4901)
        assert refusal.value.field == 'latest_start_date'


def test_the_order_is_kept_over_a_restart(world, conf, requests, full, ask):
    made = [ask(priority=each) for each in (NORMAL, HIGH, NORMAL)]
    before = requests.list(None)
    requests = looped.of(world.begin(conf), manager.LeaseRequests)
    assert requests.list(None) == before
    end(world, *full)
    requests.step()
    assert status(requests, made[1]) == 'BOOKED'
    assert [
        world.ledger.lease(requests.get(each['id'], None)['lease_id']).start
        - world.now
        for each in (made[1], made[0])
    ] == [100, 200]
    assert status(requests, made[2]) == 'WAITING'


def test_two_managers_book_once(world, conf, requests, full, ask):
    made = [ask() for _ in range(3)]
    other = world.another(conf)
    end(world, *full)
    barrier = threading.Barrier(2)

    def run(requests):
        barrier.wait()
        requests.step()

    threads = [
        threading.Thread(target=run, args=[each])
        for each in (requests, looped.of(other, manager.LeaseRequests))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.ledger.close()
    requests.step()
    booked = [requests.get(each['id'], None)['lease_id'] for each in made]
    assert booked[2] is None
    assert {lease.id for lease in world.ledger.leases()} == set(booked[:2])
    world.check()


def test_a_request_that_comes_ahead_meanwhile_is_first(
    world, requests, full, ask, monkeypatch
):
    """A commit books no request behind one that the search did not see."""
    behind = ask()
    end(world, *full)
    came = []
    real = requests._search.result

    def result(*args):
        found = real(*args)
        if not came:
            came.append(None)
            came[0] = requests.create(came_values)
        return found

    came_values = {
        **{name: behind[name] for name in (
            'name', 'project_id', 'user_id', 'reservations', 'start',
            'duration',
        )},
        'latest_start': behind['start'], 'wait_until': behind['start'],
        'priority': HIGH,
    }
    monkeypatch.setattr(requests._search, 'result', result)
    requests.step()
    assert status(requests, came[0]) == 'BOOKED'
    requests.step()
    shown = requests.get(behind['id'], None)
    assert world.ledger.lease(shown['lease_id']).start == world.now + 200


class TestFlexible:
    """The leases of flexible requests make room for higher priorities."""

    @pytest.fixture
    def told(self, world, monkeypatch):
        return notified(
            world.manager, monkeypatch, lambda event_type, payload: (
                event_type,
                payload['request_id' if 'request_id' in payload else
                        'lease_id'],
            ),
        )

    @pytest.fixture
    def moves(self, world, requests):
        """moves(made) -> by how many seconds the lease of a request moved."""

        def moves(made):
            shown = requests.get(made['id'], None)
            lease = world.ledger.lease(shown['lease_id'])
            assert len(world.held(lease)) == 2
            assert shown['start'] <= lease.start <= shown['latest_start']
            assert lease.end - lease.start == made['duration']
            return lease.start - made['start']

        return moves

    @pytest.mark.row('F80')
    def test_a_flexible_lease_is_moved(self, world, ask, moves, told):
        low = ask(flexible=True, priority=LOW)
        high = ask(latest=100, priority=HIGH)
        assert (high['status'], moves(high), moves(low)) == ('BOOKED', 0, 100)
        assert told[-4:] == [
            ('lease.create', high['lease_id']), ('request.book', high['id']),
            ('request.move', low['id']), ('lease.update', low['lease_id']),
        ]
        # The events move with the lease.
        world.run(100)
        assert world.ledger.lease(low['lease_id']).status == 'PENDING'
        world.run(100)
        assert world.ledger.lease(low['lease_id']).status == 'ACTIVE'
        assert world.ledger.lease(high['lease_id']).status == 'TERMINATED'

    def test_a_lease_that_is_deleted_meanwhile(self, world, ask, monkeypatch):
        low = ask(flexible=True, priority=LOW)
        run = world.ledger.run

        def run_and_delete(query, *args, **kwargs):
            found = run(query, *args, **kwargs)
            if query is models.flexible:
                monkeypatch.undo()
                world.leases.delete(low['lease_id'], None)
            return found

        monkeypatch.setattr(world.ledger, 'run', run_and_delete)
        assert ask(latest=100, priority=HIGH)['status'] == 'WAITING'

    @pytest.mark.parametrize('values', [
        {'flexible': False},
        {'priority': HIGH},
        # No other window is in the range.
        {'latest': 199},
        {'latest': 100},
    ])
    def test_leases_that_are_not_flexible_are_not_moved(
        self, ask, moves, values
    ):
        made = ask(**{'flexible': True, **values})
        high = ask(latest=100, priority=HIGH)
        assert (high['status'], moves(made)) == ('WAITING', 0)

    def test_a_lease_that_others_keep_where_it_is(
        self, world, whole, ask, moves
    ):
        low = ask(flexible=True, priority=LOW)
        world.create(whole(), start=250, end=300)
        assert ask(latest=100, priority=HIGH)['status'] == 'WAITING'
        assert moves(low) == 0

    def test_a_lease_of_which_the_window_was_changed(self, world, ask):
        low = ask(flexible=True, priority=LOW)
        world.leases.update(low['lease_id'], None, {'end': world.now + 190})
        assert ask(latest=100, priority=HIGH)['status'] == 'WAITING'

    def test_a_lease_whose_hosts_are_being_vacated(self, world, conf, ask):
        conf.set_override('vacate_lead_time', 100, 'manager')
        ask(flexible=True, priority=LOW)
        assert ask(latest=100, priority=HIGH)['status'] == 'WAITING'

    def test_a_lease_that_has_started(self, world, ask):
        ask(flexible=True, priority=LOW)
        world.run(100)
        high = ask(start=0, latest=50, priority=HIGH)
        assert high['status'] == 'WAITING'

    def test_no_more_leases_are_moved_than_need_be(
        self, world, whole, requests, ask
    ):
        for name in 'cd':
            world.add_host(name)
        made = [
            ask(whole(2, 2), flexible=True, priority=priority)
            for priority in (NORMAL, LOW)
        ]
        high = ask(whole(2, 2), latest=100, priority=HIGH)
        assert high['status'] == 'BOOKED'
        starts = [
            world.ledger.lease(each['lease_id']).start - world.now
            for each in made
        ]
        assert starts == [100, 200]

    def test_no_room_is_made_in_the_window_of_a_request_ahead(
        self, world, whole, ask
    ):
        world.create(whole(), start=100, end=150)
        low = ask(whole(), flexible=True, priority=LOW)
        first = ask(latest=100, priority=HIGH)
        assert first['estimate'] == low['start'] + 100
        behind = ask(whole(), latest=100, priority=HIGH)
        assert behind['status'] == 'WAITING'

    def test_leases_are_tried_ahead_of_one_commit(
        self, world, whole, requests, ask, wanted, monkeypatch
    ):
        for _ in range(2):
            ask(whole(1, 1), flexible=True, priority=LOW)
        commits, commit = [], world.ledger.commit
        monkeypatch.setattr(
            world.ledger, 'commit',
            lambda work: commits.append(work) or commit(work),
        )
        for status in 'BOOKED', 'WAITING':
            made = requests.create(wanted(latest=100, priority=HIGH))
            assert (made['status'], len(commits)) == (status, 1)
        requests.step()
        assert len(commits) == 1

    def test_leases_on_other_hosts_are_left_alone(
        self, world, whole, ask, told
    ):
        """They are not moved, and do not count in the most leases moved."""
        for n in range(MAX_MOVED_LEASES):
            world.add_host(f'gpu-{n}', kind='gpu')
        mine = whole(
            resource_properties=json.dumps(['==', '$hypervisor_hostname', 'a'])
        )
        gpu = whole(resource_properties=json.dumps(['==', '$kind', 'gpu']))
        low = ask(mine, flexible=True)
        others = [
            ask(gpu, flexible=True, priority=LOW)
            for _ in range(MAX_MOVED_LEASES)
        ]
        told.clear()
        high = ask(mine, latest=100, priority=HIGH)
        assert high['status'] == 'BOOKED'
        assert told[-2:] == [
            ('request.move', low['id']), ('lease.update', low['lease_id']),
        ]
        assert not {id_ for _, id_ in told} & {
            each[name] for each in others for name in ('id', 'lease_id')
        }

    def test_a_moved_lease_delays_no_request_ahead_of_it(
        self, world, whole, requests, ask, moves
    ):
        low = ask(flexible=True, priority=LOW, latest=400)
        blocked = world.create(whole(), start=300, end=350)
        waiting = ask(start=250, latest=260)
        assert waiting['status'] == 'WAITING'
        ask(latest=100, priority=HIGH)
        # The request ahead may have its lease up to 360.
        assert moves(low) >= 260
        end(world, blocked)
        requests.step()
        assert status(requests, waiting) == 'BOOKED'

    @pytest.mark.parametrize('seed', seeds(15))
    def test_small_worlds(self, world, whole, requests, ask, seed):
        """Every lease stays in its range, and no lease is lost."""
        draw = random.Random(seed)
        booked = set()
        for _ in range(25):
            first = draw.randint(1, 40)
            number = draw.randint(1, 2)
            ask(
                whole(number, number), start=first,
                latest=first + draw.randint(0, 30),
                duration=draw.randint(1, 20), priority=draw.randint(0, 2),
                flexible=draw.random() < 0.7,
            )
            requests.step()
            for each in world.ledger.run(models.list_, None):
                if each.lease_id is None:
                    assert each.id not in booked
                    continue
                booked.add(each.id)
                lease = world.ledger.lease(each.lease_id)
                assert each.may_have(lease.window)
                assert len(world.held(lease)) == each.reservations[0]['min']
            world.check()


@pytest.mark.parametrize('seed', seeds(15))
def test_small_worlds_against_every_start(world, requests, whole, ask, seed):
    """Room goes to the first request that can use it, as by brute force."""
    draw = random.Random(seed)
    leases, estimates = [], {}
    for _ in range(25):
        if leases and draw.random() < 0.5:
            end(world, leases.pop(draw.randrange(len(leases))))
        elif draw.random() < 0.4:
            at = draw.randint(1, 40)
            try:
                leases.append(world.create(
                    whole(1, 1), start=at, end=at + draw.randint(1, 30)
                ))
            except exception.NotEnoughHostsAvailable:
                continue
        else:
            first = draw.randint(1, 30)
            number = draw.randint(1, 2)
            ask(
                whole(number, number), start=first,
                latest=first + draw.randint(0, 10),
                duration=draw.randint(1, 20), priority=draw.randint(0, 2),
            )
        _step_as_expected(world, requests)
        for each in requests.list(None):
            shown = requests.get(each['id'], None)
            if shown['status'] == 'WAITING':
                estimates[shown['id']] = shown['estimate']
            elif shown['id'] in estimates:
                expected = estimates.pop(shown['id'])
                lease = world.ledger.lease(shown['lease_id'])
                assert lease.start <= expected
    world.check()


def _step_as_expected(world, requests):
    """Take a step, and compare what it books with each second's use."""
    used = [
        (lease.start, lease.end, lease.reservations[0].demand.least)
        for lease in world.ledger.leases()
    ]
    kept, expected = [], {}
    for each in world.ledger.run(models.waiting):
        size = each.reservations[0]['min']
        start = next(
            (
                at for at in range(each.start, each.latest_start + 200)
                if all(
                    at + each.duration <= first or last <= at
                    for first, last in kept
                )
                and all(
                    size + sum(
                        n for first, last, n in used if first <= second < last
                    ) <= 2
                    for second in range(at, at + each.duration)
                )
            ),
        )
        expected[each.id] = start if start <= each.latest_start else None
        if start > each.latest_start:
            kept.append((each.latest_start, each.latest_start + each.duration))
        else:
            used.append((start, start + each.duration, size))
    requests.step()
    for id_, start in expected.items():
        lease_id = requests.get(id_, None)['lease_id']
        assert (lease_id and world.ledger.lease(lease_id).start) == start


@pytest.mark.parametrize('seed', range(50))
def test_starts_outside_of_windows(seed):
    draw = random.Random(seed)
    windows = [
        Window(at, at + draw.randint(1, 8))
        for at in (draw.randint(0, 40) for _ in range(draw.randint(0, 4)))
    ]
    first, duration = draw.randint(0, 20), draw.randint(1, 6)
    last = first + draw.randint(0, 25)
    found = starts_outside((first, last), duration, windows)
    assert list(itertools.chain(*(
        range(low, high + 1) for low, high in found
    ))) == [
        at for at in range(first, last + 1)
        if not any(Window(at, at + duration).overlaps(w) for w in windows)
    ]


def test_requests_that_wait_no_more_are_purged(world, requests, full, ask):
    gone, kept = ask(), ask()
    requests.delete(gone['id'], None)
    world.clock.now += 10
    list(world.ledger.purge(world.now))
    assert [each['id'] for each in requests.list(None)] == [kept['id']]


def test_a_request_is_kept_as_long_as_its_lease(world, requests, ask):
    low = ask(flexible=True, priority=LOW)
    world.clock.now += 10
    list(world.ledger.purge(world.now))
    # The lease can still be moved.
    high = ask(start=90, latest=90, priority=HIGH)
    assert high['status'] == 'BOOKED'
    assert world.ledger.lease(low['lease_id']).start == world.now + 190
    world.run(400)
    list(world.ledger.purge(world.now))
    assert world.ledger.leases() == []
    assert requests.list(None) == []


def test_each_change_of_a_lease_request_is_notified(
    world, conf, requests, full, ask, monkeypatch
):
    told = notified(
        world.manager, monkeypatch, lambda event_type, payload: (
            event_type, payload['request_id'], payload['status'],
        ) if event_type.startswith('request.') else None,
    )
    first, second, third = ask(until=150), ask(), ask()
    requests.delete(second['id'], None)
    world.clock.now += 150
    end(world, *full)
    requests.step()
    assert told == [
        *(('request.create', each['id'], 'WAITING')
          for each in (first, second, third)),
        ('request.delete', second['id'], 'CANCELLED'),
        ('request.lapse', first['id'], 'LAPSED'),
        ('request.book', third['id'], 'BOOKED'),
    ]


def test_a_request_that_waits_in_vain_is_refused_once(world, ask, whole, conf):
    world.create(whole(2, 2), start=0, end=DAY)
    ask(whole(2, 3), start=0, latest=HOUR, duration=2 * HOUR)
    world.clock.now += 2 * HOUR
    other = world.another(conf)
    for manager_ in (world.manager, other):
        looped.of(manager_, manager.LeaseRequests).step()
        measure(world, 60, manager_)
    assert report(world)[HOST,]['refused'] == 2 * 2
