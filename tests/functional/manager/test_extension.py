# SPDX-License-Identifier: Apache-2.0
"""How far a lease can be prolonged, against every end that there is."""

import itertools
import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import TIME_LIMIT
from blazar_sched.service.booking.end_search import EndSearch
from blazar_sched.service.ledger.at_one_revision import MAX_REPEATS
from tests.functional.manager.relocating import NOTICE
from tests.functional.manager.relocating import RelocatingManager
from tests.seeds import seeds

# The last end that the property test asks for, in seconds from now.
LAST = 40


@pytest.fixture
def conf(conf):
    conf.set_override(
        'enabled_filters', ['MaxLeaseDurationFilter', 'MaxHorizonFilter'],
        'enforcement',
    )
    return conf


@pytest.fixture
def world(world):
    """A cloud with two hosts of 8 VCPUs."""
    world.add_hosts('a', 'b')
    return world


@pytest.fixture
def lease(world, whole):
    """An active lease of two hosts, which ends in 100 s."""
    lease = world.start_lease(whole(2, 2), end=100)
    return world.lease(lease)


def extension(world, lease, end=FOREVER, project_id='project'):
    return world.manager.extensions.get(lease.id, project_id, end)


def prolong(world, lease, end, **options):
    return world.manager.extensions.update(
        lease.id, 'project', {'end': end}, **options
    )


@pytest.fixture
def others():
    """What a lease may reserve beside hosts and instances."""
    return []


def draw_lease(world, draw, whole, slots, others, start=None):
    """Create a lease at random; return None if there is no room."""
    seconds = 8 if start == 'now' else draw.randint(1, 4)
    # The creation of a lease with an affinity waits for its start.
    affinity = None if start == 'now' else draw.choice([True, False])
    wanted = draw.sample(
        [
            whole(1, draw.choice([1, 2])), slots(draw.randint(1, 5)),
            slots(2, affinity=affinity), *others,
        ],
        draw.choice([1, 1, 2]),
    )
    if start is None:
        start = draw.randint(2, LAST - 8)
    end = (0 if start == 'now' else start) + seconds
    try:
        return world.create(*wanted, start=start, end=end)
    except exception.Conflict:
        return None


def accepted(world, lease, end):
    """Tell whether an update with an end is accepted, in a dry run."""
    try:
        world.leases.update(lease.id, None, {'end': end}, dry_run=True)
    except (exception.Conflict, exception.LimitExceeded):
        return False
    return True


@pytest.mark.parametrize('seed', seeds(30, few=6))
def test_extension_is_the_last_end_that_an_update_accepts(
    world, conf, whole, slots, others, seed
):
    draw = random.Random(seed)
    if draw.random() < 0.3:
        conf.set_override('max_lease_duration', 20, 'enforcement')
    started = draw.random() < 0.5
    lease = None
    while lease is None:
        lease = draw_lease(
            world, draw, whole, slots, others, 'now' if started else None
        )
    if started:
        world.run()
        lease = world.lease(lease)
        assert lease.status == 'ACTIVE'
    for _ in range(draw.randint(1, 8)):
        draw_lease(world, draw, whole, slots, others)
    asked = world.now + draw.randint(10, LAST)

    extension = world.manager.extensions.get(lease.id, 'project', asked)

    ends = range(lease.end, max(asked, lease.end) + 1)
    last = max(end for end in ends if accepted(world, lease, end))
    assert extension['end'] == last
    assert (extension['limited_by'] is None) is (last == ends[-1])
    assert world.lease(lease) == lease
    if last > lease.end:
        changed = world.manager.extensions.update(
            lease.id, 'project', {'end': asked}
        )
        assert changed.end == last
        assert world.lease(lease).end == last
    world.check()


def test_another_lease_limits_it(world, lease, whole):
    rival = world.create(whole(), start=300, end=400)
    revision = world.ledger.changes(0)['newest']
    assert extension(world, lease) == {
        'end': rival.start, 'limited_by': 'capacity', 'reservation': 0,
        'available': None, 'searched_until': None,
    }
    assert extension(world, lease, rival.start) == {
        'end': rival.start, 'limited_by': None, 'reservation': None,
        'available': None, 'searched_until': None,
    }
    assert world.ledger.changes(0)['newest'] == revision


