# SPDX-License-Identifier: Apache-2.0
"""Client of Nova's flavors."""

import contextlib
from typing import TYPE_CHECKING
from urllib import parse

from blazar_sched.domain import flavor as flavor_rules
from blazar_sched.domain.flavor import Flavor
from blazar_sched.service.clients import rest
from blazar_sched.service.clients.nova.compute import Compute
from blazar_sched.service.clients.nova.compute import pages

if TYPE_CHECKING:
    from novaclient.v2.flavors import Flavor as Shown


class Flavors(Compute):
    """The part of the Nova client that handles flavors."""

    def flavors(self) -> list[Flavor]:
        """Return all flavors except the flavors of reservations."""
        return [
            _flavor(shown, self._access(shown))
            for shown in pages(self._nova.flavors.list, is_public=None)
            if not flavor_rules.reservation_id(shown.extra_specs)
        ]

    def flavor(self, flavor_id: str) -> Flavor | None:
        """Return a flavor, None for no flavor or the flavor of a reservation.
        """
        # Something else is at the path of an id such as '..'.
        with rest.tolerating(404), contextlib.suppress(KeyError):
            shown = self._nova.flavors.get(_quoted(flavor_id))
            if shown.id == flavor_id and not (
                flavor_rules.reservation_id(shown.extra_specs)
            ):
                return _flavor(shown, self._access(shown))
        return None

    def _access(self, shown: 'Shown') -> tuple[str, ...] | None:
        """Return the projects that may use a flavor, None for all."""
        if shown.is_public:
            return None
        with rest.tolerating(404):
            access = self._nova.flavor_access.list(flavor=_quoted(shown.id))
            return tuple(sorted(each.tenant_id for each in access))
        return ()

    def create_flavor(self, flavor: Flavor) -> None:
        """Ensure that a flavor exists, at first without access of projects."""
        with rest.tolerating(409):
            self._nova.flavors.create(
                flavorid=flavor.id, name=flavor.name, vcpus=flavor.vcpus,
                ram=flavor.memory_mb, disk=flavor.disk_gb,
                ephemeral=flavor.ephemeral_gb, swap=flavor.swap_mb,
                is_public=False,
            )
        # The flavor need not be read first.
        made = self._nova.flavors.resource_class(
            self._nova.flavors, {'id': flavor.id}
        )
        made.set_keys(dict(flavor.extra_specs))

    def add_flavor_access(self, flavor_id: str, project_id: str) -> None:
        """Grant a project access to a private flavor."""
        with rest.tolerating(409):
            self._nova.flavor_access.add_tenant_access(flavor_id, project_id)

    def remove_flavor_access(self, flavor_id: str, project_id: str) -> None:
        """Revoke a project's access to a private flavor."""
        with rest.tolerating(404):
            self._nova.flavor_access.remove_tenant_access(
                flavor_id, project_id
            )

    def delete_flavor(self, flavor_id: str) -> None:
        """Ensure that a flavor is deleted."""
        with rest.tolerating(404):
            self._nova.flavors.delete(flavor_id)


def _quoted(flavor_id: str) -> str:
    # python-novaclient does not quote the id.
    return parse.quote(flavor_id, safe='')


def _flavor(shown: 'Shown', projects: tuple[str, ...] | None) -> Flavor:
    return Flavor(
        id=shown.id, name=shown.name, vcpus=shown.vcpus, memory_mb=shown.ram,
        disk_gb=shown.disk, ephemeral_gb=shown.ephemeral, swap_mb=shown.swap,
        extra_specs=shown.extra_specs, projects=projects,
    )
