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
import functools
from typing import Any
from typing import TYPE_CHECKING
from urllib import parse

from keystoneauth1 import adapter
import requests

from blazar_sched.domain import exception
from blazar_sched.parts.floating_ip.floating_ip import Subnet
from blazar_sched.service.clients import rest

if TYPE_CHECKING:
    from openstack.network.v2._proxy import Proxy

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
        self._api = api

    @functools.cached_property
    def _network(self) -> 'Proxy':
        network: Proxy = rest.connect(self._api, 'network')
        return network

    def subnets(self, network_id: str) -> list[Subnet]:
        """Return the subnets of a network, none if it is not external."""
        network = self._network
        if not any(network.networks(id=network_id, is_router_external=True)):
            return []
        return [
            Subnet(
                id=found.id, network_id=found.network_id, cidr=found.cidr,
                gateway=found.gateway_ip,
                pools=tuple(
                    (pool['start'], pool['end'])
                    for pool in found.allocation_pools
                ),
            )
            for found in network.subnets(network_id=network_id)
        ]

    def floating_ips(self, **filters: str) -> list[FloatingIP]:
        """Return the floating IPs that match Neutron's filters.

        :param filters: such as project_id
        """
        return list(map(_floating_ip, self._list('floatingips', **filters)))

    def port_addresses(self, network_id: str) -> set[str]:
        """Return the addresses of a network's ports, without floating IPs."""
        return {
            fixed['ip_address']
            for port in self._list('ports', network_id=network_id)
            if port['device_owner'] != _FLOATING_IP
            for fixed in port['fixed_ips']
        }

    def has_quota(self, project_id: str) -> bool:
        """Return whether a project's quota allows another floating IP."""
        # The SDK does not quote the id.
        id_ = parse.quote(project_id, safe='')
        quota = self._network.get_quota(id_, details=True).floating_ips
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
            'floating_network_id': network_id, 'floating_ip_address': address,
            'project_id': project_id, 'description': description,
        }
        with rest.tolerating(400, 404, 409) as refusals:
            made = self._network.create_ip(**asked)
            return _floating_ip(made.to_dict(original_names=True))
        if _error(refusals[0]) == 'OverQuota':
            raise exception.Conflict(
                f'the quota of project {project_id} allows no other floating '
                'IP'
            )
        found = self.floating_ips(**asked)
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
                # The SDK's proxy replaces all tags, also those of others.
                name = parse.quote(tag, safe='')
                self._network.put(f'/floatingips/{floating_ip.id}/tags/{name}')

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Ensure that a floating IP and all uses of it are removed."""
        network = self._network
        with rest.tolerating(404), rest.tolerating(409) as refusals:
            network.delete_ip(floating_ip_id)
        if not refusals:
            return
        # Neutron detaches a port by itself, but keeps port forwardings.
        for each in network.floating_ip_port_forwardings(floating_ip_id):
            with rest.tolerating(404):
                network.delete_floating_ip_port_forwarding(
                    floating_ip_id, each
                )
        with rest.tolerating(404):
            network.delete_ip(floating_ip_id)

    def _list(self, what: str, **filters: str) -> Iterator[Any]:
        return rest.pages(self._network, f'/{what}', what, **filters)


def _floating_ip(found: Mapping[str, Any]) -> FloatingIP:
    return FloatingIP(
        id=found['id'], address=found['floating_ip_address'],
        project_id=found['project_id'],
        description=found.get('description') or '',
        tags=tuple(found.get('tags', ())),
    )


def _error(answer: requests.Response) -> str | None:
    """Return the type of Neutron's error."""
    error = rest.document(answer).get('NeutronError', {})
    return error.get('type') if isinstance(error, dict) else None
