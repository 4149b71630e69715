# SPDX-License-Identifier: Apache-2.0
"""Held offers above a limit, which an administrator approves or refuses."""

import random
import threading

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.parts.limit.exception import MaxHosts
from blazar_sched.parts.offer import manager as offers
from blazar_sched.parts.offer.exception import OfferLapsed
from blazar_sched.parts.offer.exception import OfferNotFound
from blazar_sched.parts.offer.manager import Offers
from blazar_sched.service import faults
from blazar_sched.service.enforcement.admission import Enforcement
from tests.seeds import seeds

HOLD = 60
WORDS = 'a lease may have at most 1 hosts'
CAN_BE_APPROVED = '; an administrator can approve a held offer of the lease'


@pytest.fixture
def conf(conf):
    for name, value in (
        ('enabled_filters', ['MaxSizeFilter', 'MaxLeaseDurationFilter']),
        ('approval_filters', ['MaxSizeFilter']),
        ('max_hosts_per_lease', 1),
        ('max_lease_duration', 1000),
    ):
        conf.set_override(name, value, 'enforcement')
    return conf


@pytest.fixture
def world(world):
    """A cloud with four hosts."""
    for name in 'abcd':
        world.add_host(name, gpu='1')
    return world


@pytest.fixture
def hold(world, whole):
    """hold(hosts) -> an offer that is held, of two hosts by default."""

    def hold(hosts=2, seconds=HOLD, approval=True, **values):
        found = Offers(world.manager).hold({
            'project_id': 'project', 'user_id': 'user',
            'alternatives': [[whole(hosts, hosts)]],
            'start': world.now + 100, 'latest_start': world.now + 100,
            'latest_end': None, 'duration': 100, 'max_duration': None,
            'align': None, 'best': 'earliest', 'limit': 1, 'distance': 1,
            **values,
        }, seconds, approval)
        world.check()
        return next(iter(found['offers']), None)

    return hold


def change(world, offer, project_id=None, **values):
    """Change an offer as an administrator does."""
    shown = Offers(world.manager).update(offer['id'], project_id, {
        'user_id': 'admin', 'approved': None, 'hold': None, **values,
    })
    world.check()
    return shown


def accept(world, offer, manager=None, **values):
    lease = Offers(manager or world.manager).accept({
        'offer': offer['id'], 'name': 'lease', 'project_id': 'project',
        'user_id': 'user', 'before_end': None, **values,
    }, f'offer {offer["id"]}')
    world.check()
    return lease


def refused(world, offer):
    """Return the words of the refusal of an acceptance."""
    with pytest.raises(MaxHosts) as refusal:
        accept(world, offer)
    assert refusal.value.field == 'reservations'
    return str(refusal.value)


@pytest.fixture
def sent(world, monkeypatch):
    """The types and payloads of the notifications that were sent."""
    sent = []
    notifier = world.manager.notifier
    monkeypatch.setattr(notifier, 'is_on', True)
    monkeypatch.setattr(notifier, 'tell', lambda *each: sent.append(each))
    return sent


def test_an_offer_above_a_limit_waits_for_approval(world, whole, hold, sent):
    offer = hold()

    assert (offer['needs_approval'], offer['limited_by']) == (WORDS, 'policy')
    assert refused(world, offer) == WORDS + CAN_BE_APPROVED
    shown = change(world, offer, approved=True)
    # The room is held.
    assert hold(3) is None
    assert (shown['needs_approval'], shown['approved_by']) == (WORDS, 'admin')
    assert Offers(world.manager).list('project') == [shown]
    lease = accept(world, offer)
    assert (lease.status, lease.user_id) == ('PENDING', 'user')
    assert world.lease(lease).approved_by == 'admin'
    assert [(type_, payload['lease_id']) for type_, payload in sent] == [
        ('offer.wait', offer['id']), ('offer.approve', offer['id']),
        ('lease.create', offer['id']),
    ]
    assert sent[0][1]['needs_approval'] == WORDS
    assert sent[1][1]['approved_by'] == 'admin'


def test_an_offer_holds_no_room_before_it_is_approved(
    world, whole, hold, limit
):
    """However many offers wait, again and again, others get the room."""
    limit(max_size_exempt_project_ids=['other'])
    offers = [hold(4) for _ in range(3)]
    lease = world.create(whole(4, 4), project_id='other')
    with pytest.raises(exception.NotEnoughHostsAvailable):
        change(world, offers[0], approved=True, hold=30)
    assert refused(world, offers[0]) == WORDS + CAN_BE_APPROVED
    [shown, *_] = [
        each for each in Offers(world.manager).list(None)
        if each['id'] == offers[0]['id']
    ]
    assert (shown['approved_by'], shown['held_until']) == (
        None, offers[0]['held_until']
    )
    assert shown['reservations'][0]['available'] == 4
    world.leases.delete(lease.id, None)
    change(world, offers[0], approved=True)
    with pytest.raises(exception.NotEnoughHostsAvailable):
        world.create(whole(), project_id='other')
    change(world, offers[0], approved=False)
    world.create(whole(4, 4), project_id='other')


