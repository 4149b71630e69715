# SPDX-License-Identifier: Apache-2.0
"""Nova and Placement over HTTP, as far as the clients use them.

The stand-in records each effect, which is a request that changed something. A
repeated request changes nothing, and is answered as the real services would
answer.
"""

from collections.abc import Callable
from collections.abc import Iterable
import contextlib
from http import server
import itertools
import json
import re
import threading
from typing import Any
from urllib import parse
import uuid

from keystoneauth1.fixture.discovery import MicroversionDiscovery
from keystoneauth1.fixture.discovery import NovaMicroversionDiscovery

VCPUS = 8

Body = dict[str, Any]
# A status and a body.
Answer = tuple[int, Body | None]


class Cloud:
    """A running cloud; below `url` are the endpoints of both services.

    :param hosts: the hostnames of its hypervisors
    """

    def __init__(self, hosts: Iterable[str]) -> None:
        self.hosts = {
            name: str(uuid.uuid5(uuid.NAMESPACE_DNS, name)) for name in hosts
        }
        # The changes, in order.
        self.effects: list[str] = []
        # The number of requests to each service, and the requests that changed
        # something.
        self.asked = {'compute': 0, 'placement': 0}
        self.changed_at: list[tuple[str, int]] = []
        # Called with the method and the path of a request before the request
        # is handled.
        self.before: Callable[[str, str], object] = lambda method, path: None
        self.servers: dict[str, Body] = {}
        self.flavors: dict[str, set[str]] = {}
        self.aggregates: dict[str, Body] = {}
        self.server_groups: dict[str, Body] = {}
        self.classes: set[str] = set()
        # Name, generation and inventories of each resource provider.
        self.providers: dict[str, Body] = {
            id_: {'name': name, 'generation': 0, 'inventories': _sizes()}
            for name, id_ in self.hosts.items()
        }
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._server = server.ThreadingHTTPServer(
            ('127.0.0.1', 0), _handler(self)
        )
        self._server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self._server.server_port}'
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    def __enter__(self) -> 'Cloud':
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def forget(self) -> None:
        """Count requests and effects from zero again."""
        with self._lock:
            self.effects.clear()
            self.changed_at.clear()
            self.asked.update(compute=0, placement=0)

    def left(self) -> Body:
        """Return the objects of reservations in the cloud."""
        with self._lock:
            reserved = {
                (p['name'], class_): held['total']
                for p in self.providers.values()
                for class_, held in p['inventories'].items()
                if class_.startswith('CUSTOM_')
            }
            return {
                'flavors': {f: set(who) for f, who in self.flavors.items()},
                'aggregates': {
                    a['name']: set(a['hosts'])
                    for a in self.aggregates.values()
                },
                'server groups': {
                    g['name']: g['policy']
                    for g in self.server_groups.values()
                },
                'classes': set(self.classes),
                'inventories': reserved,
            }

    def boot(self, host: str, project_id: str, reservation_id: str) -> None:
        """Create a server that draws on a reservation."""
        id_ = str(uuid.uuid4())
        self.servers[id_] = {
            'id': id_,
            'created': '2030-01-01T00:00:00Z',
            'tenant_id': project_id,
            'OS-EXT-SRV-ATTR:hypervisor_hostname': host,
            'OS-EXT-SRV-ATTR:host': host,
            'scheduler_hints': {'reservation': [reservation_id]},
            'image': {'id': 'image'},
            'flavor': {
                'vcpus': 1,
                'ram': 512,
                'disk': 1,
                'ephemeral': 0,
                'swap': 0,
                'extra_specs': {},
            },
        }

    def answer(
        self, method: str, path: str, query: dict[str, str], body: Body
    ) -> Answer:
        self.before(method, path)
        for service, its_method, pattern, do in _ROUTES:
            match = re.fullmatch(pattern, path)
            if match and method == its_method:
                with self._lock:
                    known = len(self.effects)
                    self.asked[service] += 1
                    answer = do(
                        self, *match.groups(), query=query, body=body
                    )
                    if len(self.effects) > known:
                        self.changed_at.append((service, self.asked[service]))
                return answer
        raise LookupError(f'{method} {path} is not a request of ours')

    def _note(self, effect: str) -> None:
        self.effects.append(effect)

    # Nova

    def _hypervisors(self, query: Body, **_: Any) -> Answer:
        part = query.get('hypervisor_hostname_pattern', '')
        found = [
            {
                'id': id_,
                'hypervisor_hostname': name,
                'hypervisor_type': 'QEMU',
                'hypervisor_version': 8002000,
                'cpu_info': '{}',
                'service': {'host': name},
                'state': 'up',
                'status': 'enabled',
            }
            for name, id_ in self.hosts.items()
            if part in name
        ]
        return 200, {'hypervisors': found}

    def _services(self, **_: Any) -> Answer:
        found = [{'zone': 'nova', 'host': name} for name in self.hosts]
        return 200, {'services': found}

    def _list_servers(self, query: Body, **_: Any) -> Answer:
        found = [
            s
            for s in self.servers.values()
            if query.get('project_id', s['tenant_id']) == s['tenant_id']
            and query.get('host', s['OS-EXT-SRV-ATTR:host'])
            == s['OS-EXT-SRV-ATTR:host']
        ]
        return 200, {'servers': found}

    def _show_server(self, id_: str, **_: Any) -> Answer:
        server = self.servers.get(id_)
        return (404, {}) if server is None else (200, {'server': server})

    def _delete_server(self, id_: str, **_: Any) -> Answer:
        server = self.servers.pop(id_, None)
        if server is None:
            return 404, {}
        self._note(f'server on {server["OS-EXT-SRV-ATTR:host"]} deleted')
        return 204, None

    def _list_flavors(self, **_: Any) -> Answer:
        # All flavors belong to reservations, and are left out.
        return 200, {'flavors': []}

    def _make_flavor(self, body: Body, **_: Any) -> Answer:
        id_ = body['flavor']['id']
        if id_ in self.flavors:
            return 409, {}
        self.flavors[id_] = set()
        self._note('flavor made')
        return 200, body

    def _describe_flavor(self, id_: str, body: Body, **_: Any) -> Answer:
        return (200, body) if id_ in self.flavors else (404, {})

    def _flavor_action(self, id_: str, body: Body, **_: Any) -> Answer:
        [(action, values)] = body.items()
        if id_ not in self.flavors:
            return 404, {}
        access, project = self.flavors[id_], values['tenant']
        if action == 'addTenantAccess':
            if project in access:
                return 409, {}
            access.add(project)
            self._note('access given')
        else:
            if project not in access:
                return 404, {}
            access.remove(project)
            self._note('access taken')
        return 200, {'flavor_access': []}

    def _delete_flavor(self, id_: str, **_: Any) -> Answer:
        if self.flavors.pop(id_, None) is None:
            return 404, {}
        self._note('flavor deleted')
        return 202, None

    def _list_aggregates(self, **_: Any) -> Answer:
        return 200, {'aggregates': list(self.aggregates.values())}

    def _make_aggregate(self, body: Body, **_: Any) -> Answer:
        name = body['aggregate']['name']
        if any(a['name'] == name for a in self.aggregates.values()):
            return 409, {}
        id_ = next(self._ids)
        made = {
            'id': id_, 'uuid': str(uuid.uuid5(uuid.NAMESPACE_OID, name)),
            'name': name, 'hosts': [], 'metadata': {},
        }
        self.aggregates[str(id_)] = made
        self._note(f'aggregate {id_} made')
        return 200, {'aggregate': {k: made[k] for k in ('id', 'uuid', 'name')}}

    def _aggregate_action(self, id_: str, body: Body, **_: Any) -> Answer:
        [(action, values)] = body.items()
        if id_ not in self.aggregates:
            return 404, {}
        aggregate = self.aggregates[id_]
        if action == 'set_metadata':
            aggregate['metadata'] |= values['metadata']
            self._note(f'aggregate {id_} described')
            return 200, {'aggregate': aggregate}
        host, adds = values['host'], action == 'add_host'
        if (host in aggregate['hosts']) is adds:
            return (409 if adds else 404), {}
        if adds:
            aggregate['hosts'].append(host)
        else:
            aggregate['hosts'].remove(host)
        self._note(f'{host} is {"in" if adds else "out of"} the aggregate')
        return 200, {'aggregate': aggregate}

    def _delete_aggregate(self, id_: str, **_: Any) -> Answer:
        if id_ not in self.aggregates:
            return 404, {}
        if self.aggregates[id_]['hosts']:
            return 400, {}
        del self.aggregates[id_]
        self._note(f'aggregate {id_} deleted')
        return 200, None

    def _list_server_groups(self, query: Body, **_: Any) -> Answer:
        first = int(query.get('offset', 0))
        found = list(self.server_groups.values())
        return 200, {'server_groups': found[first : first + 1000]}

    def _make_server_group(self, body: Body, **_: Any) -> Answer:
        made = {'id': str(uuid.uuid4()), **body['server_group']}
        self.server_groups[made['id']] = made
        self._note('server group made')
        return 200, {'server_group': made}

    def _delete_server_group(self, id_: str, **_: Any) -> Answer:
        if self.server_groups.pop(id_, None) is None:
            return 404, {}
        self._note('server group deleted')
        return 204, None

    # Placement

    def _show_inventories(self, id_: str, **_: Any) -> Answer:
        if id_ not in self.providers:
            return 404, {}
        provider = self.providers[id_]
        return 200, {
            'resource_provider_generation': provider['generation'],
            'inventories': provider['inventories'],
        }

    def _show_traits(self, id_: str, **_: Any) -> Answer:
        return (200, {'traits': []}) if id_ in self.providers else (404, {})

    def _put_inventories(self, id_: str, body: Body, **_: Any) -> Answer:
        if id_ not in self.providers:
            return 404, {}
        provider = self.providers[id_]
        if body['resource_provider_generation'] != provider['generation']:
            return 409, {'errors': [{'code': 'placement.concurrent_update'}]}
        provider['generation'] += 1
        provider['inventories'] = body['inventories']
        totals = [held['total'] for held in body['inventories'].values()]
        self._note(f'inventory of {provider["name"]} is {totals}')
        return 200, body

    def _find_provider(self, query: Body, **_: Any) -> Answer:
        return 200, {
            'resource_providers': [
                {'uuid': id_, **{k: p[k] for k in ('name', 'generation')}}
                for id_, p in self.providers.items()
                if query.get('name', p['name']) == p['name']
            ]
        }

    def _make_provider(self, body: Body, **_: Any) -> Answer:
        if any(p['name'] == body['name'] for p in self.providers.values()):
            return 409, {}
        self.providers[str(uuid.uuid4())] = {
            'name': body['name'],
            'generation': 0,
            'inventories': {},
        }
        self._note(f'provider {body["name"]} made')
        return 200, {}

    def _delete_provider(self, id_: str, **_: Any) -> Answer:
        if self.providers.pop(id_, None) is None:
            return 404, {}
        self._note('provider deleted')
        return 204, None

    def _make_class(self, name: str, **_: Any) -> Answer:
        if name in self.classes:
            return 204, None
        self.classes.add(name)
        self._note('class made')
        return 201, None

    def _show_class(self, name: str, **_: Any) -> Answer:
        return (200, {'name': name}) if name in self.classes else (404, {})

    def _delete_class(self, name: str, **_: Any) -> Answer:
        if name not in self.classes:
            return 404, {}
        if any(name in p['inventories'] for p in self.providers.values()):
            return 409, {}
        self.classes.remove(name)
        self._note('class deleted')
        return 204, None


