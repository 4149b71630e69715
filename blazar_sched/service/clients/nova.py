# SPDX-License-Identifier: Apache-2.0
"""Nova, as far as reservations need it.

Hypervisors, servers, flavors, host aggregates, server groups.

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
from blazar_sched.domain import flavor as flavor_
from blazar_sched.domain import lifetime
from blazar_sched.domain import window
from blazar_sched.service.clients import rest

# The last one before hypervisors lose cpu_info.
MICROVERSION = '2.87'
# The first one that shows scheduler hints.
SERVER_MICROVERSION = '2.100'
# The last one that shows images.
IMAGE_MICROVERSION = '2.35'

# The extra spec of the flavors that reservations have.
_RESERVATION = 'blazar:reservation'


@dataclasses.dataclass(frozen=True, slots=True)
class Hypervisor:
    """A compute node; `host` is the name of its nova-compute service.

    `up` is whether that service runs and is enabled.
    """

    uuid: str
    hostname: str
    host: str
    type: str
    version: int
    cpu_info: str
    availability_zone: str
    up: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server and what its owner said about it.

    `node` is the hostname of the hypervisor it is on, None if on none;
    `reservation_id` is what it *claims* to draw on, whosever that is;
    `status` is Nova's.
    """

    uuid: str
    node: str | None
    project_id: str
    amounts: Mapping[str, int]
    end: int
    reservation_id: str | None
    preemptible: bool
    name: str = ''
    status: str = ''


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
        zones = self._zones(host=found[0]['service']['host'])
        return _hypervisor(found[0], zones)

    def hypervisors(self) -> Iterator[Hypervisor]:
        """Yield every hypervisor."""
        zones = self._zones()
        url = '/os-hypervisors/detail'
        while True:
            page = self._rest.ask(url)
            for shown in page['hypervisors']:
                yield _hypervisor(shown, zones)
            if not page.get('hypervisors_links'):
                return
            marker = page['hypervisors'][-1]['id']
            url = f'/os-hypervisors/detail?marker={marker}'

    def _zones(self, **filters: str) -> dict[str, str]:
        """Return the availability zones of nova-compute services by host."""
        query = parse.urlencode({'binary': 'nova-compute', **filters})
        services = self._rest.ask(f'/os-services?{query}')['services']
        return {s['host']: s['zone'] for s in services}

    def servers(self, **filters: str) -> Iterator[Server]:
        """Yield the servers of every project that Nova's filters let by.

        :param filters: such as host (the service's) or project_id
        :raises Unavailable: also if a cell with some of them is down
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

    def shelve_servers(self, servers: Iterable[Server]) -> bool:
        """Ask Nova to shelve servers off their hosts; it takes its time.

        One that cannot be shelved as it is now is asked for again with the
        next call.

        :returns: True if there was none on a host, or on its way to one
        """
        none = True
        for server in servers:
            if server.node is None and server.status != 'BUILD':
                continue
            none = False
            # Nova may be told to leave them on their host when shelved.
            shelved = server.status == 'SHELVED'
            self._rest.request(
                'POST',
                f'/servers/{server.uuid}/action',
                json={'shelveOffload' if shelved else 'shelve': None},
                also=(404, 409),
            )
        return none

    def create_image(
        self, server: Server, name: str, metadata: Mapping[str, str]
    ) -> None:
        """Make sure that there is an image of a server, with that metadata.

        One of a server that is gone is not made.

        :raises Unavailable: also if the server cannot be copied as it is now
        """
        query = parse.urlencode({'server': server.uuid, 'name': name})
        images = self._rest.ask(
            f'/images/detail?{query}', microversion=IMAGE_MICROVERSION
        )['images']
        if any(metadata.items() <= i['metadata'].items() for i in images):
            return
        image = {'name': name, 'metadata': dict(metadata)}
        self._rest.request(
            'POST',
            f'/servers/{server.uuid}/action',
            json={'createImage': image},
            also=(404,),
        )

    def flavors(self) -> list[flavor_.Flavor]:
        """Return all flavors but those of reservations."""
        found: list[flavor_.Flavor] = []
        query = {'is_public': 'none'}
        while True:
            page = self._rest.ask(f'/flavors/detail?{parse.urlencode(query)}')
            found += [
                _flavor(shown, self._access(shown))
                for shown in page['flavors']
                if _RESERVATION not in shown['extra_specs']
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

    def create_flavor(self, flavor: flavor_.Flavor) -> None:
        """Make sure that a flavor is there, as yet for no project."""
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
        self.set_aggregate_metadata(made, metadata)
        return dataclasses.replace(
            made, metadata={**made.metadata, **metadata}
        )

    def set_aggregate_metadata(
        self, aggregate: Aggregate, metadata: Mapping[str, str | None]
    ) -> None:
        """Give an aggregate metadata; None takes away what it has."""
        self._act_on(
            aggregate, {'set_metadata': {'metadata': dict(metadata)}}
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

    def create_server_group(self, name: str, policy: str) -> str | None:
        """Make sure that the client's project has that server group.

        :returns: its id; None if the project may have none, or no more
        """
        for shown in self._server_groups({}):
            if shown['name'] == name:
                return str(shown['id'])
        answer = self._rest.request(
            'POST',
            '/os-server-groups',
            json={'server_group': {'name': name, 'policy': policy}},
            also=(403,),
        )
        if answer.status_code == 403:
            return None
        return str(rest.document(answer)['server_group']['id'])

    def delete_server_group(self, name: str) -> None:
        """Make sure that no project has a server group of that name."""
        # All pages first: a deletion would move what is on the next ones.
        for shown in list(self._server_groups({'all_projects': 'true'})):
            if shown['name'] == name:
                self._rest.request(
                    'DELETE', f'/os-server-groups/{shown["id"]}', also=(404,)
                )

    def _server_groups(
        self, query: Mapping[str, str]
    ) -> Iterator[Mapping[str, Any]]:
        offset = 0
        while True:
            page = self._rest.ask(
                '/os-server-groups?'
                + parse.urlencode({**query, 'offset': offset})
            )['server_groups']
            yield from page
            # Nova gives no links here, and may give fewer than asked for.
            if not page:
                return
            offset += len(page)

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


def _hypervisor(
    shown: Mapping[str, Any], zones: Mapping[str, str]
) -> Hypervisor:
    host = shown['service']['host']
    return Hypervisor(
        uuid=shown['id'],
        hostname=shown['hypervisor_hostname'],
        host=host,
        type=shown['hypervisor_type'],
        version=shown['hypervisor_version'],
        cpu_info=str(shown.get('cpu_info') or ''),
        availability_zone=zones.get(host, ''),
        up=(shown['state'], shown['status']) == ('up', 'enabled'),
    )


def _flavor(
    shown: Mapping[str, Any], projects: tuple[str, ...] | None
) -> flavor_.Flavor:
    return flavor_.Flavor(
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


def _server(shown: Mapping[str, Any]) -> Server:
    if 'flavor' not in shown:
        # Better no servers at all than some of which nothing is known.
        raise exception.Unavailable(
            f'compute knows little of server {shown["id"]}: a cell is down'
        )
    specs = shown['flavor'].get('extra_specs', {})
    hints = shown.get('scheduler_hints') or {}
    # Whatever it hints at, a reservation's flavor has it hold a slot of that.
    claim = specs.get(_RESERVATION) or _single(hints.get('reservation'))
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
        name=shown.get('name', ''),
        status=shown.get('status', ''),
    )


def _amounts(shown: Mapping[str, Any]) -> dict[str, int]:
    flavor = shown['flavor']
    # A server that boots from a volume has no image and no root disk.
    root = flavor['disk'] if shown.get('image') else 0
    swap_gb = -(-flavor['swap'] // 1024)
    return flavor_.resources(
        flavor['vcpus'],
        flavor['ram'],
        root + flavor['ephemeral'] + swap_gb,
        flavor.get('extra_specs', {}),
    )


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