def test_control_with_offers_that_hold_room(world, whole, hold, monkeypatch):
    """The control: an offer above the limit keeps the others out."""
    monkeypatch.setattr(Lease, 'is_waiting', False)
    hold(4)
    with pytest.raises(exception.NotEnoughHostsAvailable):
        world.create(whole(), project_id='other')


def test_an_offer_within_the_limits_needs_no_approval(world, hold, sent):
    offer = hold(1)

    assert (offer['needs_approval'], offer['limited_by']) == (None, None)
    assert accept(world, offer).approved_by is None
    assert [type_ for type_, _ in sent] == ['lease.create']


def test_a_search_tells_what_needs_approval(world, hold, whole, monkeypatch):
    """An offer that no approval would help is limited without words."""
    monkeypatch.setattr(
        Offers, 'hold', lambda self, values, *_: self.search(values)
    )
    for values, limits in (
        ({'hosts': 1}, (None, None)),
        ({'hosts': 2}, (WORDS, 'policy')),
        ({'hosts': 1, 'duration': 1001}, (None, 'policy')),
        ({'hosts': 2, 'duration': 1001}, (None, 'policy')),
    ):
        found = hold(**values)
        assert (found['needs_approval'], found['limited_by']) == limits


def test_other_filters_refuse_the_hold(world, hold):
    for hosts in 1, 2:
        with pytest.raises(exception.MaxLeaseDuration) as refusal:
            hold(hosts, duration=1001)
        assert str(refusal.value) == 'a lease may last at most 1000 seconds'
    assert Offers(world.manager).list(None) == []


def test_an_older_version_holds_nothing_above_a_limit(world, hold):
    with pytest.raises(MaxHosts, match=WORDS):
        hold(approval=False)
    assert Offers(world.manager).list(None) == []


def test_a_lease_above_a_limit_is_refused_in_the_same_words(world, whole):
    with pytest.raises(MaxHosts) as refusal:
        world.create(whole(2, 2))
    assert str(refusal.value) == WORDS + CAN_BE_APPROVED


def test_an_approved_lease_may_shrink_and_may_not_grow(world, whole, hold):
    offer = hold(3)
    change(world, offer, approved=True)
    [reservation] = accept(world, offer).reservations

    def resize(hosts):
        world.leases.update(offer['id'], 'project', {'reservations': [
            {'id': reservation.id, 'min': hosts, 'max': hosts},
        ]})
        world.check()

    # No administrator can approve a change.
    with pytest.raises(MaxHosts, match=f'{WORDS}$'):
        resize(4)
    resize(2)
    with pytest.raises(MaxHosts, match=f'{WORDS}$'):
        resize(3)


@pytest.fixture
def approved(world, hold):
    """A lease of three hosts for a hundred seconds, which was approved."""
    offer = hold(3)
    change(world, offer, approved=True)
    return accept(world, offer)


@pytest.fixture
def update(world, approved):
    """update(**values) -> the approved lease, changed; {id} is filled in."""

    def update(reservations=(), **values):
        [mine] = approved.reservations
        world.leases.update(approved.id, 'project', {
            'reservations': [
                each if 'resource_type' in each else {**each, 'id': mine.id}
                for each in reservations
            ],
            **{
                name: getattr(approved, name) + seconds
                for name, seconds in values.items()
            },
        })
        world.check()
        return world.lease(approved)

    return update


GPUS = '["==", "$gpu", "1"]'
MORE = [
    {'start': 86400, 'end': 86400}, {'end': 1}, {'start': -1},
    {'reservations': [{'resource_properties': GPUS}]},
    {'reservations': [{'projects': ['other']}]},
    {'reservations': [
        {'remove': True},
        {'resource_type': 'physical:host', 'min': 3, 'max': 3},
    ]},
    {'reservations': [{'min': 2, 'max': 2, 'resource_properties': GPUS}]},
    {'start': 10, 'end': 10, 'reservations': [{'min': 2, 'max': 2}]},
]


@pytest.mark.parametrize('values', MORE)
def test_an_approval_is_for_nothing_else(world, approved, update, values):
    with pytest.raises(MaxHosts, match=f'{WORDS}$'):
        update(**values)
    assert world.lease(approved).approved_by == 'admin'


