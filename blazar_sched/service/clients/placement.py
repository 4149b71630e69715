# SPDX-License-Identifier: Apache-2.0
"""Client of Placement, as far as reservations need Placement.

The instances of an instance reservation are counted by a resource class of
the reservation, on a child of the resource provider of each of its hosts.
All creations and removals in this module are idempotent.
"""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import functools
from typing import TYPE_CHECKING
from typing import TypedDict

from keystoneauth1 import adapter

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.provider import Units
from blazar_sched.service.clients import rest

if TYPE_CHECKING:
    from openstack.placement.v1._proxy import Proxy

MICROVERSION = '1.29'
# The number of attempts at a change while other changes of the same provider
# come first.
MAX_TRIES = 20
# The error code for an inventory to be removed that is in use.
_INUSE = 'placement.inventory.inuse'
# The error for an existing resource class: a new class need not be known at
# once to every process of Placement, or to every server of its database.
_UNKNOWN_CLASS = 'Unknown resource class in inventory'

# The generations of the resource providers of a host, by uuid.
Generations = Mapping[str, int]


class _Inventory(TypedDict, total=False):
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float


Inventories = dict[str, _Inventory]


class _Inventories(TypedDict):
    inventories: Inventories
    resource_provider_generation: int


class _Provider(TypedDict):
    uuid: str
    name: str
    generation: int
    root_provider_uuid: str


class _Allocation(TypedDict):
    resources: dict[str, int]


def resource_class(reservation_id: str) -> str:
    """Return the resource class of a reservation's instances."""
    return inventory.SLOT_PREFIX + reservation_id.upper().replace('-', '_')


def _child(hostname: str) -> str:
    return f'blazar_{hostname}'