# The version documents, by the path of the endpoint.
_VERSIONS = {
    '/compute': NovaMicroversionDiscovery(
        'compute', 'v2.1', min_version='2.1', version='2.100'
    ),
    '/placement': MicroversionDiscovery(
        'placement', 'v1.0', min_version='1.0', max_version='1.39'
    ),
}
_ID = '([^/]+)'
_INVENTORIES = f'/resource_providers/{_ID}/inventories'
_ROUTES: list[tuple[str, str, str, Callable[..., Answer]]] = [
    ('compute', 'GET', '/os-hypervisors/detail', Cloud._hypervisors),
    ('compute', 'GET', '/os-services', Cloud._services),
    ('compute', 'GET', '/servers/detail', Cloud._list_servers),
    ('compute', 'GET', f'/servers/{_ID}', Cloud._show_server),
    ('compute', 'DELETE', f'/servers/{_ID}', Cloud._delete_server),
    ('compute', 'GET', '/flavors/detail', Cloud._list_flavors),
    ('compute', 'POST', '/flavors', Cloud._make_flavor),
    ('compute', 'POST', f'/flavors/{_ID}/os-extra_specs',
     Cloud._describe_flavor),
    ('compute', 'POST', f'/flavors/{_ID}/action', Cloud._flavor_action),
    ('compute', 'DELETE', f'/flavors/{_ID}', Cloud._delete_flavor),
    ('compute', 'GET', '/os-aggregates', Cloud._list_aggregates),
    ('compute', 'POST', '/os-aggregates', Cloud._make_aggregate),
    ('compute', 'POST', f'/os-aggregates/{_ID}/action',
     Cloud._aggregate_action),
    ('compute', 'DELETE', f'/os-aggregates/{_ID}', Cloud._delete_aggregate),
    ('compute', 'GET', '/os-server-groups', Cloud._list_server_groups),
    ('compute', 'POST', '/os-server-groups', Cloud._make_server_group),
    ('compute', 'DELETE', f'/os-server-groups/{_ID}',
     Cloud._delete_server_group),
    ('placement', 'GET', _INVENTORIES, Cloud._show_inventories),
    ('placement', 'GET', f'/resource_providers/{_ID}/traits',
     Cloud._show_traits),
    ('placement', 'PUT', _INVENTORIES, Cloud._put_inventories),
    ('placement', 'GET', '/resource_providers', Cloud._find_provider),
    ('placement', 'POST', '/resource_providers', Cloud._make_provider),
    ('placement', 'DELETE', f'/resource_providers/{_ID}',
     Cloud._delete_provider),
    ('placement', 'PUT', f'/resource_classes/{_ID}', Cloud._make_class),
    ('placement', 'GET', f'/resource_classes/{_ID}', Cloud._show_class),
    ('placement', 'DELETE', f'/resource_classes/{_ID}',
     Cloud._delete_class),
]  # fmt: skip


def _sizes() -> Body:
    return {
        name: {'total': total, 'reserved': 0, 'allocation_ratio': 1.0}
        for name, total in (
            ('VCPU', VCPUS),
            ('MEMORY_MB', 65536),
            ('DISK_GB', 1000),
        )
    }


def _handler(cloud: Cloud) -> type[server.BaseHTTPRequestHandler]:
    class Handler(server.BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'

        def handle(self) -> None:
            # The client may be killed before the response.
            with contextlib.suppress(ConnectionError):
                super().handle()

        def _answer(self) -> None:
            url = parse.urlsplit(self.path)
            length = int(self.headers.get('Content-Length') or 0)
            sent = json.loads(self.rfile.read(length) or '{}')
            endpoint = re.match('/[^/]+', url.path)[0]
            path = url.path.removeprefix(endpoint).rstrip('/')
            if path:
                query = dict(parse.parse_qsl(url.query))
                status, body = cloud.answer(self.command, path, query, sent)
            else:
                status, body = 200, {'version': _VERSIONS[endpoint]}
            data = b'' if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header('Content-Type', 'application/json')
            if status != 204:
                self.send_header('Content-Length', str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = _answer

        def log_message(self, *args: object) -> None:
            pass

    return Handler
