# SPDX-License-Identifier: Apache-2.0
"""Nova, as far as reservations need it.

Hypervisors, servers, flavors, host aggregates.

Whatever is made or removed here may be made or removed twice.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Any
from urllib import parse

from keystoneauth1 import adapter
from oslo_utils import strutils

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain import lifetime
from blazar_sched.domain import window
from blazar_sched.service.clients import rest

# The last one before hypervisors lose cpu_info.
MICROVERSION = '2.87'
# The first one that shows scheduler hints.
SERVER_MICROVERSION = '2.100'


@dataclasses.dataclass(frozen=True, slots=True)
class Hypervisor:
    """A compute node; `host` is the name of its nova-compute service."""

    uuid: str
    hostname: str
    host: str
    type: str
    version: int
    cpu_info: str
    availability_zone: str


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server and what its owner said about it.

    `node` is the hostname of the hypervisor it is on, None if on none;
    `reservation_id` is what it *claims* to draw on, whosever that is.
    """

    uuid: str
    node: str | None
    project_id: str
    amounts: Mapping[str, int]
    end: int
    reservation_id: str | None
    preemptible: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Aggregate:
    """A host aggregate; `hosts` are nova-compute services."""

    id: int
    name: str
    hosts: tuple[str, ...]
    metadata: Mapping[str, str]


class Nova:
    """A client of the compute API.

    :param api: a keystoneauth adapter for the compute service of an admin;
        None where no cloud is configured
    """

    def __init__(self, api: adapter.Adapter | None) -> None:
        self._rest = rest.Rest('compute', api, MICROVERSION)

    def hypervisor(self, name: str) -> Hypervisor:
        """Return the hypervisor of that hostname, or on that service host.

        :raises HostNotFound: if there is none
        :raises Conflict: if several have the name
        """
        query = parse.urlencode({'hypervisor_hostname_pattern': name})
        # Nova answers 400 to what cannot be a hostname.
        answer = self._rest.request(
            'GET', f'/os-hypervisors/detail?{query}', also=(400, 404)
        )
        known = rest.document(answer).get('hypervisors', ())
        found = [h for h in known if h['hypervisor_hostname'] == name] or [
            h for h in known if h['service']['host'] == name
        ]
        if not found:
            raise exception.HostNotFound(
                f'Nova knows no hypervisor {name!r}', field='name'
            )
        if len(found) > 1:
            raise exception.Conflict(
                f'Nova knows {len(found)} hypervisors {name!r}', field='name'
            )
        return self._hypervisor(found[0])

    def _hypervisor(self, found: Mapping[str, Any]) -> Hypervisor:
        host = found['service']['host']
        query = parse.urlencode({'binary': 'nova-compute', 'host': host})
        services = self._rest.ask(f'/os-services?{query}')
        zones = [s['zone'] for s in services['services']]
        return Hypervisor(
            uuid=found['id'],
            hostname=found['hypervisor_hostname'],
            host=host,
            type=found['hypervisor_type'],
            version=found['hypervisor_version'],
            cpu_info=str(found.get('cpu_info') or ''),
            availability_zone=zones[0] if zones else '',
        )

    def servers(self, **filters: str) -> Iterator[Server]:
        """Yield the servers of every project that Nova's filters let by.

        :param filters: such as host (the service's) or project_id
        """
        query = {'all_tenants': '1', 'sort_key': 'uuid', **filters}
        while True:
            page = self._rest.ask(
                f'/servers/detail?{parse.urlencode(query)}',
                microversion=SERVER_MICROVERSION,
            )
            yield from map(_server, page['servers'])
            if not page.get('servers_links'):
                return
            query['marker'] = page['servers'][-1]['id']

    def delete_servers(self, servers: Iterable[Server]) -> bool:
        """Ask Nova to delete servers; it takes its time.

        :returns: True if there was none to delete
        :raises Unavailable: if Nova does not delete some as they are now;
            all others are asked for before
        """
        none = True
        refused = []
        for server in servers:
            none = False
            answer = self._rest.request(
                'DELETE', f'/servers/{server.uuid}', also=(404, 409)
            )
            if answer.status_code == 409:
                refused.append(server.uuid)
        if refused:
            raise exception.Unavailable(
                f'compute does not delete servers now: {", ".join(refused)}'
            )
        return none

    def create_flavor(
        self,
        flavor_id: str,
        name: str,
        slot: Mapping[str, int],
        extra_specs: Mapping[str, str],
    ) -> None:
        """Make sure that a private flavor is there."""
        flavor = {
            'id': flavor_id,
            'name': name,
            'vcpus': slot[inventory.VCPU],
            'ram': slot[inventory.MEMORY_MB],
            'disk': slot[inventory.DISK_GB],
            'os-flavor-access:is_public': False,
        }
        self._rest.request(
            'POST', '/flavors', json={'flavor': flavor}, also=(409,)
        )
        self._rest.request(
            'POST',
            f'/flavors/{flavor_id}/os-extra_specs',
            json={'extra_specs': dict(extra_specs)},
        )

    def add_flavor_access(self, flavor_id: str, project_id: str) -> None:
        """Let a project use a private flavor."""
        self._rest.request(
            'POST',
            f'/flavors/{flavor_id}/action',
            json={'addTenantAccess': {'tenant': project_id}},
            also=(409,),
        )

    def remove_flavor_access(self, flavor_id: str, project_id: str) -> None:
        """No longer let a project use a private flavor."""
        self._rest.request(
            'POST',
            f'/flavors/{flavor_id}/action',
            json={'removeTenantAccess': {'tenant': project_id}},
            also=(404,),
        )

    def delete_flavor(self, flavor_id: str) -> None:
        """Make sure that a flavor is gone."""
        self._rest.request('DELETE', f'/flavors/{flavor_id}', also=(404,))

    def aggregate(self, name: str) -> Aggregate | None:
        """Return the host aggregate of that name, None if there is none."""
        for shown in self._rest.ask('/os-aggregates')['aggregates']:
            if shown['name'] == name:
                return Aggregate(
                    id=shown['id'],
                    name=name,
                    hosts=tuple(shown['hosts']),
                    metadata=shown['metadata'],
                )
        return None

    def create_aggregate(
        self, name: str, metadata: Mapping[str, str]
    ) -> Aggregate:
        """Make sure that a host aggregate is there, with that metadata.

        :raises Unavailable: also if it comes and goes
        """
        self._rest.request(
            'POST',
            '/os-aggregates',
            json={'aggregate': {'name': name}},
            also=(409,),
        )
        made = self.aggregate(name)
        if made is None:
            raise exception.Unavailable(f'aggregate {name} comes and goes')
        if metadata.items() <= made.metadata.items():
            return made
        self._act_on(made, {'set_metadata': {'metadata': dict(metadata)}})
        return dataclasses.replace(
            made, metadata={**made.metadata, **metadata}
        )

    def add_to_aggregate(self, aggregate: Aggregate, host: str) -> None:
        """Make sure that a nova-compute service's host is in it."""
        if host not in aggregate.hosts:
            self._act_on(aggregate, {'add_host': {'host': host}}, (409,))

    def remove_from_aggregate(self, aggregate: Aggregate, host: str) -> None:
        """Make sure that a nova-compute service's host is not in it."""
        if host in aggregate.hosts:
            self._act_on(aggregate, {'remove_host': {'host': host}}, (404,))

    def delete_aggregate(self, name: str) -> None:
        """Make sure that a host aggregate is gone, whatever is in it."""
        found = self.aggregate(name)
        if found is None:
            return
        for host in found.hosts:
            self.remove_from_aggregate(found, host)
        self._rest.request(
            'DELETE', f'/os-aggregates/{found.id}', also=(404,)
        )

    def _act_on(
        self,
        aggregate: Aggregate,
        action: Mapping[str, Any],
        also: Collection[int] = (),
    ) -> None:
        self._rest.request(
            'POST',
            f'/os-aggregates/{aggregate.id}/action',
            json=dict(action),
            also=also,
        )