def test_the_reservation_without_room_and_what_there_is(world, whole, slots):
    lease = world.create(slots(1), whole(), start=100, end=200)
    rival = world.create(whole(), start=300, end=400)
    found = extension(world, lease)
    assert found['end'] == rival.start
    assert (found['reservation'], found['available']) == (1, 0)


def test_cleaning_times_are_kept_free(world, conf, lease, whole):
    conf.set_override('cleaning_time', 1, 'manager')
    rival = world.create(whole(), start=300, end=400)
    assert extension(world, lease)['end'] == rival.start - 60
    assert prolong(world, lease, FOREVER).end == rival.start - 60


def test_extension_without_limit_is_endless(world, lease):
    found = extension(world, lease)
    assert (found['end'], found['limited_by']) == (FOREVER, None)
    assert prolong(world, lease, FOREVER).end == FOREVER
    found = extension(world, lease)
    assert (found['end'], found['limited_by']) == (FOREVER, None)
    # An end that is asked for makes such a lease shorter.
    assert prolong(world, lease, world.now + 500).end == world.now + 500


@pytest.mark.parametrize('name, seconds', [
    ('max_lease_duration', 500), ('max_end_horizon', 500),
])
@pytest.mark.parametrize('asked', [500, 501, 10**6, FOREVER])
def test_limits_of_the_project(world, conf, lease, name, seconds, asked):
    conf.set_override(name, seconds, 'enforcement')
    asked = asked if asked == FOREVER else world.now + asked
    found = extension(world, lease, asked)
    last = world.now + seconds
    assert found['end'] == last
    assert found['limited_by'] == (None if asked == last else 'policy')
    assert (found['reservation'], found['available']) == (None, None)
    assert prolong(world, lease, asked).end == last


def test_a_limit_that_is_reached(world, conf, lease):
    conf.set_override('max_lease_duration', 50, 'enforcement')
    found = extension(world, lease)
    assert (found['end'], found['limited_by']) == (lease.end, 'policy')
    with pytest.raises(exception.MaxLeaseDuration):
        prolong(world, lease, FOREVER)


def test_the_last_time_that_there_is(world, lease, whole, monkeypatch):
    """An end of its own is allowed, and none is not."""
    check = world.manager.enforcement.check_limits

    def refuse(tx, change, project):
        if change.lease.end == FOREVER:
            raise exception.MaxLeaseDuration('for ever')
        check(tx, change, project)

    monkeypatch.setattr(world.manager.enforcement, 'check_limits', refuse)
    found = extension(world, lease)
    assert (found['end'], found['limited_by']) == (TIME_LIMIT - 1, 'policy')


def test_the_lifetime_of_a_server(world, whole):
    server = world.add_server(
        'a', created=world.now, user_id='alice', start=None,
        end=world.now + 100,
    )
    world.manager.instances.sync()
    [lease] = world.ledger.leases()
    rival = world.create(whole(2, 2), start=300, end=400)
    found = world.manager.extensions.get(lease.id, None, FOREVER)
    assert (found['end'], found['limited_by']) == (rival.start, 'capacity')
    longer = world.manager.extensions.update(lease.id, None, {'end': FOREVER})
    assert longer.end == rival.start
    assert world.ledger.instance(server.uuid).end == rival.start


def test_servers_are_relocated_for_it(conf):
    world = RelocatingManager(conf)
    lease = world.reserve('a', end=NOTICE + 60)
    world.boot('c')
    server = world.boot('b')
    other = world.reserve('d', start=3000, end=4000)
    world.reserve('b', start=600, end=700)
    assert world.path(server) == ['b', 'a']
    world.leases.delete(other.id, None)
    assert extension(world, lease)['end'] == FOREVER
    assert world.path(server) == ['b', 'a']
    assert prolong(world, lease, FOREVER).end == FOREVER
    assert world.path(server) == ['b', 'd']
    world.check_promises()
    world.ledger.close()


