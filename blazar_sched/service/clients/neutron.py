# SPDX-License-Identifier: Apache-2.0
"""Client of Neutron's floating IPs, as far as reservations need them.

A project may change the tags and the description of its objects, so neither
proves anything beyond that project.

All creations and removals in this module are idempotent.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Any
from urllib import parse

from keystoneauth1 import adapter
import requests

from blazar_sched.domain import exception
from blazar_sched.domain.floating_ip import Subnet
from blazar_sched.service.clients import rest

# The device owner of the port that gives a floating IP its address.
_FLOATING_IP = 'network:floatingip'


@dataclasses.dataclass(frozen=True, slots=True)
class FloatingIP:
    """A floating IP that exists in Neutron."""

    id: str
    address: str
    project_id: str
    description: str
    tags: tuple[str, ...]


class Neutron:
    """A client of the network API.

    :param api: a keystoneauth adapter for the network service of an admin;
        None where no network service is configured
    """

    def __init__(self, api: adapter.Adapter | None) -> None:
        #: Whether a network service is configured.
        self.is_configured = api is not None
        self._rest = rest.Rest('network', api, None)

    def subnets(self, network_id: str) -> list[Subnet]:
        """Return the subnets of a network, none if it is not external."""
        external = {'id': network_id, 'router:external': 'True'}
        if not list(self._list('networks', external)):
            return []
        return [
            Subnet(
                id=found['id'],
                network_id=found['network_id'],
                cidr=found['cidr'],
                gateway=found['gateway_ip'],
                pools=tuple(
                    (pool['start'], pool['end'])
                    for pool in found['allocation_pools']
                ),
            )
            for found in self._list('subnets', {'network_id': network_id})
        ]

    def floating_ips(self, **filters: str) -> list[FloatingIP]:
        """Return the floating IPs that match Neutron's filters.

        :param filters: such as project_id
        """
        return list(map(_floating_ip, self._list('floatingips', filters)))

    def port_addresses(self, network_id: str) -> set[str]:
        """Return the addresses of a network's ports, without floating IPs."""
        return {
            fixed['ip_address']
            for port in self._list('ports', {'network_id': network_id})
            if port['device_owner'] != _FLOATING_IP
            for fixed in port['fixed_ips']
        }

    def has_quota(self, project_id: str) -> bool:
        """Return whether a project's quota allows another floating IP."""
        project = parse.quote(project_id, safe='')
        details = self._rest.ask(f'/quotas/{project}/details')
        quota = details['quota']['floatingip']
        allowed: bool = quota['limit'] < 0 or (
            quota['used'] + quota['reserved'] < quota['limit']
        )
        return allowed

    def create_floating_ip(
        self, network_id: str, address: str, project_id: str, description: str
    ) -> FloatingIP | None:
        """Ensure that a project has a floating IP with a given address.

        :param description: identifies the floating IP when searched again:
            unlike tags, the description is present from the first moment
        :returns: None if the address is another project's, or unavailable
        :raises Conflict: if the project's quota allows no other floating IP
        """
        asked = {
            'floating_ip_address': address,
            'project_id': project_id,
            'description': description,
        }
        answer = self._rest.request(
            'POST',
            '/floatingips',
            json={'floatingip': {'floating_network_id': network_id, **asked}},
            also=(400, 404, 409),
        )
        if answer.ok:
            return _floating_ip(rest.document(answer)['floatingip'])
        if _error(answer) == 'OverQuota':
            raise exception.Conflict(
                f'the quota of project {project_id} allows no other floating '
                'IP'
            )
        found = self.floating_ips(floating_network_id=network_id, **asked)
        return found[0] if found else None

    def tag_floating_ip(
        self, floating_ip: FloatingIP, tags: Iterable[str]
    ) -> None:
        """Ensure that a floating IP has tags.

        :raises Unavailable: also if the floating IP is gone, for which
            Neutron 29 answers 500
        """
        for tag in tags:
            if tag not in floating_ip.tags:
                name = parse.quote(tag, safe='')
                self._rest.request(
                    'PUT', f'/floatingips/{floating_ip.id}/tags/{name}'
                )

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Ensure that a floating IP and all uses of it are removed."""
        url = f'/floatingips/{floating_ip_id}'
        answer = self._rest.request('DELETE', url, also=(404, 409))
        if answer.status_code != 409:
            return
        # Neutron detaches a port by itself, but keeps port forwardings.
        forwardings = self._rest.ask(f'{url}/port_forwardings')
        for forwarding in forwardings['port_forwardings']:
            self._rest.request(
                'DELETE',
                f'{url}/port_forwardings/{forwarding["id"]}',
                also=(404,),
            )
        self._rest.request('DELETE', url, also=(404,))

    def _list(self, what: str, filters: Mapping[str, str]) -> Iterator[Any]:
        """Yield the objects that match Neutron's filters, page by page."""
        query = dict(filters)
        while True:
            page = self._rest.ask(f'/{what}?{parse.urlencode(query)}')
            yield from page[what]
            links = page.get(f'{what}_links', ())
            if not any(link['rel'] == 'next' for link in links):
                return
            query['marker'] = page[what][-1]['id']


def _floating_ip(found: Mapping[str, Any]) -> FloatingIP:
    return FloatingIP(
        id=found['id'],
        address=found['floating_ip_address'],
        project_id=found['project_id'],
        description=found.get('description') or '',
        tags=tuple(found.get('tags', ())),
    )


def _error(answer: requests.Response) -> str | None:
    """Return the type of Neutron's error."""
    error = rest.document(answer).get('NeutronError', {})
    return error.get('type') if isinstance(error, dict) else None
