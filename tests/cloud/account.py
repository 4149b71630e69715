# SPDX-License-Identifier: Apache-2.0
"""The objects in the cloud, as an administrator sees them."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from tests.cloud import polling
from tests.cloud import seed
from tests.cloud.person import Person


class Nova:
    def __init__(self, admin: Person) -> None:
        self._compute = admin.sdk.compute

    def host_of(self, server: Any) -> str:
        return str(self._compute.get_server(server['id']).compute_host)

    def status_of(self, server: Any) -> str | None:
        """Return a server's status, None if it is gone."""
        found = self._compute.find_server(server['id'], all_projects=True)
        return found and found.status

    def flavor(self, flavor_id: str) -> Any:
        """Return a flavor, None if there is none."""
        return self._compute.find_flavor(flavor_id, get_extra_specs=True)

    def projects_of(self, flavor_id: str) -> set[str]:
        """Return the projects with access to a private flavor."""
        access = self._compute.get_flavor_access(flavor_id)
        return {each['tenant_id'] for each in access}

    def hosts_in(self, aggregate: str) -> list[str] | None:
        """Return the hosts of an aggregate, None if there is no aggregate."""
        for found in self._compute.aggregates():
            if found.name == aggregate:
                return sorted(found.hosts or ())
        return None

    def set_down(self, host: str, down: bool) -> None:
        """Mark a compute host as failed, or as recovered."""
        [service] = self._compute.services(binary='nova-compute', host=host)
        self._compute.update_service_forced_down(service, forced=down)

    def server_group(self, reservation_id: str) -> Any:
        """Return a reservation's server group, None if there is none."""
        name = f'reservation:{reservation_id}'
        groups = self._compute.server_groups(all_projects=True)
        return next((group for group in groups if group.name == name), None)


class Placement:
    def __init__(self, admin: Person) -> None:
        self._placement = admin.sdk.placement

    def change(
        self, host: str, what: str, edit: Callable[[Any], object]
    ) -> None:
        """Change the `inventories` or `traits` of a host.

        Nova reports its own values again within a minute.
        """
        provider = self._placement.find_resource_provider(host)
        path = f'/resource_providers/{provider.id}/{what}'
        body = self._placement.get(path, microversion='1.6').json()
        edit(body[what])
        self._placement.put(path, json=body, microversion='1.6')

    def add_class(self, name: str) -> None:
        """Create a resource class, unless the class exists."""
        self._placement.put(f'/resource_classes/{name}', microversion='1.7')

    def add_child(
        self, host: str, name: str, totals: Mapping[str, int]
    ) -> str:
        """Create a provider below the provider of a host; return its uuid.

        :param totals: the inventory, by resource class
        """
        parent = self._placement.find_resource_provider(host)
        made = self._placement.post(
            '/resource_providers', microversion='1.20',
            json={'name': name, 'parent_provider_uuid': parent.id},
        ).json()
        self._placement.put(
            f'/resource_providers/{made["uuid"]}/inventories',
            microversion='1.20',
            json={
                'resource_provider_generation': made['generation'],
                'inventories': {
                    each: {'total': total} for each, total in totals.items()
                },
            },
        )
        return str(made['uuid'])

    def empty(self, provider: str) -> bool:
        """Delete the inventories of a provider; tell whether they are gone.

        Without a provider that nova-compute knows, all builds would fail until
        nova-compute reads the providers again.
        """
        path = f'/resource_providers/{provider}/inventories'
        answer = self._placement.delete(path, microversion='1.5')
        return bool(answer.status_code == 204)

    def used_by(self, consumer: str, resource_class: str) -> dict[str, int]:
        """Return how much a consumer uses of a class, by provider."""
        held = self._placement.get(f'/allocations/{consumer}').json()
        return {
            provider: each['resources'][resource_class]
            for provider, each in held['allocations'].items()
            if resource_class in each['resources']
        }

    def slots(self, reservation_id: str) -> dict[str, int]:
        """Return the slots of a reservation by host."""
        return {
            provider.name.removeprefix('blazar_'): inventory.total
            for provider in self._placement.resource_providers()
            for inventory in self._placement.resource_provider_inventories(
                provider
            )
            if inventory.resource_class == _class(reservation_id)
        }

    def has_class(self, reservation_id: str) -> bool:
        classes = self._placement.resource_classes()
        return _class(reservation_id) in {each.name for each in classes}


def _class(reservation_id: str) -> str:
    return f'CUSTOM_RESERVATION_{reservation_id.upper().replace("-", "_")}'


def clear(admin: Person) -> None:
    """Remove servers, leases, hosts, reservable addresses and images."""
    # Servers are removed first: a server whose lease alone is removed may get
    # another lease.
    compute = admin.sdk.compute
    for server in compute.servers(all_projects=True, details=False):
        compute.delete_server(server, force=True)
    polling.until(
        lambda: not any(compute.servers(all_projects=True, details=False))
    )
    _remove(admin, 'leases')
    _remove(admin, 'os-hosts')
    _remove(admin, 'floatingips')
    images = admin.sdk.image
    for image in images.images():
        if image.name != seed.IMAGE:
            images.delete_image(image)


def _remove(admin: Person, collection: str) -> None:
    def ids() -> Iterable[str]:
        name = collection.removeprefix('os-')
        return [each['id'] for each in admin.get(collection)[name]]

    def gone() -> bool:
        # A lease that is just being started or ended cannot be deleted for a
        # while.
        for each in ids():
            admin.reservation.delete(f'/{collection}/{each}')
        return not ids()

    polling.until(gone)
