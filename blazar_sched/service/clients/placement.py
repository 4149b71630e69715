# SPDX-License-Identifier: Apache-2.0
"""Placement, as far as reservations need it.

Instances of an instance reservation are counted by a resource class of its
own, on a child of each of its hosts' resource providers. Whatever is made or
removed here may be made or removed twice.
"""

from collections.abc import Callable
from typing import Any
from urllib import parse

from keystoneauth1 import adapter
import requests

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain.inventory import Inventory
from blazar_sched.service.clients import rest

MICROVERSION = '1.29'
_CREATED = 201
# Tries of a change that another one of the same provider gets ahead of.
MAX_TRIES = 20
# The code of an error: what was to be taken away is in use.
_INUSE = 'placement.inventory.inuse'
# Of a resource class that is there: not every process of Placement, or server
# of its database, need know of a new one at once.
_UNKNOWN_CLASS = 'Unknown resource class in inventory'

Inventories = dict[str, dict[str, Any]]


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
        self._rest = rest.Rest('placement', api, MICROVERSION)

    def inventories(self, provider: str) -> dict[str, Inventory]:
        """Return what a resource provider has, by resource class.

        :raises HostNotFound: if Placement does not know it
        """
        answer = self._rest.request(
            'GET', f'/resource_providers/{provider}/inventories', also=(404,)
        )
        if answer.status_code == 404:
            raise _unknown(provider)
        return {
            name: Inventory(
                total=held['total'],
                reserved=held['reserved'],
                allocation_ratio=held['allocation_ratio'],
            )
            for name, held in rest.document(answer)['inventories'].items()
        }

    def traits(self, provider: str) -> tuple[str, ...]:
        """Return the traits of a resource provider, in order.

        :raises HostNotFound: if Placement does not know it
        """
        answer = self._rest.request(
            'GET', f'/resource_providers/{provider}/traits', also=(404,)
        )
        if answer.status_code == 404:
            raise _unknown(provider)
        return tuple(sorted(rest.document(answer)['traits']))

    def generations(self) -> dict[str, int]:
        """Return the generation of every resource provider.

        It changes whenever the provider's inventories or traits do.
        """
        known = self._rest.ask('/resource_providers')['resource_providers']
        return {p['uuid']: p['generation'] for p in known}

    def create_resource_class(self, name: str) -> None:
        """Make sure that a custom resource class is there.

        Of two different ones that are made at the same moment, Placement may
        make one, and say of the other that it is there already: both were to
        have the same number. So what was not made is looked for.

        :raises Unavailable: also if it comes and goes
        """
        url = f'/resource_classes/{name}'
        for _ in range(MAX_TRIES):
            answer = self._rest.request('PUT', url)
            if answer.status_code == _CREATED:
                return
            if self._rest.request('GET', url, also=(404,)).ok:
                return
        raise exception.Unavailable(f'placement does not make {name}')

    def delete_resource_class(self, name: str) -> None:
        """Make sure that a custom resource class is gone."""
        self._rest.request('DELETE', f'/resource_classes/{name}', also=(404,))

    def set_inventory(
        self, parent: str, hostname: str, name: str, total: int
    ) -> None:
        """Give a host's child provider `total` of a resource class.

        :param parent: uuid of the host's own resource provider
        :raises Unavailable: also if Placement refuses it, or the child goes
            meanwhile
        """

        def change(held: Inventories) -> None:
            fixed = {'total': total, 'max_unit': 1}
            held[name] = held.get(name, {}) | fixed

        child = self.create_child(parent, hostname)
        if self._change_inventories(child, change) is not True:
            raise exception.Unavailable(
                f'placement does not take {total} {name} for {hostname}'
            )

    def remove_inventory(self, hostname: str, name: str) -> bool:
        """Take a resource class off a host's child provider.

        :returns: False if it is still in use
        """
        child = self._find_child(hostname)
        if child is None:
            return True
        changed = self._change_inventories(
            child, lambda held: held.pop(name, None)
        )
        # With the child went all that it had.
        return changed is not False

    def count_used(self, hostname: str, name: str) -> dict[str, int]:
        """Return how many of a resource class of a host's child are used.

        By consumer: a server, or a migration of one.
        """
        child = self._find_child(hostname)
        return {} if child is None else self._count_used(child, name)

    def cut_inventory(
        self, hostname: str, name: str, total: int, beside: int = 0
    ) -> int:
        """Leave a host's child provider no more of a class than `total`.

        But what is in use, and so many `beside` that. Placement itself lets
        a provider have less than is in use. Yet whoever takes some raises
        the provider's generation: so what is in use is asked for once that
        is known, and nothing is written under another one.

        :returns: how many it may still have
        :raises Unavailable: if others always get ahead
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
            # A class that was to go, and was taken some of just before, is
            # in use; the next time that is seen.
            if self._change_inventories(child, change) is not False:
                return left
        raise exception.Unavailable(
            f'{name} of {hostname} always comes into use'
        )

    def release_inventory(self, hostname: str, name: str) -> None:
        """Take a resource class of a host's child off whoever uses it.

        All else that they use stays theirs.

        :raises Unavailable: also if it is being changed
        """
        child = self._find_child(hostname)
        if child is not None:
            for consumer in self._count_used(child, name):
                self._release(consumer, child, name)

    def _count_used(self, child: str, name: str) -> dict[str, int]:
        answer = self._rest.request(
            'GET', f'/resource_providers/{child}/allocations', also=(404,)
        )
        used = rest.document(answer).get('allocations', {})
        return {
            consumer: held['resources'][name]
            for consumer, held in used.items()
            if name in held['resources']
        }

    def _release(self, consumer: str, child: str, name: str) -> None:
        url = f'/allocations/{consumer}'
        body = self._rest.ask(url)
        allocations = {
            provider: {'resources': dict(held['resources'])}
            for provider, held in body['allocations'].items()
        }
        # A consumer that is gone meanwhile has none.
        if allocations.get(child, {}).get('resources', {}).pop(name, None):
            if not allocations[child]['resources']:
                del allocations[child]
            self._rest.request(
                'PUT', url, json={**body, 'allocations': allocations}
            )

    def _find_child(self, hostname: str) -> str | None:
        query = parse.urlencode({'name': _child(hostname)})
        found = self._rest.ask(f'/resource_providers?{query}')[
            'resource_providers'
        ]
        return found[0]['uuid'] if found else None

    def create_child(self, parent: str, hostname: str) -> str:
        """Make sure that a host has a child provider; return its uuid.

        It marks the host as reservable, and holds what reservations add. It
        is never deleted, not even when the host is given up: nova-compute
        keeps the tree in mind, and builds nothing there for minutes once a
        provider of it is gone.

        :param parent: uuid of the host's own resource provider
        """
        child = self._find_child(hostname)
        if child is not None:
            return child
        body = {'name': _child(hostname), 'parent_provider_uuid': parent}
        # Another lease that starts on the host may be first: 409.
        self._rest.request(
            'POST', '/resource_providers', json=body, also=(409,)
        )
        child = self._find_child(hostname)
        if child is None:
            raise exception.Unavailable(
                f'resource provider {_child(hostname)} comes and goes'
            )
        return child

    def _change_inventories(
        self, provider: str, change: Callable[[Inventories], Any]
    ) -> bool | None:
        """Replace a provider's inventories by what `change` makes of them.

        The provider's generation finds out whether anybody else changed them
        meanwhile; then they are read and changed again. So they are when
        Placement does not know a resource class that was made a moment ago.

        :returns: False if Placement says that they are in use, None if there
            is no such provider (any more)
        :raises Unavailable: if others always get ahead
        """
        url = f'/resource_providers/{provider}/inventories'
        for _ in range(MAX_TRIES):
            answer = self._rest.request('GET', url, also=(404,))
            if answer.status_code == 404:
                return None
            body = rest.document(answer)
            before = dict(body['inventories'])
            change(body['inventories'])
            if body['inventories'] == before:
                return True
            answer = self._rest.request(
                'PUT', url, json=body, also=(400, 404, 409)
            )
            if answer.ok:
                return True
            if answer.status_code == 409 and _is_in_use(answer):
                return False
            if answer.status_code == 400 and _UNKNOWN_CLASS not in answer.text:
                raise exception.Unavailable(
                    f'placement refuses inventories: {answer.text[:200]}'
                )
        raise exception.Unavailable(
            f'the inventories of resource provider {provider} always change'
        )


def _unknown(provider: str) -> exception.HostNotFound:
    return exception.HostNotFound(
        f'Placement knows no resource provider {provider}'
    )


def _is_in_use(answer: requests.Response) -> bool:
    """Tell what is in use from another's change, worth another try."""
    errors = rest.document(answer).get('errors', ())
    return any(error.get('code') == _INUSE for error in errors)
