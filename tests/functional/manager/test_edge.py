# SPDX-License-Identifier: Apache-2.0
"""A lease's start and end, whatever Nova and Placement respond."""

import itertools
import re

import pytest

from blazar_sched.domain import exception
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.clients.placement import resource_class
from tests.functional.manager.managed_cloud import ManagedCloud
from tests.standins.cloud import Acting
from tests.standins.rest import answer
from tests.standins.rest import conflict
from tests.standins.rest import Trouble

# The faults of any request, and the faults of some requests.
ANYWHERE = {
    'fails': lambda: Trouble(False, answer(500)),
    'is done and fails': lambda: Trouble(True, answer(500)),
    'is done and times out': lambda: Trouble(True),
    'meets a proxy': lambda: Trouble(False, answer(200)),
}
SOMEWHERE = {
    'another has done it': lambda: Trouble(True, answer(404)),
    'conflicts': lambda: Trouble(False, answer(409, {})),
    'is overtaken': lambda: Trouble(
        False, conflict('placement.concurrent_update')
    ),
}
# The requests for which Nova and Placement can respond so.
WHERE = {
    'meets a proxy': 'GET .*',
    'another has done it': 'DELETE .*|POST /servers/.*/action',
    'conflicts': (
        'POST /flavors|POST /os-aggregates|POST /resource_[a-z]+'
        '|POST /servers/.*/action|DELETE /resource_classes/.*'
        '|PUT /allocations/.*'
    ),
    'is overtaken': 'PUT /resource_providers/.*',
}
WHOLE = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
SLOTS = {
    'resource_type': 'virtual:instance', 'vcpus': 2, 'memory_mb': 512,
    'disk_gb': 1, 'amount': 3, 'affinity': True, 'projects': ['friend'],
}
_UUID = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')


class Trusts:
    """A Keystone in which the creators of leases trust the service."""

    cloud = None

    def adapter_for(self, trust_id, service_type):
        assert (trust_id, service_type) == ('trust', 'compute')
        return Acting(self.cloud, 'project')

    def delete_trust(self, trust_id):
        pass

    def limits(self):
        return {}


class CloudWithTrusts(ManagedCloud):
    """A cloud with trusts; `live` runs a lease from its creation to its end.
    """

    def __init__(self, conf, world):
        trusts = Trusts()
        super().__init__(
            conf, world.clock, 'a', 'b', wait=world.wait, keystone=trusts
        )
        trusts.cloud = self.cloud
        self.register_all()

    def create(self, on_end):
        return super().create(
            WHOLE, {**SLOTS, 'on_end': on_end}, start='now', end=1000,
            trust_id='trust',
        )

    def live(self, on_end='delete'):
        """Return the objects in the window, and the objects left afterwards.
        """
        lease = self.create(on_end)
        whole, slots = lease.reservations
        held = {
            a.reservation_id: a
            for a, _ in self.ledger.allocations(lease_id=lease.id)
        }
        node = next(
            name for name in 'ab'
            if self.cloud.uuid(name) == held[whole.id].host
        )
        self.cloud.add_server(node, 'yields', lifetime='1')
        self.run_until(lease, 'ACTIVE')
        assert self.cloud.servers == {}
        other = 'ab'[node == 'a']
        class_ = resource_class(slots.id)
        names = {
            slots.id: 'SLOTS', whole.id: 'WHOLE', class_: 'CLASS',
            f'blazar_{other}': 'CHILD', repr(node): 'NODE',
            repr(other): 'OTHER',
        }
        inside = []
        for part in self.cloud.left():
            part = str(sorted(part) if isinstance(part, set) else part)
            for name, role in names.items():
                part = part.replace(name, role)
            inside.append(_UUID.sub('UUID', part))
        self.cloud.add_server(node, 'project')
        self.cloud.add_server(node, 'project', reservation=whole.id)
        server = self.cloud.add_server(other, 'friend', reservation=slots.id)
        if on_end == 'keep':
            self.cloud.take_slot(server, other, class_)
        self.clock.now += 1000
        self.run_until(lease, 'TERMINATED')
        kept = self.cloud.servers.pop(server, None)
        self.cloud.allocations.pop(server, None)
        return inside, self.cloud.left(), kept is not None


@pytest.fixture
def site(conf, world):
    site = CloudWithTrusts(conf, world)
    yield site
    site.ledger.close()


def test_without_trouble(site):
    inside, left, kept = site.live()
    flavors, access, aggregates, groups, servers, classes, totals = inside
    assert 'SLOTS' in flavors
    assert {'project', 'friend'} == set(re.findall('project|friend', access))
    assert "'hosts': [OTHER]" in aggregates
    assert "'project_id': 'project'" in groups
    assert servers == '{}'
    assert classes == "['CLASS']"
    assert totals == "{('CHILD', 'CLASS'): 3}"
    assert not any(left)
    assert not kept


def test_kept_without_trouble(site):
    _, left, kept = site.live('keep')
    assert not any(left)
    assert kept


def test_no_quota_for_a_server_group_only_degrades_it(site):
    site.cloud.meddle = lambda method, path: (
        Trouble(False, answer(403))
        if (method, path) == ('POST', '/os-server-groups')
        else None
    )
    lease = site.create('delete')
    site.run_until(lease, 'ACTIVE')
    opened = site.ledger.lease(lease.id)
    assert opened.degraded
    assert opened.reservations[1].made['server_group_id'] is None
    assert site.cloud.flavors


