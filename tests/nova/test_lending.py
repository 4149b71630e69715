# SPDX-License-Identifier: Apache-2.0
"""Two nova-schedulers and two managers, while a lease lends.

The schedulers decide by replicas of different revisions, and before the
manager or each other knows of their servers. Afterwards nobody but the owner
is on what the owner may use.
"""

import pytest

from blazar_sched.placing import relocation
from blazar_sched.service.upkeep import lending
from tests.functional.manager.conftest import hosts
from tests.functional.manager.conftest import instances
from tests.nova import borrowing
from tests.nova.borrowing import interleaved
from tests.nova.borrowing import NOTICE
from tests.nova.borrowing import VCPUS
from tests.told import notified

LENGTH = 7200


@pytest.fixture
def names():
    return 'abc'


@pytest.fixture
def site(empty_ledger, tmp_path, names):
    site = borrowing.Site(empty_ledger, tmp_path, names)
    yield site
    site.check()
    site.close()


def lends(site, asked):
    """Book a reservation that lends, and wait until it does."""
    lease = site.create(
        {'lend': True, **asked}, start='now', end=LENGTH,
        project_id=borrowing.OWNER,
    )
    site.run()
    site.look()
    site.pull()
    return site.lease(lease).reservations[0]


def alive(site, *servers):
    return [server.uuid in site.nova.stored for server in servers]


def place_guest_while_recalled(site):
    """Place a guest on a host that is recalled meanwhile, and cleared."""
    mine = lends(site, hosts(3, 3))
    late, fresh = site.schedulers
    site.leases.recall(mine.lease_id, None)
    guest = site.boot(
        late, among=site.lent(mine.id), arrives=False, preemptible=True
    )
    assert guest
    site.look()
    assert site.lending(mine.id).away == 0
    fresh.pull()
    assert site.boot(fresh, preemptible=True) is None
    site.settle()
    return mine, guest


@pytest.mark.row('F110')
def test_a_guest_on_a_host_that_was_recalled_meanwhile_leaves(site):
    mine, guest = place_guest_while_recalled(site)
    assert alive(site, guest) == [False]
    for scheduler in [*site.schedulers, site.schedulers[0]]:
        assert site.boot(scheduler, vcpus=VCPUS, reservation=mine.id)


def test_control_such_a_guest_would_stay(site, monkeypatch):
    monkeypatch.setattr(lending, 'overfull', lambda *args, **values: {})
    _, guest = place_guest_while_recalled(site)
    assert alive(site, guest) == [True]


def test_a_guest_that_came_too_late_is_notified(site):
    """The notice begins when the manager sees the guest."""
    mine = lends(site, hosts(3, 3))
    site.leases.recall(mine.lease_id, None)
    guest = site.boot(site.schedulers[0], arrives=False, preemptible=True)
    site.look(60)
    site.arrive()
    site.look()
    assert 'blazar_vacate_at' in site.nova.stored[guest.uuid].metadata
    site.look(NOTICE - 1)
    assert alive(site, guest) == [True]
    site.look(1)
    assert alive(site, guest) == [False]


def test_two_guests_are_given_the_last_lent_slot(site):
    mine = lends(site, instances(2, vcpus=2, affinity=True))
    guests = [
        site.boot(
            each, vcpus=2, among=site.lent(mine.id), arrives=False,
            preemptible=True,
        )
        for each in site.schedulers
    ]
    late, _ = site.schedulers
    assert all(guests)
    assert site.boot(late, vcpus=2, reservation=mine.id) is None

    site.settle()

    assert sorted(alive(site, *guests)) == [False, True]
    assert site.boot(late, vcpus=2, reservation=mine.id)


@pytest.mark.parametrize('first', ['owner', 'guest'])
def test_the_owner_and_a_guest_come_to_a_host_that_is_just_lent(site, first):
    """The late scheduler takes the host for the owner's still."""
    mine = lends(site, {**hosts(3, 3), 'lend': False})
    late, fresh = site.schedulers
    site.leases.update(mine.lease_id, None, {'reservations': [
        {'id': mine.id, 'lend': True},
    ]})
    site.look()
    fresh.pull()
    [node, _] = site.lent(mine.id)
    asked = {
        'owner': (late, {'reservation': mine.id}),
        'guest': (fresh, {'preemptible': True}),
    }
    booted = {}
    for who in first, *(asked.keys() - {first}):
        scheduler, kind = asked[who]
        booted[who] = site.boot(
            scheduler, vcpus=2, among=[node], arrives=False, **kind
        )
        assert booted[who]

    site.settle()

    assert alive(site, booted['owner'], booted['guest']) == [True, False]
    assert node not in site.lent(mine.id)
    # The reserve is filled again.
    assert site.boot(late, vcpus=VCPUS, reservation=mine.id)