@pytest.mark.parametrize('values', MORE)
def test_control_with_a_comparison_of_numbers(update, monkeypatch, values):
    """The control: an approval is used for something else."""
    monkeypatch.setattr(Lease, 'is_within', lambda new, old: (
        sum(r.demand.most for r in new.reservations)
        <= sum(r.demand.most for r in old.reservations)
    ))
    assert update(**values).approved_by == 'admin'


@pytest.mark.parametrize('values', [
    {'start': 10}, {'end': -10}, {'reservations': [{'min': 2, 'max': 2}]},
    {'start': 10, 'end': -10, 'reservations': [{'min': 2, 'max': 3}]},
    {'reservations': [{'on_end': 'keep', 'labels': {'a': 'b'}}]},
])
def test_an_approved_lease_may_become_less(update, values):
    assert update(**values).approved_by == 'admin'


def test_a_lease_within_the_limits_needs_its_approval_no_longer(update):
    lease = update(end=800, reservations=[{'min': 1, 'max': 1}])
    assert lease.approved_by is None


def test_an_approval_is_taken_back(world, hold, sent):
    offer = hold()
    change(world, offer, approved=True)
    shown = change(world, offer, approved=False)

    assert shown['approved_by'] is None
    assert refused(world, offer) == WORDS + CAN_BE_APPROVED
    assert [type_ for type_, _ in sent] == [
        'offer.wait', 'offer.approve', 'offer.refuse',
    ]


@pytest.mark.parametrize('project_id, told', [
    (None, ['offer.wait', 'offer.refuse']), ('project', ['offer.wait']),
])
def test_an_administrator_refuses_by_deleting(
    world, hold, sent, project_id, told
):
    offer = hold()
    Offers(world.manager).delete(offer['id'], project_id)

    assert hold(4) is not None
    assert [type_ for type_, _ in sent[:-1]] == told


def test_an_offer_is_held_longer(world, hold, conf):
    conf.set_override('max_offer_hold', 90, 'manager')
    offer = hold()
    world.run(HOLD - 1)
    with pytest.raises(exception.InvalidInput) as refusal:
        change(world, offer, approved=True, hold=91)
    assert refusal.value.field == 'hold'
    # Nothing was changed.
    [shown] = Offers(world.manager).list(None)
    assert (shown['held_until'], shown['approved_by']) == (
        offer['held_until'], None
    )
    assert change(world, offer, hold=90)['held_until'] == world.now + 90
    world.run(89)
    assert change(world, offer, hold=90)['held_until'] == offer['end']
    world.run(offer['end'] - world.now)
    assert Offers(world.manager).list(None) == []
    world.check()


def test_another_project_approves_nothing(world, hold):
    """As a role may that the policy lets approve, but not see all."""
    offer = hold()
    with pytest.raises(OfferNotFound):
        change(world, offer, project_id='another', approved=True)
    assert change(
        world, offer, project_id='project', approved=True
    )['approved_by'] == 'admin'


class TestLimitsOfProjects:
    @pytest.fixture
    def conf(self, conf):
        conf.clear_override('max_hosts_per_lease', 'enforcement')
        conf.set_override('max_hosts_per_project', 2, 'enforcement')
        return conf

    def test_a_waiting_offer_counts_as_a_lease(self, world, whole, hold):
        """The project gets no more than what the administrator has seen."""
        first, waiting = hold(1), hold(3)
        assert first['needs_approval'] is None
        assert waiting['needs_approval'] is not None
        with pytest.raises(MaxHosts):
            world.create(whole(), start=900, end=950)
        limits = world.manager.enforcement.limits('project')
        used = {each['name']: each['used'] for each in limits}
        assert used['max_hosts_per_project'] == 4
        Offers(world.manager).delete(waiting['id'], 'project')
        accept(world, first)
        world.create(whole(), start=900, end=950)

    def test_without_the_limit_no_approval_is_needed(self, world, hold, limit):
        offer = hold(3)
        limit(max_hosts_per_project=3)
        assert accept(world, offer).approved_by is None

    def test_a_limit_that_is_lowered_after_the_approval(
        self, world, hold, limit
    ):
        approved, plain = hold(1), hold(1)
        change(world, approved, approved=True)
        limit(max_hosts_per_project=0)
        accept(world, approved)
        assert '0 hosts' in refused(world, plain)
        change(world, plain, approved=True)
        accept(world, plain)

    def test_another_limit_that_is_lowered_after_the_approval(
        self, world, hold, limit
    ):
        offer = hold(3)
        change(world, offer, approved=True)
        limit(max_lease_duration=99)
        with pytest.raises(exception.MaxLeaseDuration):
            accept(world, offer)
        assert world.ledger.leases() == []


