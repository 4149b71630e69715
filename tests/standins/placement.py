# SPDX-License-Identifier: Apache-2.0
"""Placement at the level of HTTP: part of `cloud.CloudApi`.

Resource providers, inventories, classes and allocations with generations, for
tests of what the manager asks Placement for, request by request.
"""

import uuid

from tests.standins.rest import answer
from tests.standins.rest import conflict
from tests.standins.rest import uuid_of

SLOT_TOTALS = {'VCPU': 8, 'MEMORY_MB': 8192, 'DISK_GB': 80}


class PlacementApi:
    """What the clients ask Placement for.

    :param hosts: names of the compute hosts
    """

    def __init__(self, hosts):
        # By consumer and provider, how much of each resource class.
        self.allocations = {}
        self.classes = set()
        self.providers = {}
        # Whether the generation of a provider is compared at all.
        self.compares = True
        for name in hosts:
            self._add_provider(name, None, SLOT_TOTALS, uuid_of(name))

    def placement_routes(self):
        return (
            ('POST', '/resource_classes', self._create_class),
            ('GET', '/resource_classes/(.+)', self._show_class),
            ('DELETE', '/resource_classes/(.+)', self._delete_class),
            ('GET', '/resource_providers', self._find_providers),
            ('POST', '/resource_providers', self._create_provider),
            ('DELETE', '/resource_providers/([^/]+)', self._delete),
            ('GET', '/resource_providers/(.+)/inventories', self._inventories),
            ('GET', '/resource_providers/(.+)/traits', self._traits),
            (
                'PUT', '/resource_providers/(.+)/inventories',
                self._set_inventories,
            ),
            ('GET', '/resource_providers/(.+)/allocations', self._consumers),
            ('GET', '/allocations/(.+)', self._show_allocations),
            ('PUT', '/allocations/(.+)', self._set_allocations),
        )

    def take_slot(self, server, host, resource_class):
        """Have a server use one, on that host's child provider.

        Return whether Placement has it.
        """
        used = self.used(host, resource_class)
        if used >= self.total(host, resource_class):
            return False
        child = self._child(host)['uuid']
        self._allocate(
            server, {uuid_of(host): {'VCPU': 1}, child: {resource_class: 1}}
        )
        return True

    def total(self, host, resource_class):
        """Return how many of a class a host's child provider has."""
        inventories = self._child(host)['inventories']
        return inventories.get(resource_class, {'total': 0})['total']

    def used(self, host, resource_class):
        """Return how many of them are used."""
        child = self._child(host)['uuid']
        return sum(
            held.get(child, {}).get(resource_class, 0)
            for held in self.allocations.values()
        )

    def _child(self, host):
        [child] = [
            provider
            for provider in self.providers.values()
            if provider['parent'] == uuid_of(host)
        ]
        return child

    def _create_class(self, body):
        if body['name'] in self.classes:
            return answer(409)
        self.classes.add(body['name'])
        return answer(201)

    def _show_class(self, name):
        return answer(200 if name in self.classes else 404, {})

    def _delete_class(self, name):
        if any(name in p['inventories'] for p in self.providers.values()):
            return answer(409)
        if name not in self.classes:
            return answer(404)
        self.classes.remove(name)
        return answer(204)

    def _add_provider(self, name, parent, totals, id_):
        self.providers[id_] = {
            'uuid': id_,
            'name': name,
            'parent': parent,
            'generation': 0,
            'traits': [],
            'inventories': {c: self._inventory(t) for c, t in totals.items()},
        }

    @staticmethod
    def _inventory(total, **given):
        return {
            'total': total, 'reserved': 0, 'allocation_ratio': 1.0,
            'min_unit': 1, 'max_unit': 2**31 - 1, 'step_size': 1, **given,
        }

    def _find_providers(self, name=None, in_tree=None):
        found = [
            {**p, 'root_provider_uuid': p['parent'] or p['uuid']}
            for p in self.providers.values()
            if name in (None, p['name'])
            and in_tree in (None, p['uuid'], p['parent'])
        ]
        return answer(200, {'resource_providers': found})

    def _create_provider(self, body):
        if any(p['name'] == body['name'] for p in self.providers.values()):
            return answer(409)
        id_ = str(uuid.uuid4())
        self._add_provider(body['name'], body['parent_provider_uuid'], {}, id_)
        return answer(200, {'uuid': id_, **body})

    def _delete(self, id_):
        return answer(204 if self.providers.pop(id_, None) else 404)

    def _inventories(self, id_):
        if id_ not in self.providers:
            return answer(404)
        provider = self.providers[id_]
        return answer(200, {
            'inventories': provider['inventories'],
            'resource_provider_generation': provider['generation'],
        })

    def _traits(self, id_):
        if id_ not in self.providers:
            return answer(404)
        return answer(200, {'traits': self.providers[id_]['traits']})

    def _set_inventories(self, id_, body):
        if id_ not in self.providers:
            return answer(404)
        provider = self.providers[id_]
        if self.compares and (
            body['resource_provider_generation'] != provider['generation']
        ):
            return conflict('placement.concurrent_update')
        if not set(body['inventories']) <= self.classes | set(SLOT_TOTALS):
            return answer(400)
        if any(held['total'] < 1 for held in body['inventories'].values()):
            return answer(400)
        # A total below what is in use is not refused.
        gone = provider['inventories'].keys() - body['inventories'].keys()
        if any(
            gone & used.keys()
            for held in self.allocations.values()
            for provider_id, used in held.items()
            if provider_id == id_
        ):
            return conflict('placement.inventory.inuse')
        provider['generation'] += 1
        provider['inventories'] = {
            class_: self._inventory(**held)
            for class_, held in body['inventories'].items()
        }
        return answer(200, body)

    def _consumers(self, id_):
        if id_ not in self.providers:
            return answer(404)
        found = {
            consumer: {'resources': held[id_]}
            for consumer, held in self.allocations.items()
            if id_ in held
        }
        return answer(200, {'allocations': found})

    def _show_allocations(self, consumer):
        held = self.allocations.get(consumer, {})
        if not held:
            return answer(200, {'allocations': {}})
        shown = {id_: {'resources': used} for id_, used in held.items()}
        return answer(200, {
            'allocations': shown, 'project_id': 'project', 'user_id': 'user',
            'consumer_generation': 1,
        })

    def _set_allocations(self, consumer, body):
        assert body['consumer_generation'] == 1
        self._allocate(consumer, {
            id_: held['resources'] for id_, held in body['allocations'].items()
        })
        return answer(204)

    def _allocate(self, consumer, resources):
        self.allocations[consumer] = resources
        for id_ in resources:
            self.providers[id_]['generation'] += 1
