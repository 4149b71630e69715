# SPDX-License-Identifier: Apache-2.0
"""Dedicated hosts in Nova's aggregates, whatever goes wrong on the way.

At any moment each is in the pool or in a reservation's aggregate: it is never
free for all.
"""

import pytest

from blazar_sched.domain import exception
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.manager.manager import Manager
from tests.functional.manager import edge
from tests.functional.manager.edge import Edge
from tests.functional.manager.edge import Trouble

TROUBLES = {
    'fails': lambda: Trouble(False, edge.answer(500)),
    'is done and fails': lambda: Trouble(True, edge.answer(500)),
    'is done and times out': lambda: Trouble(True),
}


class Site:
    """A manager over both services, with two compute hosts."""

    def __init__(self, conf, world):
        self.edge = Edge('a', 'b')
        self.clock = world.clock
        self.manager = Manager(
            conf, Nova(self.edge), Placement(self.edge),
            self.clock, self.clock.monotonic, world.wait,
        )
        self.ledger = self.manager.ledger

    def have_trouble(self, make, unlucky):
        """Have the request of that number, from now on, meet trouble."""
        met = []
        asked = iter(range(10**6))

        def meddle(method, path):
            self.check()
            if next(asked) != unlucky:
                return None
            met.append(path)
            return make()

        self.edge.meddle = meddle
        return met

    def members(self):
        return {
            a['name']: set(a['hosts']) for a in self.edge.aggregates.values()
        }

    def check(self):
        somewhere = set().union(*self.members().values())
        assert somewhere >= {
            h.service_name for h in self.ledger.hosts() if h.hold != 'shared'
        }

    def until_done(self, do):
        """Do it until nobody is told to try again."""
        while True:
            try:
                return do()
            except exception.Unavailable:
                continue

    def run_until(self, lease, status):
        until = self.clock.now + 600
        while self.ledger.lease(lease.id).status != status:
            assert self.clock.now < until
            for event, claim in self.ledger.due_events(self.clock.now):
                self.manager.runner.run(event, claim)
            self.clock.now += 5

    def live(self):
        """Take a lease of a whole host through its life."""
        lease = self.manager.leases.create(
            {
                'name': 'lease',
                'project_id': 'project',
                'user_id': 'user',
                'start': 'now',
                'end': self.clock.now + 1000,
                'before_end': None,
                'reservations': [
                    {'resource_type': 'physical:host', 'min': 1, 'max': 1}
                ],
            }
        )
        [(held, _)] = self.ledger.allocations(lease_id=lease.id)
        mine = {n for n in 'ab' if self.edge.uuid(n) == held.host}
        self.run_until(lease, 'ACTIVE')
        assert self.members() == {
            'freepool': set('ab') - mine, lease.reservations[0].id: mine,
        }
        self.clock.now += 1000
        self.run_until(lease, 'TERMINATED')
        assert self.members() == {'freepool': set('ab')}


@pytest.fixture
def site(conf, world):
    site = Site(conf, world)
    yield site
    site.ledger.close()


@pytest.mark.row('C11')
@pytest.mark.parametrize('trouble', TROUBLES)
def test_reserved_and_given_back(site, trouble):
    for name in 'ab':
        site.manager.hosts.create(name, {'hold': 'dedicated'})
    unlucky = 0
    while True:
        met = site.have_trouble(TROUBLES[trouble], unlucky)
        site.live()
        unlucky += 1
        if not met:
            break
    assert unlucky > 10


@pytest.mark.row('C11')
@pytest.mark.parametrize('trouble', TROUBLES)
def test_registered_and_given_up(site, trouble):
    unlucky = 0
    while True:
        met = site.have_trouble(TROUBLES[trouble], unlucky)
        host = site.until_done(
            lambda: site.manager.hosts.create('a', {'hold': 'dedicated'})
        )
        names = {p['name'] for p in site.edge.providers.values()}
        assert 'blazar_a' in names
        assert site.members() == {'freepool': {'a'}}
        site.edge.meddle = lambda method, path: None
        site.manager.hosts.delete(host.id)
        assert site.members() == {'freepool': set()}
        unlucky += 1
        if not met:
            break
    assert unlucky > 5