class TestAtOnce:
    def test_an_approval_while_the_offer_lapses(self, world, hold):
        """Without more time, the offer is gone."""
        offer = hold()
        self.at(world, 'lapse_offer:worked', lambda: change(
            world, offer, approved=True
        ))
        assert Offers(world.manager).list(None) == []
        with pytest.raises(OfferLapsed):
            accept(world, offer)
        with pytest.raises(OfferNotFound):
            change(world, offer, approved=True)

    @pytest.mark.parametrize('point', ['claimed', 'worked'])
    def test_more_time_while_the_offer_lapses(self, world, hold, point):
        offer = hold()
        self.at(world, f'lapse_offer:{point}', lambda: change(
            world, offer, approved=True, hold=HOLD
        ))
        assert accept(world, offer).status == 'PENDING'
        world.run(HOLD)
        assert len(world.ledger.leases()) == 1
        world.check()

    @staticmethod
    def at(world, point, work):
        done = []

        def reached(name):
            if name == point and not done:
                done.append(point)
                work()

        faults.arm(reached)
        try:
            world.run(HOLD)
        finally:
            faults.arm(None)
        assert done

    @pytest.fixture
    def taking_back(self, world, conf, hold, monkeypatch):
        """taking_back(read) -> what became of the two, and the lease.

        The approval is taken back once the acceptance has read the offer by
        `read`, a function of the original function and its arguments.
        """
        offer = hold()
        change(world, offer, approved=True)
        outcomes = []

        def take_back():
            try:
                Offers(self.managers[1]).update(offer['id'], None, {
                    'user_id': 'admin', 'approved': False, 'hold': None,
                })
                outcomes.append('taken back')
            except OfferNotFound:
                outcomes.append('gone')

        self.managers = world.manager, world.another(conf)
        other = threading.Thread(target=take_back)
        still_held = offers._still_held

        def run(read):
            def overlapping(*args):
                held = still_held(*args)
                other.start()
                other.join(0.5)
                return held

            if read == 'in the commit':
                monkeypatch.setattr(offers, '_still_held', overlapping)
            else:
                held = overlapping(world.ledger, {
                    'offer': offer['id'], 'project_id': 'project',
                }, world.now)
                monkeypatch.setattr(offers, '_still_held', lambda *_: held)
            lease = accept(world, offer)
            other.join(60)
            return outcomes, lease

        return run

    def test_an_acceptance_while_the_approval_is_taken_back(self, taking_back):
        outcomes, lease = taking_back('in the commit')
        assert (outcomes, lease.approved_by) == (['gone'], 'admin')

    def test_control_with_an_offer_that_was_read_ahead(self, taking_back):
        """The control: the lease is made without an approval."""
        outcomes, lease = taking_back('ahead')
        assert (outcomes, lease.approved_by) == (['taken back'], 'admin')

    def test_two_acceptances_of_two_managers(self, world, conf, hold):
        offer = hold()
        change(world, offer, approved=True)
        both, got = threading.Barrier(2), []

        def run(manager):
            both.wait()
            got.append(accept(world, offer, manager))

        threads = [
            threading.Thread(target=run, args=(manager,))
            for manager in (world.manager, world.another(conf))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert got[0] == got[1]
        assert [lease.id for lease in world.ledger.leases()] == [offer['id']]


@pytest.mark.parametrize('names', [['MaxLeasesFilter'], ['none']])
def test_a_filter_that_cannot_be_lifted_is_refused(world, conf, limit, names):
    limit(enabled_filters=['MaxSizeFilter'], approval_filters=names)
    with pytest.raises(ValueError, match=f'approval_filters: {names[0]}'):
        Enforcement(conf, world.ledger)


class History:
    """Random requests, each judged by an account with the guide's rules."""

    def __init__(self, world, whole, hold, set_limit, seed):
        self.world = world
        self.draw = random.Random(seed)
        self._whole = whole
        self._hold = hold
        self._set_limit = set_limit
        self.limit = 3
        self._windows = iter(range(1000, 10 ** 6, 200))
        # By id: the project and the hosts; of offers also whether they wait,
        # whether they are approved, and when they lapse.
        self.leases = {}
        self.offers = {}

    def used(self, project, but=None):
        leases = [
            hosts for id_, (owner, hosts) in self.leases.items()
            if owner == project and id_ != but
        ]
        counted = [
            each['hosts'] for id_, each in self.offers.items()
            if each['project'] == project and id_ != but
        ]
        return sum(leases) + sum(counted)

    def fits(self, project, hosts, but=None):
        return self.used(project, but) + hosts <= self.limit

    def asked(self):
        return self.draw.choice(['p1', 'p2']), self.draw.randint(1, 4)

    def some(self, of):
        return self.draw.choice([*of, 'b1f5d6c4-0000-4000-8000-000000000000'])

    def does(self, work, *refusals):
        try:
            return work()
        except refusals as e:
            self.world.check()
            assert str(self.limit) in str(e)
            return None

    def holds(self):
        project, hosts = self.asked()
        offer = self._hold(
            hosts, project_id=project, latest_start=None,
            start=self.world.now + next(self._windows),
        )
        waits = not self.fits(project, hosts)
        assert (offer['needs_approval'] is not None) == waits
        self.offers[offer['id']] = {
            'project': project, 'hosts': hosts, 'waits': waits,
            'approved': False, 'until': self.world.now + HOLD,
        }

    def creates(self):
        project, hosts = self.asked()
        start = next(self._windows)
        made = self.does(lambda: self.world.create(
            self._whole(hosts, hosts), project_id=project, start=start,
            end=start + 100,
        ), MaxHosts)
        assert (made is not None) == self.fits(project, hosts)
        if made:
            self.leases[made.id] = project, hosts

    def accepts(self):
        id_ = self.some(self.offers)
        known = self.offers.get(id_)
        if known is None:
            with pytest.raises(OfferLapsed):
                accept(self.world, {'id': id_})
            return
        made = self.does(lambda: accept(
            self.world, {'id': id_}, project_id=known['project']
        ), MaxHosts)
        assert (made is not None) == (
            known['approved']
            or self.fits(known['project'], known['hosts'], id_)
        )
        if made:
            del self.offers[id_]
            self.leases[id_] = known['project'], known['hosts']

    def changes(self):
        id_ = self.some(self.offers)
        scope = self.draw.choice(['p1', None, None])
        approved = self.draw.choice([True, True, False, None])
        seconds = self.draw.choice([None, 10, HOLD])
        known = self.offers.get(id_)
        if known is None or scope not in (None, known['project']):
            with pytest.raises(OfferNotFound):
                change(self.world, {'id': id_}, scope, approved=approved)
            return
        change(self.world, {'id': id_}, scope, approved=approved, hold=seconds)
        if approved is not None:
            known['approved'] = approved
        if seconds is not None:
            known['until'] = self.world.now + seconds

    def deletes(self):
        id_ = self.some(self.offers)
        if self.offers.pop(id_, None):
            Offers(self.world.manager).delete(id_, None)

    def ends(self):
        if self.leases:
            id_ = self.draw.choice(list(self.leases))
            del self.leases[id_]
            self.world.leases.delete(id_, None)

    def resizes(self):
        if not self.leases:
            return
        id_ = self.draw.choice(list(self.leases))
        (project, had), hosts = self.leases[id_], self.draw.randint(1, 4)
        [reservation] = self.world.ledger.lease(id_).reservations
        asked = {'id': reservation.id, 'min': hosts, 'max': hosts}
        done = self.does(lambda: self.world.leases.update(
            id_, None, {'reservations': [asked]}
        ), MaxHosts)
        assert (done is not None) == (
            hosts <= had or self.fits(project, hosts, id_)
        )
        if done:
            self.leases[id_] = project, hosts

    def waits(self):
        self.world.run(self.draw.randint(1, 30))
        for id_, each in list(self.offers.items()):
            if each['until'] <= self.world.now:
                del self.offers[id_]

    def limits(self):
        self.limit = self.draw.randint(0, 8)
        self._set_limit(max_hosts_per_project=self.limit)


@pytest.mark.parametrize('seed', seeds(20, few=2))
def test_random_histories(world, conf, whole, hold, limit, seed):
    """Nothing above the limit but what an administrator has approved."""
    conf.set_override('max_held_offers', 100, 'manager')
    history = History(world, whole, hold, limit, seed)
    limit(max_hosts_per_lease=-1, max_hosts_per_project=history.limit)
    for _ in range(60):
        history.draw.choice([
            *3 * [history.holds], history.creates, *2 * [history.accepts],
            *3 * [history.changes], history.deletes, history.ends,
            history.resizes, history.waits, history.limits,
        ])()
        assert {
            each['id']: bool(each['approved_by'])
            for each in Offers(world.manager).list(None)
        } == {id_: each['approved'] for id_, each in history.offers.items()}
        assert {
            lease.id for lease in world.ledger.leases()
        } == history.leases.keys()
    world.check()
