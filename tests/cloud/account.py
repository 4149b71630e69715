# SPDX-License-Identifier: Apache-2.0
"""The objects in the cloud, as an administrator sees them."""

from collections.abc import Iterable
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

    def slots(self, reservation_id: str) -> dict[str, int]:
        """Return the slots of a reservation by host."""
        return {
            provider.name.removeprefix('blazar_'): inventory.total
            for provider in self._placement.resource_providers()
            for inventory in self._placement.resource_provider_inventories(
                provider
            )
            if inventory.resource_class == class_of(reservation_id)
        }

    def has_class(self, reservation_id: str) -> bool:
        classes = self._placement.resource_classes()
        return class_of(reservation_id) in {each.name for each in classes}


def class_of(reservation_id: str) -> str:
    """Return the resource class of a reservation of instances."""
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