@pytest.mark.parametrize('trouble, on_end', [
    ('conflicts', 'delete'),
    *(
        pytest.param(trouble, on_end, marks=pytest.mark.more)
        for on_end, troubles in {
            'delete': {*ANYWHERE, *SOMEWHERE} - {'conflicts'},
            'keep': {'is done and fails', 'conflicts'},
        }.items()
        for trouble in sorted(troubles)
    ),
])
def test_one_request_meets_trouble(site, trouble, on_end):
    """Each request fails in turn: the lease is complete, and leaves nothing.
    """
    where = re.compile(WHERE.get(trouble, '.*'))
    site.cloud.asked.clear()
    healthy = site.live(on_end)
    asked = [' '.join(request) for request in site.cloud.asked]
    assert len(asked) > 20
    number = sum(where.fullmatch(request) is not None for request in asked)
    assert number
    make = (ANYWHERE | SOMEWHERE)[trouble]
    for unlucky in range(number):
        passed = itertools.count()

        def meddle(method, path, unlucky=unlucky, passed=passed):
            here = where.fullmatch(f'{method} {path}')
            return make() if here and next(passed) == unlucky else None

        site.cloud.meddle = meddle
        assert site.live(on_end) == healthy, site.cloud.asked[-len(asked):]
        assert next(passed) > unlucky, 'no request has met trouble'


def test_a_server_that_cannot_be_deleted_now_keeps_no_other(site):
    ids = [site.cloud.add_server('a', 'project') for _ in range(3)]
    nova = Nova(site.cloud)

    def meddle(method, path):
        if path == f'/servers/{ids[0]}/action':
            return Trouble(False, answer(409))
        return None

    site.cloud.meddle = meddle
    with pytest.raises(exception.Unavailable, match=ids[0]):
        nova.delete_servers(nova.servers())
    assert list(site.cloud.servers) == [ids[0]]


def test_servers_of_a_cell_that_is_down_are_not_taken_for_gone(site):
    """Nova shows only the id and the project of each such server."""
    id_ = site.cloud.add_server('a', 'project')
    shown = site.cloud.servers[id_]
    site.cloud.servers[id_] = {
        name: shown[name] for name in ('id', 'tenant_id', 'created')
    }
    with pytest.raises(exception.Unavailable, match=id_):
        list(Nova(site.cloud).servers())


def test_inventory_that_is_refused_is_no_success(site):
    """The inventory is in use, or Placement gives another reason."""
    placement = Placement(site.cloud)
    placement.create_resource_class('CUSTOM_X')
    site.cloud.meddle = lambda method, path: (
        Trouble(False, conflict('placement.inventory.inuse'))
        if method == 'PUT'
        else None
    )
    with pytest.raises(exception.Unavailable):
        placement.set_inventory(site.cloud.uuid('a'), 'a', 'CUSTOM_X', 1)


@pytest.mark.parametrize('said', [
    conflict('placement.undefined_code'),
    conflict('placement.concurrent_update'),
    answer(400, {'errors': [{
        'detail': 'Unknown resource class in inventory for '
        'resource provider x: No such resource class.',
    }]}),
])
def test_a_race_in_placement_is_tried_again_at_once(site, said):
    placement = Placement(site.cloud)
    placement.create_resource_class('CUSTOM_X')
    unlucky = iter([True])
    site.cloud.meddle = lambda method, path: (
        Trouble(False, said)
        if (method, path[-12:]) == ('PUT', '/inventories')
        and next(unlucky, False)
        else None
    )
    placement.set_inventory(site.cloud.uuid('a'), 'a', 'CUSTOM_X', 1)
    assert next(unlucky, None) is None
    assert placement.remove_inventory('a', 'CUSTOM_X')


def test_a_new_aggregate_is_not_looked_for_among_all(site):
    nova = Nova(site.cloud)
    site.cloud.asked.clear()
    made = nova.create_aggregate('x', {'k': 'v'})
    assert ('GET', '/os-aggregates') not in site.cloud.asked
    assert nova.aggregate('x') == made == nova.create_aggregate('x', {})


def test_a_class_that_placement_only_says_is_there_is_made(site):
    """Another class, created at the same moment, has got its number."""
    placement = Placement(site.cloud)
    unlucky = iter([True])
    site.cloud.meddle = lambda method, path: (
        Trouble(False, answer(409))
        if method == 'POST' and next(unlucky, False)
        else None
    )
    placement.create_resource_class('CUSTOM_X')
    assert next(unlucky, None) is None
    assert 'CUSTOM_X' in site.cloud.classes


def test_a_class_that_is_never_made_is_not_waited_for(site):
    site.cloud.meddle = lambda method, path: (
        Trouble(False, answer(409)) if method == 'POST' else None
    )
    with pytest.raises(exception.Unavailable, match='CUSTOM_X'):
        Placement(site.cloud).create_resource_class('CUSTOM_X')


def test_placement_request_with_status_400_is_not_repeated(site):
    placement = Placement(site.cloud)
    site.cloud.meddle = lambda method, path: (
        Trouble(False, answer(400, {'errors': []}))
        if method == 'PUT'
        else None
    )
    site.cloud.asked.clear()
    with pytest.raises(exception.Unavailable):
        placement.set_inventory(site.cloud.uuid('a'), 'a', 'CUSTOM_X', 1)
    assert [method for method, _ in site.cloud.asked].count('PUT') == 1


def test_a_child_that_goes_meanwhile_has_no_inventory(site):
    placement = Placement(site.cloud)
    placement.create_resource_class('CUSTOM_X')
    for on in ('GET', 'PUT'):
        placement.set_inventory(site.cloud.uuid('a'), 'a', 'CUSTOM_X', 1)

        def meddle(method, path, on=on):
            if method == on and path.endswith('/inventories'):
                for id_, provider in list(site.cloud.providers.items()):
                    if provider['parent']:
                        del site.cloud.providers[id_]

        site.cloud.meddle = meddle
        assert placement.remove_inventory('a', 'CUSTOM_X')
        site.cloud.meddle = lambda method, path: None