class Placement:
    """A client of the placement API.

    :param api: a keystoneauth adapter for the placement service of an
        admin; None where no cloud is configured
    """

    def __init__(self, api: adapter.Adapter | None) -> None:
        self._api = api
        self._turns = rest.Turns()

    @functools.cached_property
    def _placement(self) -> 'Proxy':
        placement: Proxy = rest.connect(self._api, 'placement', MICROVERSION)
        return placement

    def inventories(self, provider: str) -> dict[str, Inventory]:
        """Return the inventory of a resource provider by resource class.

        :raises HostNotFound: if Placement does not know the provider
        """
        with rest.tolerating(404):
            shown = self._inventories(provider)['inventories']
            return {name: _inventory(held) for name, held in shown.items()}
        raise _unknown(provider)

    def traits(self, provider: str) -> tuple[str, ...]:
        """Return the sorted traits of a resource provider.

        :raises HostNotFound: if Placement does not know the provider
        """
        with rest.tolerating(404):
            answer = self._placement.get(
                f'/resource_providers/{provider}/traits'
            )
            return tuple(sorted(answer.json()['traits']))
        raise _unknown(provider)

    def units(self, provider: str) -> dict[str, Units]:
        """Return the inventory of a child provider by resource class.

        :raises HostNotFound: if Placement does not know the provider
        """
        with rest.tolerating(404):
            shown = self._inventories(provider)['inventories']
            return {
                name: Units(
                    _inventory(held).capacity, held['min_unit'],
                    inventory.countable(held['max_unit']), held['step_size'],
                )
                for name, held in shown.items()
            }
        raise _unknown(provider)

    def trees(self, provider: str | None = None) -> dict[str, Generations]:
        """Return the generations in each tree of providers, by its root.

        The generation of a provider changes whenever its inventories, traits
        or allocations change. The child provider that holds the slots of
        reservations is left out.

        :param provider: the root of the only tree to return; None for all
        """
        known = self._resource_providers(
            **({} if provider is None else {'in_tree': provider})
        )
        names = {p['uuid']: p['name'] for p in known}
        trees: dict[str, dict[str, int]] = defaultdict(dict)
        for p in known:
            root = p['root_provider_uuid']
            # A root that came after its child was listed has no name yet.
            if p['name'] != _child(names.get(root, '')):
                trees[root][p['uuid']] = p['generation']
        return dict(trees)

    def create_resource_class(self, name: str) -> None:
        """Ensure that a custom resource class exists.

        When two different classes are created at the same moment, Placement
        may create only one of them, and report that the other exists already,
        because both were given the same number. So the existence of a class
        that was not created is checked.

        :raises Unavailable: also if the class appears and disappears
        """
        for _ in range(MAX_TRIES):
            with rest.tolerating(409):
                self._placement.create_resource_class(name=name)
                return
            with rest.tolerating(404):
                self._placement.get_resource_class(name)
                return
        raise exception.Unavailable(
            f'Placement did not create resource class {name}'
        )

    def delete_resource_class(self, name: str) -> None:
        """Ensure that a custom resource class does not exist."""
        with rest.tolerating(404):
            self._placement.delete_resource_class(name)

    def set_inventory(
        self, parent: str, hostname: str, name: str, total: int
    ) -> None:
        """Set the total of a resource class on a host's child provider.

        :param parent: UUID of the host's own resource provider
        :raises Unavailable: also if Placement refuses the inventory, or the
            child provider is removed meanwhile
        """

        def change(held: Inventories) -> None:
            fixed = _Inventory(total=total, max_unit=1)
            held[name] = held.get(name, _Inventory()) | fixed

        child = self.create_child(parent, hostname)
        with self._turns.of(hostname):
            changed = self._change_inventories(child, change)
        if changed is not True:
            raise exception.Unavailable(
                f'Placement refused an inventory of {total} {name} for '
                f'{hostname}', service='placement', refused=True,
            )

    def remove_inventory(self, hostname: str, name: str) -> bool:
        """Remove a resource class from a host's child provider.

        :returns: False if the resource class is still in use
        """
        child = self._find_child(hostname)
        if child is None:
            return True
        with self._turns.of(hostname):
            changed = self._change_inventories(
                child, lambda held: held.pop(name, None)
            )
        # A removed child provider has lost all of its inventory.
        return changed is not False

    def count_used(self, hostname: str, name: str) -> dict[str, int]:
        """Return the usage of a resource class of a host's child provider.

        :returns: the used amounts by consumer, which is a server or a
            migration of a server
        """
        child = self._find_child(hostname)
        return {} if child is None else self._count_used(child, name)

    def cut_inventory(
        self, hostname: str, name: str, total: int, beside: int = 0
    ) -> int:
        """Reduce a resource class of a host's child provider to `total`.

        What is in use, and `beside` more than that, is always kept. Placement
        itself lets a provider have less than is in use. But every allocation
        raises the provider's generation, so the usage is read after the
        generation is known, and nothing is written under another generation.

        :returns: the amount that the provider may still have
        :raises Unavailable: if concurrent changes always come first
        """
        child = self._find_child(hostname)
        if child is None:
            return max(total, beside)
        left = total

        def change(held: Inventories) -> None:
            nonlocal left
            used = self._count_used(child, name)
            left = max(total, sum(used.values()) + beside)
            if name in held and left:
                least = min(left, held[name]['total'])
                held[name] = held[name] | {'total': least}
            elif name in held:
                del held[name]

        for _ in range(MAX_TRIES):
            # A class that was to be removed, and was allocated just before,
            # is in use, which the next attempt sees.
            if self._change_inventories(child, change) is not False:
                return left
        raise exception.Unavailable(
            f'{name} of {hostname} came into use in each attempt to change it'
        )

    def release_inventory(
        self, hostname: str, name: str, only: Collection[str] | None = None
    ) -> None:
        """Remove a resource class of a host's child from its consumers.

        The consumers keep all other resources that they use.

        :param only: the consumers, None for all of them
        :raises Unavailable: also if a consumer is being changed
        """
        child = self._find_child(hostname)
        if child is not None:
            for consumer in self._count_used(child, name):
                if only is None or consumer in only:
                    self._release(consumer, child, name)

    def _count_used(self, child: str, name: str) -> dict[str, int]:
        with rest.tolerating(404):
            answer = self._placement.get(
                f'/resource_providers/{child}/allocations'
            )
            allocations: dict[str, _Allocation] = answer.json()['allocations']
            return {
                consumer: held['resources'][name]
                for consumer, held in allocations.items()
                if name in held['resources']
            }
        return {}

    def _release(self, consumer: str, child: str, name: str) -> None:
        url = f'/allocations/{consumer}'
        body = self._placement.get(url).json()
        # A consumer that was removed meanwhile has no allocations.
        allocations: dict[str, _Allocation] = {
            provider: {'resources': held['resources']}
            for provider, held in body['allocations'].items()
        }
        resources = allocations.get(child, _Allocation(resources={}))
        if resources['resources'].pop(name, 0):
            if not resources['resources']:
                del allocations[child]
            self._placement.put(url, json={**body, 'allocations': allocations})

    def _find_child(self, hostname: str) -> str | None:
        found = self._resource_providers(name=_child(hostname))
        return found[0]['uuid'] if found else None

    def create_child(self, parent: str, hostname: str) -> str:
        """Ensure that a host has a child provider; return the child's UUID.

        The child provider marks the host as reservable, and holds the
        inventory that reservations add. The child is never deleted, not even
        when the host is deregistered: nova-compute caches the provider tree,
        and builds no server on the host for minutes after a provider of the
        tree is deleted.

        :param parent: UUID of the host's own resource provider
        """
        child = self._find_child(hostname)
        if child is not None:
            return child
        # Another lease that starts on the host may come first: 409.
        with rest.tolerating(409):
            made = self._placement.create_resource_provider(
                name=_child(hostname), parent_provider_id=parent
            )
            return str(made.id)
        child = self._find_child(hostname)
        if child is None:
            raise exception.Unavailable(
                f'resource provider {_child(hostname)} was deleted while it '
                'was being created'
            )
        return child

    def _change_inventories(
        self, provider: str, change: Callable[[Inventories], object]
    ) -> bool | None:
        """Apply `change` to a provider's inventories and write them back.

        The provider's generation reveals whether the inventories were changed
        concurrently; in that case the inventories are read and changed again.
        The same is done if Placement does not know a resource class that was
        created a moment ago.

        :returns: False if Placement reports that the inventories are in use,
            None if there is no such provider, or no longer
        :raises Unavailable: if concurrent changes always come first
        """
        for _ in range(MAX_TRIES):
            with rest.tolerating(404) as refusals:
                body = self._inventories(provider)
            if refusals:
                return None
            before = dict(body['inventories'])
            change(body['inventories'])
            if body['inventories'] == before:
                return True
            with rest.tolerating(400, 404, 409) as refusals:
                self._placement.put(_inventories_url(provider), json=body)
                return True
            [refusal] = refusals
            # A concurrent change is worth a retry, which use is not.
            if refusal.status_code == 409 and _INUSE in refusal.text:
                return False
            known = _UNKNOWN_CLASS not in refusal.text
            if refusal.status_code == 400 and known:
                raise exception.Unavailable(
                    'Placement refused inventories', detail=refusal.text[:200],
                    service='placement', refused=True,
                )
        raise exception.Unavailable(
            f'the inventories of resource provider {provider} changed in '
            'each attempt to write them'
        )

    def _resource_providers(self, **query: str) -> list[_Provider]:
        answer = self._placement.get('/resource_providers', params=query)
        providers: list[_Provider] = answer.json()['resource_providers']
        return providers

    def _inventories(self, provider: str) -> _Inventories:
        """Return a provider's inventories and generation, as in Placement."""
        answer = self._placement.get(_inventories_url(provider))
        inventories: _Inventories = answer.json()
        return inventories


def _inventory(held: _Inventory) -> Inventory:
    found = Inventory(
        total=held['total'], reserved=held['reserved'],
        allocation_ratio=held['allocation_ratio'], min_unit=held['min_unit'],
        step_size=held['step_size'],
    )
    most = inventory.countable(held['max_unit'])
    if most >= found.capacity:
        return found
    return dataclasses.replace(found, max_unit=most)


def _inventories_url(provider: str) -> str:
    return f'/resource_providers/{provider}/inventories'


def _unknown(provider: str) -> exception.HostNotFound:
    return exception.HostNotFound(
        f'Placement knows no resource provider {provider}'
    )
