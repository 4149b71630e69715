# SPDX-License-Identifier: Apache-2.0
"""Dedicated hosts in Nova's aggregates, whatever fails meanwhile.

At any moment each host is in the freepool or in a reservation's aggregate: it
is never open to all servers.
"""

import pytest

from blazar_sched.domain import exception
from tests.functional.manager.conftest import hosts
from tests.functional.manager.managed_cloud import ManagedCloud
from tests.standins.rest import answer
from tests.standins.rest import Trouble

TROUBLES = {
    'fails': lambda: Trouble(False, answer(500)),
    'is done and fails': lambda: Trouble(True, answer(500)),
    'is done and times out': lambda: Trouble(True),
}


class DedicatedCloud(ManagedCloud):
    """A cloud whose dedicated hosts are checked before each request."""

    def have_trouble(self, make, unlucky):
        """Make the request of a number, from now on, fail."""
        met = []
        asked = iter(range(10**6))

        def meddle(method, path):
            self.check()
            if next(asked) != unlucky:
                return None
            met.append(path)
            return make()

        self.cloud.meddle = meddle
        return met

    def members(self):
        return {
            a['name']: set(a['hosts']) for a in self.cloud.aggregates.values()
        }

    def check(self):
        somewhere = set().union(*self.members().values())
        assert somewhere >= {
            h.service_name for h in self.ledger.hosts() if h.hold != 'shared'
        }

    def until_done(self, do):
        """Repeat a request while it raises Unavailable."""
        while True:
            try:
                return do()
            except exception.Unavailable:
                continue

    def live(self):
        """Run a lease of a whole host from its creation to its end."""
        lease = self.create(hosts(), start='now', end=1000)
        [(held, _)] = self.ledger.allocations(lease_id=lease.id)
        mine = {n for n in 'ab' if self.cloud.uuid(n) == held.host}
        self.run_until(lease, 'ACTIVE')
        assert self.members() == {
            'freepool': set('ab') - mine, lease.reservations[0].id: mine,
        }
        self.clock.now += 1000
        self.run_until(lease, 'TERMINATED')
        assert self.members() == {'freepool': set('ab')}


@pytest.fixture
def site(conf, world):
    site = DedicatedCloud(conf, world.clock, 'a', 'b', wait=world.wait)
    yield site
    site.ledger.close()


@pytest.mark.row('C11')
@pytest.mark.parametrize('trouble', TROUBLES)
def test_dedicated_host_is_never_open_while_it_is_reserved_and_given_back(
    site, trouble
):
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
def test_dedicated_host_is_never_open_while_it_is_registered_and_deleted(
    site, trouble
):
    unlucky = 0
    while True:
        met = site.have_trouble(TROUBLES[trouble], unlucky)
        host = site.until_done(
            lambda: site.manager.hosts.create('a', {'hold': 'dedicated'})
        )
        names = {p['name'] for p in site.cloud.providers.values()}
        assert 'blazar_a' in names
        assert site.members() == {'freepool': {'a'}}
        site.cloud.meddle = lambda method, path: None
        site.manager.hosts.delete(host.id)
        assert site.members() == {'freepool': set()}
        unlucky += 1
        if not met:
            break
    assert unlucky > 5
