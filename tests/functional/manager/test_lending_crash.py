# SPDX-License-Identifier: Apache-2.0
"""A manager is killed at any step of lending; another manager continues.

The manager is killed after each commit, and after each request that changes
something in Nova or Placement. Nothing but its memory is lost between these
points.
"""

import contextlib
import itertools
import shutil

import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.domain import exception
from blazar_sched.domain.lending import Lending
from blazar_sched.service import faults
from blazar_sched.service.bus.notifier import Notifier
from tests.functional.manager.conftest import hosts
from tests.functional.manager.conftest import instances
from tests.functional.manager.conftest import Killed
from tests.functional.manager.conftest import ManagerInMemory

ASKED = {
    # By kind: the reservation, and a change to less.
    'hosts': (hosts(4, 4, lend=True), {'min': 1, 'max': 3}),
    'slots': (instances(4, vcpus=8, lend=True), {'amount': 3}),
}
CHANGING = {
    'nova': (
        'set_server_metadata', 'delete_servers', 'create_flavor',
        'add_to_aggregate', 'remove_from_aggregate', 'delete_flavor',
        'delete_aggregate',
    ),
    'placement': ('cut_inventory', 'set_inventory', 'remove_inventory'),
}
NOTICE = 10
PAUSE = 5
# Steps of PAUSE until a stage is over, also after the claim of an event has
# been taken over.
PATIENCE = 60


class Story:
    """A lease that lends, from its start to its end, with preemptible servers.

    :param fatal: the number of the point at which the manager is killed; None
        for no point
    """

    def __init__(self, conf, kind, fatal=None):
        self.world = ManagerInMemory(conf)
        self.conf = conf
        self.points = []
        self._watching = False
        self.told = []
        self.asked, self.less = ASKED[kind]
        self._fatal = fatal
        for name in 'abcd':
            self.world.add_host(name)
        for service, names in CHANGING.items():
            there = getattr(self.world, service)
            for name in names:
                setattr(there, name, self._fragile(
                    f'{service}:{name}', getattr(there, name)
                ))

    def hit(self, point):
        if self._watching and point.endswith(':after'):
            self.points.append(point)
            if len(self.points) - 1 == self._fatal:
                raise Killed

    def _fragile(self, point, real):
        def call(*args):
            answer = real(*args)
            self.hit(f'{point}:after')
            return answer

        return call

    def tell(self, notifier, event_type, payload):
        if event_type == 'lease.lending':
            self.told.append(payload['lent'])

    def play(self):
        lease = self.world.create(self.asked, start='now', end=90_000)
        self.id, self.reservation = lease.id, lease.reservations[0].id
        self.world.run()
        self._watching = True
        self._stage(lambda: None, lambda: self._lent() == 3)
        guests = [
            self._boot(name, preemptible=True) for name in 'abcd'
            if name in self._names(self._lending().lent)
        ]
        [kept] = set('abcd') - set(self._names(self._lending().lent))

        self._boot(kept, reservation_id=self.reservation)
        self._stage(lambda: None, lambda: self._lent() == 2)
        assert self._alive(guests) == 2
        self._stage(lambda: self._update(**self.less), lambda: (
            len(self.world.held(self.world.lease(lease))) == 3
            and self._lent() == 1
        ))
        self._stage(lambda: self.world.leases.recall(self.id, None), (
            lambda: self._lent() == 0
        ))
        inside = self._names({h: 1 for _, h, _ in self.world.held(lease)})
        assert not any(
            each.node in inside for each in self._stored() if each.preemptible
        )
        self._stage(
            lambda: self._update(lend=True), lambda: self._lent() == 1
        )
        [borrowed] = self._names(self._lending().lent)
        last = self._boot(borrowed, preemptible=True)
        self._stage(
            lambda: self.world.leases.update(
                self.id, None, {'end': 'now'}
            ),
            lambda: self.world.lease(lease).status == 'TERMINATED',
        )
        assert last in self._stored()
        assert not any(each.reservation_id for each in self._stored())
        self._check_end()

    def _check_end(self):
        world = self.world
        assert world.ledger.check() == []
        assert world.ledger.allocations() == []
        assert not world.ledger.replica or not world.ledger.replica.lent
        assert not (
            world.nova.made_flavors or world.nova.aggregates
            or world.placement.children
        )

    def _stage(self, request, goal):
        """Make a request and let time pass until a goal is reached."""
        asked = False
        for _ in range(PATIENCE):
            try:
                if not asked:
                    # The claim of the killed manager may still be there.
                    with contextlib.suppress(exception.InvalidStatus):
                        request()
                        asked = True
                self._pass()
            except Killed:
                self.world.begin(self.conf)
            if asked and goal():
                return
        raise AssertionError('the stage does not end')

    def _pass(self):
        self.world.run(PAUSE)
        # What the records of the servers are written for is not lending.
        self._watching = False
        self.world.manager.instances.sync()
        self._watching = True
        self.world.manager.lendings.step()
        self.world.run()

    def _update(self, **values):
        self.world.leases.update(self.id, None, {
            'reservations': [{'id': self.reservation, **values}],
        })

    def _boot(self, name, **values):
        return self.world.add_server(
            name, 'project', vcpus=8, created=self.world.now, **values
        )

    def _lending(self):
        [reservation] = self.world.ledger.lease(self.id).reservations
        return Lending.decode(reservation.made)

    def _lent(self):
        """Return how many units are lent, None while any has to come back."""
        known = self._lending()
        return None if known.recalled else sum(known.lent.values())

    def _names(self, units):
        names = {
            h.uuid: h.hypervisor_hostname for h in self.world.ledger.hosts()
        }
        return {names[host] for host in units}

    def _stored(self):
        return list(self.world.nova.stored.values())

    def _alive(self, servers):
        return sum(each.uuid in self.world.nova.stored for each in servers)


@pytest.fixture
def play(empty_ledger, tmp_path, monkeypatch):
    """play(kind, fatal=None) plays a story to its end, and returns it."""
    numbers = itertools.count()

    def play(kind, fatal=None):
        path = tmp_path / f'{next(numbers)}.sqlite'
        shutil.copy(empty_ledger, path)
        conf = service_conf.load(files=[])
        conf.set_override('connection', f'sqlite:///{path}', 'database')
        conf.set_override('transport_url', 'fake://')
        for name, value in (
            ('lend_after', 0), ('lend_notice', NOTICE),
            ('vacate_lead_time', 0),
            ('vacate_preemptible_order', ['delete']),
        ):
            conf.set_override(name, value, 'manager')
        story = Story(conf, kind, fatal)
        monkeypatch.setattr(
            Notifier, '_put', lambda *args: story.tell(*args)
        )
        faults.arm(story.hit)
        try:
            story.play()
        finally:
            faults.arm(None)
            story.world.ledger.close()
        return story

    return play


@pytest.mark.row('F110')
@pytest.mark.parametrize('kind', ASKED)
@pytest.mark.parametrize('pace', [
    23, pytest.param(1, marks=pytest.mark.more),
])
def test_another_manager_continues(play, kind, pace):
    undisturbed = play(kind)
    told = undisturbed.told
    assert told == [3, 2, 1, 0, 1]
    for fatal in range(0, len(undisturbed.points), pace):
        story = play(kind, fatal)
        # One notification may be lost.
        assert story.told in [told, *(
            [*told[:n], *told[n + 1:]] for n in range(len(told))
        )], story.points[fatal]