def test_a_lease_that_cannot_be_changed(world, lease):
    with pytest.raises(exception.LeaseNotFound):
        extension(world, lease, project_id='other')
    with pytest.raises(exception.LeaseNotFound):
        world.manager.extensions.update(lease.id, 'other', {'end': FOREVER})
    world.run(101)
    assert world.lease(lease).status == 'TERMINATED'
    with pytest.raises(exception.InvalidStatus):
        extension(world, lease)
    with pytest.raises(exception.InvalidStatus):
        prolong(world, lease, FOREVER)


def test_a_lease_whose_end_is_overdue(world, lease, whole):
    """The manager was stopped at the end of the lease."""
    rival = world.create(whole(), start=600, end=700)
    world.clock.now = lease.end + 100
    with pytest.raises(exception.InvalidInput, match='end_date'):
        extension(world, lease, lease.end + 10)
    assert extension(world, lease)['end'] == rival.start
    assert prolong(world, lease, FOREVER).end == rival.start


def test_lease_that_cannot_be_prolonged_is_refused(world, lease, whole):
    world.create(whole(), start=100, end=400)
    found = extension(world, lease)
    assert (found['end'], found['limited_by']) == (lease.end, 'capacity')
    for dry_run in (False, True):
        with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
            prolong(world, lease, FOREVER, offering=True, dry_run=dry_run)
        offer = refusal.value.offer
        assert (offer['start'], offer['end']) == (None, None)
        with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
            prolong(world, lease, FOREVER, dry_run=dry_run)
        assert 'end' not in (refusal.value.offer or {})
    assert world.lease(lease) == lease


def test_a_dry_run_changes_nothing(world, lease, whole):
    rival = world.create(whole(), start=300, end=400)
    revision = world.ledger.changes(0)['newest']
    changed = prolong(world, lease, FOREVER, dry_run=True)
    assert changed.end == rival.start
    assert world.lease(lease) == lease
    assert world.ledger.changes(0)['newest'] == revision


def test_the_name_can_be_changed_too(world, lease, whole):
    rival = world.create(whole(), start=300, end=400)
    world.manager.extensions.update(
        lease.id, 'project', {'name': 'longer', 'end': FOREVER}
    )
    changed = world.lease(lease)
    assert (changed.name, changed.end) == ('longer', rival.start)


@pytest.mark.more
@pytest.mark.parametrize('commits', [1, MAX_REPEATS, MAX_REPEATS + 1])
@pytest.mark.parametrize('earlier', [False, True])
@pytest.mark.parametrize('method', ['get', 'update'])
def test_commits_meanwhile(
    world, lease, whole, monkeypatch, commits, earlier, method
):
    """After each search other leases take room, or give it back."""
    rivals = [world.create(whole(2, 2), start=s, end=s + 10) for s in (
        [900] if earlier else range(300, 1000, 100)
    )]
    ahead = EndSearch.ahead
    times = iter(range(commits))

    def act(search):
        end = ahead(search)
        if next(times, None) is None:
            return end
        if earlier:
            start = rivals[0].start - world.now - 100
            rivals.insert(
                0, world.create(whole(2, 2), start=start, end=start + 10)
            )
        else:
            world.leases.delete(rivals.pop(0).id, None)
        return end

    monkeypatch.setattr(EndSearch, 'ahead', act)
    if method == 'get':
        found = extension(world, lease)
        assert found['end'] == rivals[0].start
    else:
        assert prolong(world, lease, FOREVER).end == rivals[0].start
        assert world.lease(lease).end == rivals[0].start
    world.check()


def test_other_commits_do_not_matter(world, lease, whole, monkeypatch):
    """One search does where commits of others do not change the end."""
    rival = world.create(whole(), start=300, end=400)
    names = itertools.count()
    dry_run = world.ledger.dry_run

    def and_commit(work, within=None):
        found = dry_run(work, within)
        if within is None:
            name = str(next(names))
            world.update_lease(rival, name=name)
        return found

    monkeypatch.setattr(world.ledger, 'dry_run', and_commit)
    assert extension(world, lease)['end'] == rival.start
    assert next(names) < 50


def test_a_lease_beyond_a_limit_is_not_prolonged(world, conf):
    """A later end is more than what the lease was granted before."""
    lease = world.create(start=100, end=200)
    conf.set_override('max_start_horizon', 50, 'enforcement')
    assert extension(world, lease)['limited_by'] == 'policy'
