# SPDX-License-Identifier: Apache-2.0
"""Client of Nova's flavors."""

from typing import TypedDict
from urllib import parse

from blazar_sched.domain import flavor as flavor_rules
from blazar_sched.domain.flavor import Flavor
from blazar_sched.service.clients import rest
from blazar_sched.service.clients.nova.compute import Compute

# What is read of a flavor as Nova shows it.
_Shown = TypedDict('_Shown', {
    'id': str,
    'name': str,
    'vcpus': int,
    'ram': int,
    'disk': int,
    'swap': int,
    'extra_specs': dict[str, str],
    'OS-FLV-EXT-DATA:ephemeral': int,
    'os-flavor-access:is_public': bool,
})


class Flavors(Compute):
    """The part of the Nova client that handles flavors."""

    def flavors(self) -> list[Flavor]:
        """Return all flavors except the flavors of reservations."""
        found = rest.pages(
            self._compute, '/flavors/detail', 'flavors', is_public='none'
        )
        return [
            _flavor(shown, self._access(shown))
            for shown in found
            if not flavor_rules.reservation_id(shown['extra_specs'])
        ]

    def flavor(self, flavor_id: str) -> Flavor | None:
        """Return a flavor, None for no flavor or the flavor of a reservation.
        """
        with rest.tolerating(404):
            # The SDK does not quote the id.
            path = f'/flavors/{parse.quote(flavor_id, safe="")}'
            # Something else is at the path of an id such as '..'.
            shown = self._compute.get(path).json().get('flavor', {})
            if shown.get('id') == flavor_id and not (
                flavor_rules.reservation_id(shown['extra_specs'])
            ):
                return _flavor(shown, self._access(shown))
        return None

    def _access(self, shown: _Shown) -> tuple[str, ...] | None:
        """Return the projects that may use a flavor, None for all."""
        if shown['os-flavor-access:is_public']:
            return None
        with rest.tolerating(404):
            # The SDK does not quote the id.
            id_ = parse.quote(shown['id'])
            answer = self._compute.get(f'/flavors/{id_}/os-flavor-access')
            access = answer.json()['flavor_access']
            return tuple(sorted(each['tenant_id'] for each in access))
        return ()

    def create_flavor(self, flavor: Flavor) -> None:
        """Ensure that a flavor exists, at first without access of projects."""
        with rest.tolerating(409):
            self._compute.create_flavor(
                id=flavor.id,
                name=flavor.name,
                vcpus=flavor.vcpus,
                ram=flavor.memory_mb,
                disk=flavor.disk_gb,
                ephemeral=flavor.ephemeral_gb,
                swap=flavor.swap_mb,
                is_public=False,
            )
        self._compute.create_flavor_extra_specs(
            flavor.id, dict(flavor.extra_specs)
        )

    def add_flavor_access(self, flavor_id: str, project_id: str) -> None:
        """Grant a project access to a private flavor."""
        with rest.tolerating(409):
            self._compute.flavor_add_tenant_access(flavor_id, project_id)

    def remove_flavor_access(self, flavor_id: str, project_id: str) -> None:
        """Revoke a project's access to a private flavor."""
        with rest.tolerating(404):
            self._compute.flavor_remove_tenant_access(flavor_id, project_id)

    def delete_flavor(self, flavor_id: str) -> None:
        """Ensure that a flavor is deleted."""
        with rest.tolerating(404):
            self._compute.delete_flavor(flavor_id)


def _flavor(
    shown: _Shown, projects: tuple[str, ...] | None
) -> Flavor:
    return Flavor(
        id=shown['id'],
        name=shown['name'],
        vcpus=shown['vcpus'],
        memory_mb=shown['ram'],
        disk_gb=shown['disk'],
        ephemeral_gb=shown['OS-FLV-EXT-DATA:ephemeral'],
        swap_mb=shown['swap'],
        extra_specs=shown['extra_specs'],
        projects=projects,
    )