@pytest.mark.parametrize('point', ['commit', 'vacate'])
def test_the_owner_takes_the_reserve_while_a_manager_looks(site, point):
    mine = lends(site, hosts(3, 3))
    [kept] = set('abc') - set(site.lent(mine.id))
    guests = [
        site.boot(site.schedulers[0], among=[node], preemptible=True)
        for node in site.lent(mine.id)
    ]
    site.look()

    def boot():
        assert site.boot(
            site.schedulers[1], among=[kept], reservation=mine.id
        )
        site.look(manager=site.managers[1])

    with interleaved(site, point, boot) as done:
        if point == 'vacate':
            site.leases.recall(mine.lease_id, None)
        else:
            site.boot(site.schedulers[0], among=[kept], reservation=mine.id)
        site.look()
    assert done
    site.settle()

    left = {'commit': 1, 'vacate': 0}[point]
    assert sum(alive(site, *guests)) == left == len(site.lent(mine.id))
    assert site.lending(mine.id).recalled == {}
    assert site.boot(site.schedulers[0], vcpus=VCPUS, reservation=mine.id)


@pytest.mark.parametrize('names', ['a'])
def test_slots_that_a_lease_gave_up_are_lent_no_more(site):
    """Another lease has the slots before the next look of a manager."""
    mine = lends(site, instances(4, vcpus=1))
    site.leases.update(mine.lease_id, None, {'reservations': [
        {'id': mine.id, 'amount': 1},
    ]})
    site.create(instances(3, vcpus=1), start='now', end=LENGTH)
    site.pull()

    assert site.boot(site.schedulers[0], vcpus=2, preemptible=True) is None


def test_a_closed_host_is_no_reserve(site):
    mine = lends(site, hosts(3, 3))
    for node in site.lent(mine.id):
        assert site.boot(site.schedulers[0], among=[node], preemptible=True)
    site.manager.maintenances.create({
        'name': 'rack', 'reason': 'power', 'start': site.now,
        'end': site.now + LENGTH, 'resource_properties': None,
        'hosts': [*set('abc') - set(site.lent(mine.id))],
    }, True, False)
    site.settle()

    assert site.boot(site.schedulers[0], vcpus=VCPUS, reservation=mine.id)


def _lent(event_type, payload):
    return payload['lent'] if event_type == 'lease.lending' else None


def test_two_managers_notify_once(site, monkeypatch):
    first, second = (
        notified(each, monkeypatch, _lent) for each in site.managers
    )
    mine = lends(site, hosts(3, 3))
    site.boot(site.schedulers[0], reservation=mine.id)
    with interleaved(
        site, 'commit', lambda: site.look(manager=site.managers[1])
    ) as done:
        site.look()
    assert done
    assert sorted(first + second) == [1, 2]


@pytest.mark.parametrize('names', ['a'])
def test_what_a_lease_gave_up_is_told_of(site, monkeypatch):
    told = notified(site.manager, monkeypatch, _lent)
    mine = lends(site, instances(4, vcpus=1))
    site.leases.update(mine.lease_id, None, {'reservations': [
        {'id': mine.id, 'amount': 2},
    ]})
    site.run()
    site.look()
    assert told == [3, 1]


def test_a_lease_that_ends_meanwhile_is_not_told_of(site, monkeypatch):
    told = notified(site.manager, monkeypatch, _lent)
    mine = lends(site, hosts(3, 3))
    site.boot(site.schedulers[0], reservation=mine.id)
    with interleaved(
        site, 'commit', lambda: site.leases.delete(mine.lease_id, None)
    ) as done:
        site.look()
    assert done
    assert told == [2]


@pytest.mark.parametrize('names', ['a'])
def test_the_end_ends_what_is_lent(site):
    """The lease has ended, and its event is not done yet."""
    mine = lends(site, instances(4, vcpus=1))
    [host] = site.lending(mine.id).lent
    site.clock.now += LENGTH
    assert site.ledger.read_replica(
        lambda replica: relocation.taken_now(replica, host, site.now)
    ).total() == 0