def _server(shown: Mapping[str, Any]) -> Server:
    specs = shown['flavor'].get('extra_specs', {})
    hints = shown.get('scheduler_hints') or {}
    claim = _single(hints.get('reservation')) or specs.get(
        'blazar:reservation'
    )
    return Server(
        uuid=shown['id'],
        node=shown.get('OS-EXT-SRV-ATTR:hypervisor_hostname'),
        project_id=shown['tenant_id'],
        amounts=_amounts(shown),
        end=_end(shown['created'], hints, specs),
        reservation_id=claim if isinstance(claim, str) else None,
        preemptible=strutils.bool_from_string(
            specs.get('blazar:preemptible', '')
        ),
    )


def _amounts(shown: Mapping[str, Any]) -> dict[str, int]:
    flavor = shown['flavor']
    # A server that boots from a volume has no image and no root disk.
    root = flavor['disk'] if shown.get('image') else 0
    swap_gb = -(-int(flavor['swap'] or 0) // 1024)
    return {
        inventory.VCPU: flavor['vcpus'],
        inventory.MEMORY_MB: flavor['ram'],
        inventory.DISK_GB: root + flavor['ephemeral'] + swap_gb,
    }


def _end(
    created: str, hints: Mapping[str, Any], specs: Mapping[str, str]
) -> int:
    """Return when the server said that it ends; FOREVER if it is unclear."""
    try:
        if 'lease_end' in hints:
            return lifetime.parse_time(_single(hints['lease_end']), 'end')
        lasts = hints.get('lifetime', specs.get('blazar:lifetime'))
        if lasts is None:
            return window.FOREVER
        return lifetime.end_after(
            lifetime.parse_time(created, 'created'),
            lifetime.parse_duration(_single(lasts), 'lifetime'),
        )
    except exception.InvalidInput:
        return window.FOREVER


def _single(hint: Any) -> Any:
    """Return a hint's value; Nova shows one given once as a list of one."""
    return hint[0] if isinstance(hint, list) and len(hint) == 1 else hint
