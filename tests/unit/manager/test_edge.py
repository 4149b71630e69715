# SPDX-License-Identifier: Apache-2.0
"""A lease's start and end, whatever Nova and Placement answer meanwhile."""

import re

import pytest

from blazar_sched.domain import exception
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.clients import placement as placement_
from blazar_sched.service.manager import manager as manager_
from tests.unit.manager import edge as edge_

# What can go wrong with any request, and what with some.
ANYWHERE = {
    'fails': lambda: edge_.Trouble(False, edge_.answer(500)),
    'is done and fails': lambda: edge_.Trouble(True, edge_.answer(500)),
    'is done and times out': lambda: edge_.Trouble(True),
    'meets a proxy': lambda: edge_.Trouble(False, edge_.answer(200)),
}
SOMEWHERE = {
    'another has done it': lambda: edge_.Trouble(True, edge_.answer(404)),
    'conflicts': lambda: edge_.Trouble(False, edge_.answer(409, {})),
    'is overtaken': lambda: edge_.Trouble(
        False, edge_.conflict('placement.concurrent_update')
    ),
}
# Where Nova and Placement can answer so.
WHERE = {
    'meets a proxy': 'GET .*',
    'another has done it': 'DELETE .*',
    'conflicts': (
        'POST /flavors|POST /resource_providers|DELETE /servers/.*'
        '|DELETE /resource_classes/.*'
    ),
    'is overtaken': 'PUT /resource_providers/.*',
}
WHOLE = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
SLOTS = {
    'resource_type': 'virtual:instance',
    'vcpus': 2,
    'memory_mb': 512,
    'disk_gb': 1,
    'amount': 3,
}


class Site:
    """A manager over both services; `live` takes a lease through its life."""

    def __init__(self, conf, world):
        self.edge = edge_.Edge('a', 'b')
        self.clock = world.clock
        self.manager = manager_.Manager(
            conf, nova_.Nova(self.edge), placement_.Placement(self.edge),
            self.clock, self.clock.monotonic, world.wait,
        )
        self.ledger = self.manager.ledger
        for name in 'ab':
            self.manager.hosts.create(name, {})

    def create(self):
        now = self.clock.now
        return self.manager.leases.create(
            {
                'name': 'lease',
                'project_id': 'project',
                'user_id': 'user',
                'start': 'now',
                'end': now + 1000,
                'before_end': None,
                'reservations': [WHOLE, SLOTS],
            }
        )

    def run_until(self, lease, status):
        """Let time pass until the lease is so, within ten minutes."""
        until = self.clock.now + 600
        while self.ledger.lease(lease.id).status != status:
            assert self.clock.now < until
            for event, claim in self.ledger.due_events(self.clock.now):
                self.manager.runner.run(event, claim)
            self.clock.now += 5

    def live(self):
        """Return what there was in the window, and what was left of it."""
        lease = self.create()
        whole, slots = lease.reservations
        held = {
            a.reservation_id: a
            for a, _ in self.ledger.allocations(lease_id=lease.id)
        }
        node = next(
            name for name in 'ab'
            if self.edge.uuid(name) == held[whole.id].host
        )
        self.edge.add_server(node, 'yields', lifetime='1')
        self.run_until(lease, 'ACTIVE')
        assert self.edge.servers == {}
        inside = [
            str(part).replace(slots.id, 'ID').replace(
                placement_.resource_class(slots.id), 'CLASS'
            ).replace(f'blazar_{"ab"[node == "a"]}', 'CHILD')
            for part in self.edge.left()
        ]
        self.edge.add_server(node, 'project')
        self.edge.add_server(node, 'project', reservation=whole.id)
        self.edge.add_server('x', 'project', reservation=slots.id)
        self.clock.now += 1000
        self.run_until(lease, 'TERMINATED')
        return inside, self.edge.left()


@pytest.fixture
def site(conf, world):
    site = Site(conf, world)
    yield site
    site.ledger.close()


def test_without_trouble(site):
    inside, left = site.live()
    assert [len(part) > 5 for part in inside] == [
        True, True, False, True, True,
    ]
    assert not any(left)


@pytest.mark.parametrize('trouble', [*ANYWHERE, *SOMEWHERE])
def test_one_request_meets_trouble(site, trouble):
    """Each of them in turn: the lease gets all of it, and leaves nothing."""
    site.edge.asked.clear()
    healthy = site.live()
    number = len(site.edge.asked)
    assert number > 20
    make = (ANYWHERE | SOMEWHERE)[trouble]
    met = 0
    for unlucky in range(number):
        passed = iter(range(10**6))

        def meddle(method, path, unlucky=unlucky, passed=passed):
            nonlocal met
            here = re.fullmatch(WHERE.get(trouble, '.*'), f'{method} {path}')
            if next(passed) != unlucky or not here:
                return None
            met += 1
            return make()

        site.edge.meddle = meddle
        assert site.live() == healthy, site.edge.asked[-number:]
    assert met > 0


def test_a_server_that_cannot_be_deleted_now_keeps_no_other(site):
    ids = [site.edge.add_server('a', 'project') for _ in range(3)]
    nova = nova_.Nova(site.edge)

    def meddle(method, path):
        if method == 'DELETE' and path.endswith(ids[0]):
            return edge_.Trouble(False, edge_.answer(409))
        return None

    site.edge.meddle = meddle
    with pytest.raises(exception.Unavailable, match=ids[0]):
        nova.delete_servers(nova.servers())
    assert list(site.edge.servers) == [ids[0]]


def test_inventory_that_is_refused_is_no_success(site):
    """In use by more than is left, or whatever else Placement may say."""
    placement = placement_.Placement(site.edge)
    placement.create_resource_class('CUSTOM_X')
    site.edge.meddle = lambda method, path: (
        edge_.Trouble(False, edge_.conflict('placement.undefined_code'))
        if method == 'PUT'
        else None
    )
    with pytest.raises(exception.Unavailable):
        placement.set_inventory(site.edge.uuid('a'), 'a', 'CUSTOM_X', 1)


def test_a_child_that_goes_meanwhile_has_no_inventory(site):
    placement = placement_.Placement(site.edge)
    placement.create_resource_class('CUSTOM_X')
    for on in ('GET', 'PUT'):
        placement.set_inventory(site.edge.uuid('a'), 'a', 'CUSTOM_X', 1)

        def meddle(method, path, on=on):
            if method == on and path.endswith('/inventories'):
                for id_, provider in list(site.edge.providers.items()):
                    if provider['parent']:
                        del site.edge.providers[id_]

        site.edge.meddle = meddle
        assert placement.remove_inventory('a', 'CUSTOM_X')
        site.edge.meddle = lambda method, path: None
