# SPDX-License-Identifier: Apache-2.0
"""Client of Nova's flavors."""

from collections.abc import Mapping
from typing import Any
from urllib import parse

from blazar_sched.domain import flavor as flavor_rules
from blazar_sched.domain.flavor import Flavor
from blazar_sched.service.clients import rest


class Flavors:
    """The part of the Nova client that handles flavors."""

    _rest: rest.Rest

    def flavors(self) -> list[Flavor]:
        """Return all flavors except the flavors of reservations."""
        found: list[Flavor] = []
        query = {'is_public': 'none'}
        while True:
            page = self._rest.ask(f'/flavors/detail?{parse.urlencode(query)}')
            found += [
                _flavor(shown, self._access(shown))
                for shown in page['flavors']
                if not flavor_rules.reservation_id(shown['extra_specs'])
            ]
            if not page.get('flavors_links'):
                return found
            query['marker'] = page['flavors'][-1]['id']

    def _access(self, shown: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the projects that may use a flavor, None for all."""
        if shown['os-flavor-access:is_public']:
            return None
        answer = self._rest.request(
            'GET',
            f'/flavors/{parse.quote(shown["id"])}/os-flavor-access',
            also=(404,),
        )
        access = rest.document(answer).get('flavor_access', ())
        return tuple(sorted(a['tenant_id'] for a in access))

    def create_flavor(self, flavor: Flavor) -> None:
        """Ensure that a flavor exists, at first without access of projects."""
        body = {
            'id': flavor.id,
            'name': flavor.name,
            'vcpus': flavor.vcpus,
            'ram': flavor.memory_mb,
            'disk': flavor.disk_gb,
            'OS-FLV-EXT-DATA:ephemeral': flavor.ephemeral_gb,
            'swap': flavor.swap_mb,
            'os-flavor-access:is_public': False,
        }
        self._rest.request(
            'POST', '/flavors', json={'flavor': body}, also=(409,)
        )
        self._rest.request(
            'POST',
            f'/flavors/{flavor.id}/os-extra_specs',
            json={'extra_specs': dict(flavor.extra_specs)},
        )

    def add_flavor_access(self, flavor_id: str, project_id: str) -> None:
        """Grant a project access to a private flavor."""
        self._rest.request(
            'POST',
            f'/flavors/{flavor_id}/action',
            json={'addTenantAccess': {'tenant': project_id}},
            also=(409,),
        )

    def remove_flavor_access(self, flavor_id: str, project_id: str) -> None:
        """Revoke a project's access to a private flavor."""
        self._rest.request(
            'POST',
            f'/flavors/{flavor_id}/action',
            json={'removeTenantAccess': {'tenant': project_id}},
            also=(404,),
        )

    def delete_flavor(self, flavor_id: str) -> None:
        """Ensure that a flavor is deleted."""
        self._rest.request('DELETE', f'/flavors/{flavor_id}', also=(404,))


def _flavor(
    shown: Mapping[str, Any], projects: tuple[str, ...] | None
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
