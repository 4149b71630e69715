# SPDX-License-Identifier: Apache-2.0
"""Nova and Placement at the level of HTTP, and all that can go wrong there.

Stands for the network between the clients and both: what they answer is what
the services answer to the requests that the clients make, with their own
status codes for what is there already, gone, in use or changed meanwhile.
"""

import copy
import json
import re
from urllib import parse
import uuid

from keystoneauth1 import access
from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import fixture
from keystoneauth1.fixture import discovery
from keystoneauth1.identity import access as access_plugin
import requests

from blazar_sched.service.clients import rest

_NODE = 'OS-EXT-SRV-ATTR:hypervisor_hostname'
_OFFLOADED = 'SHELVED_OFFLOADED'
_RUNNING = ('ACTIVE', 'PAUSED', 'SHUTOFF', 'SUSPENDED')
# In which statuses Nova does it, and its task meanwhile.
_ACTIONS = {
    'os-migrateLive': (('ACTIVE', 'PAUSED'), 'migrating'),
    'shelve': (_RUNNING, 'shelving'),
    'shelveOffload': (('SHELVED',), 'shelving_offloading'),
    'unshelve': (('SHELVED', _OFFLOADED), 'unshelving'),
}
SLOT_TOTALS = {'VCPU': 8, 'MEMORY_MB': 8192, 'DISK_GB': 80}


def answer(status, body=None):
    made = requests.Response()
    made.status_code = status
    made._content = b'' if body is None else json.dumps(body).encode()
    if body is not None:
        made.headers['Content-Type'] = 'application/json'
    return made


def conflict(code):
    return answer(409, {'errors': [{'status': 409, 'code': code}]})


# The documents of versions, by the URL of the catalog.
_VERSIONS = {
    'http://compute/v2.1': discovery.NovaMicroversionDiscovery(
        'http://compute/v2.1', 'v2.1', min_version='2.1', version='2.100',
    ),
    'http://placement': discovery.MicroversionDiscovery(
        'http://placement', 'v1.0', min_version='1.0', max_version='1.39'
    ),
    'http://network': discovery.V2Discovery('http://network/v2.0'),
    'http://image': discovery.V2Discovery('http://image/v2'),
}


def _auth():
    """Return the credentials of a token with a catalog of all services."""
    token = fixture.V3Token()
    token.set_project_scope()
    for url in _VERSIONS:
        service_type = parse.urlsplit(url).hostname
        token.add_service(service_type).add_standard_endpoints(public=url)
    return access_plugin.AccessInfoPlugin(
        access.create(body=token, auth_token='token')
    )


class _Wire(requests.Session):
    """Takes requests to a stand-in instead of to the network."""

    def __init__(self, ask):
        super().__init__()
        self._ask = ask

    def request(self, method, url, params=None, data=None, **kwargs):
        if url.rstrip('/') in _VERSIONS:
            return answer(200, {'version': _VERSIONS[url.rstrip('/')]})
        url = requests.Request(method, url, params=params).prepare().url
        parts = parse.urlsplit(url)
        path = parts.path.removeprefix('/v2.1')
        body = None if data is None else json.loads(data)
        return self._ask(f'{path}?{parts.query}', method, json=body)


class Service(adapter.Adapter):
    """Answers requests; `meddle` is asked what goes wrong with each.

    To clients it is the adapter of a service; `request` is the far end.

    :param routes: (method, pattern of a path, what does it)
    """

    def __init__(self, *routes):
        self.asked = []
        self.meddle = lambda method, path: None
        self._routes = [
            (method, re.compile(path), do) for method, path, do in routes
        ]
        super().__init__(
            rest.Session(session=_Wire(self._answer), auth=_auth())
        )

    def _answer(self, url, method, json):
        return self.request(url, method, json)

    def request(self, url, method, json=None, **kwargs):
        parts = parse.urlsplit(url)
        query = dict(parse.parse_qsl(parts.query))
        self.asked.append((method, parts.path))
        trouble = self.meddle(method, parts.path)
        if trouble is not None and not trouble.effect:
            return trouble.answer()
        for known, pattern, do in self._routes:
            match = pattern.fullmatch(parts.path)
            if method == known and match:
                groups = map(parse.unquote, match.groups())
                given = [x for x in (json,) if x is not None]
                said = do(*groups, *given, **query)
                return said if trouble is None else trouble.answer()
        raise AssertionError(f'{method} {url}')


class CloudApi(Service):
    """Both services.

    :param hosts: names of the compute hosts
    """

    def __init__(self, *hosts):
        self.flavors = {}
        self.access = set()
        self.aggregates = {}
        self.server_groups = {}
        self.servers = {}
        # What servers are asked for, until `settle` does it.
        self._wishes = {}
        # Whether Nova takes servers off their hosts as it shelves them.
        self.offloads = True
        # By consumer and provider, how much of each resource class.
        self.allocations = {}
        # Names of the hosts whose service is down.
        self.down = set()
        self.classes = set()
        self.providers = {}
        # Whether the generation of a provider is compared at all.
        self.compares = True
        # The project of who asks.
        self.acting = 'service'
        self._hosts = hosts
        for name in hosts:
            self._add_provider(name, None, SLOT_TOTALS, self.uuid(name))
        super().__init__(
            ('GET', '/os-hypervisors/detail', self._hypervisors),
            ('GET', '/os-services', self._services),
            ('GET', '/servers/detail', self._list_servers),
            ('GET', '/servers/([^/]+)', self._show_server),
            (
                'GET', '/servers/([^/]+)/os-instance-actions',
                self._list_actions,
            ),
            ('DELETE', '/servers/([^/]+)', self._delete_server),
            ('POST', '/servers/([^/]+)/action', self._act_on_server),
            ('POST', '/servers/([^/]+)/metadata', self._set_metadata),
            (
                'DELETE', '/servers/([^/]+)/metadata/(.+)',
                self._delete_metadata,
            ),
            ('POST', '/flavors', self._create_flavor),
            ('POST', '/flavors/(.+)/os-extra_specs', self._set_specs),
            ('POST', '/flavors/(.+)/action', self._change_access),
            ('DELETE', '/flavors/(.+)', self._delete_flavor),
            ('GET', '/os-aggregates', self._list_aggregates),
            ('POST', '/os-aggregates', self._create_aggregate),
            (
                'POST', '/os-aggregates/(.+)/action',
                self._change_aggregate,
            ),
            ('DELETE', '/os-aggregates/(.+)', self._delete_aggregate),
            ('GET', '/os-server-groups', self._list_server_groups),
            ('POST', '/os-server-groups', self._create_server_group),
            (
                'DELETE', '/os-server-groups/(.+)',
                self._delete_server_group,
            ),
            ('PUT', '/resource_classes/(.+)', self._create_class),
            ('GET', '/resource_classes/(.+)', self._show_class),
            ('DELETE', '/resource_classes/(.+)', self._delete_class),
            ('GET', '/resource_providers', self._find_providers),
            ('POST', '/resource_providers', self._create_provider),
            ('DELETE', '/resource_providers/([^/]+)', self._delete),
            (
                'GET', '/resource_providers/(.+)/inventories',
                self._inventories,
            ),
            ('GET', '/resource_providers/(.+)/traits', self._traits),
            (
                'PUT', '/resource_providers/(.+)/inventories',
                self._set_inventories,
            ),
            (
                'GET', '/resource_providers/(.+)/allocations',
                self._consumers,
            ),
            ('GET', '/allocations/(.+)', self._show_allocations),
            ('PUT', '/allocations/(.+)', self._set_allocations),
        )

    @staticmethod
    def uuid(name):
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))

    def left(self):
        """Return what leases have made and not removed."""
        return copy.deepcopy(
            (
                self.flavors,
                self.access,
                self.aggregates,
                self.server_groups,
                self.servers,
                self.classes,
                {
                    (p['name'], class_): held['total']
                    for p in self.providers.values()
                    for class_, held in p['inventories'].items()
                    if class_ not in SLOT_TOTALS
                },
            )
        )

    def add_server(self, node, project_id, **hints):
        id_ = str(uuid.uuid4())
        self.servers[id_] = {
            'id': id_,
            'tenant_id': project_id,
            'OS-EXT-SRV-ATTR:hypervisor_hostname': node,
            'created': '2026-01-01T00:00:00Z',
            'image': 'x',
            'flavor': {
                'vcpus': 1, 'ram': 1, 'disk': 1, 'ephemeral': 0, 'swap': 0,
                'extra_specs': {},
            },
            'scheduler_hints': hints,
            'status': 'ACTIVE',
            'OS-EXT-STS:task_state': None,
            'metadata': {},
        }
        return id_

    def settle(self, place=lambda server: None):
        """Have Nova do what servers are asked for.

        :param place: returns the host that there is for a server, or None
        """
        for id_, action in list(self._wishes.items()):
            server = self.servers.get(id_)
            del self._wishes[id_]
            if server is None:
                continue
            server['OS-EXT-STS:task_state'] = None
            if action.startswith('shelve'):
                leaves = self.offloads or action == 'shelveOffload'
                server['status'] = _OFFLOADED if leaves else 'SHELVED'
                if leaves:
                    server[_NODE] = None
            elif host := place(server):
                server[_NODE], server['status'] = host, 'ACTIVE'

    def take_slot(self, server, host, resource_class):
        """Have a server use one, on that host's child provider.

        Return whether Placement has it.
        """
        used = self.used(host, resource_class)
        if used >= self.total(host, resource_class):
            return False
        child = self._child(host)['uuid']
        self._allocate(
            server,
            {self.uuid(host): {'VCPU': 1}, child: {resource_class: 1}},
        )
        return True

    def total(self, host, resource_class):
        """Return how many of a class a host's child provider has."""
        inventories = self._child(host)['inventories']
        return inventories.get(resource_class, {'total': 0})['total']

    def used(self, host, resource_class):
        """Return how many of them are used."""
        child = self._child(host)['uuid']
        return sum(
            held.get(child, {}).get(resource_class, 0)
            for held in self.allocations.values()
        )

    def _child(self, host):
        [child] = [
            provider
            for provider in self.providers.values()
            if provider['parent'] == self.uuid(host)
        ]
        return child

    def _hypervisors(self, hypervisor_hostname_pattern=''):
        found = [
            {
                'id': self.uuid(name),
                'hypervisor_hostname': name,
                'hypervisor_type': 'QEMU',
                'hypervisor_version': 1,
                'service': {'host': name},
                'state': 'down' if name in self.down else 'up',
                'status': 'enabled',
            }
            for name in self._hosts
            if hypervisor_hostname_pattern in name
        ]
        return answer(200, {'hypervisors': found})

    def _services(self, binary, host=None):
        found = [
            {'zone': 'nova', 'host': name}
            for name in self._hosts
            if host in (None, name)
        ]
        return answer(200, {'services': found})

    def _list_servers(self, host=None, project_id=None, **query):
        found = [
            s
            for s in self.servers.values()
            if host in (None, s.get('OS-EXT-SRV-ATTR:hypervisor_hostname'))
            and project_id in (None, s['tenant_id'])
        ]
        return answer(200, {'servers': found})

    def _show_server(self, id_):
        if id_ not in self.servers:
            return answer(404, {})
        return answer(200, {'server': self.servers[id_]})

    def _list_actions(self, id_, **query):
        # No server moves here.
        return answer(200 if id_ in self.servers else 404, {
            'instanceActions': [],
        })

    def _delete_server(self, id_):
        return answer(204 if self.servers.pop(id_, None) else 404)

    def _act_on_server(self, id_, body):
        [action] = body
        server = self.servers.get(id_)
        if server is None:
            return answer(404)
        statuses, task = _ACTIONS[action]
        if (
            server['status'] not in statuses
            or server['OS-EXT-STS:task_state'] is not None
        ):
            return answer(409)
        server['OS-EXT-STS:task_state'] = task
        self._wishes[id_] = action
        return answer(202)

    def _set_metadata(self, id_, body):
        return self._change_metadata(
            id_, lambda known: known.update(body['metadata'])
        )

    def _delete_metadata(self, id_, key):
        return self._change_metadata(id_, lambda known: known.pop(key))

    def _change_metadata(self, id_, change):
        server = self.servers.get(id_)
        if server is None:
            return answer(404)
        if (
            server['status'] not in _RUNNING
            or server['OS-EXT-STS:task_state'] is not None
        ):
            return answer(409)
        change(server['metadata'])
        return answer(200, {})

    def _create_flavor(self, body):
        id_ = body['flavor']['id']
        if id_ in self.flavors:
            return answer(409)
        self.flavors[id_] = {'specs': {}, **body['flavor']}
        return answer(200, body)

    def _set_specs(self, id_, body):
        if id_ not in self.flavors:
            return answer(404)
        self.flavors[id_]['specs'] |= body['extra_specs']
        return answer(200, body)

    def _change_access(self, id_, body):
        [(action, said)] = body.items()
        pair = id_, said['tenant']
        adds = action == 'addTenantAccess'
        if id_ not in self.flavors:
            return answer(404)
        if (pair in self.access) is adds:
            return answer(409 if adds else 404)
        self.access ^= {pair}
        return answer(200, {})

    def _delete_flavor(self, id_):
        self.access = {pair for pair in self.access if pair[0] != id_}
        return answer(202 if self.flavors.pop(id_, None) else 404)

    def _list_aggregates(self):
        return answer(200, {'aggregates': list(self.aggregates.values())})

    def _create_aggregate(self, body):
        name = body['aggregate']['name']
        if any(a['name'] == name for a in self.aggregates.values()):
            return answer(409)
        id_ = max(self.aggregates, default=0) + 1
        self.aggregates[id_] = {
            'id': id_, 'uuid': self.uuid(name), 'name': name, 'hosts': [],
            'metadata': {},
        }
        told = ('id', 'uuid', 'name')
        made = {key: self.aggregates[id_][key] for key in told}
        return answer(200, {'aggregate': made})

    def _change_aggregate(self, id_, body):
        [(action, said)] = body.items()
        if int(id_) not in self.aggregates:
            return answer(404)
        aggregate = self.aggregates[int(id_)]
        if action == 'set_metadata':
            both = {**aggregate['metadata'], **said['metadata']}
            aggregate['metadata'] = {
                k: v for k, v in both.items() if v is not None
            }
            return answer(200, {'aggregate': aggregate})
        host, adds = said['host'], action == 'add_host'
        if host not in self._hosts:
            return answer(404)
        if (host in aggregate['hosts']) is adds:
            return answer(409 if adds else 404)
        change = list.append if adds else list.remove
        change(aggregate['hosts'], host)
        return answer(200, {'aggregate': aggregate})

    def _delete_aggregate(self, id_):
        aggregate = self.aggregates.get(int(id_))
        if aggregate is None:
            return answer(404)
        if aggregate['hosts']:
            return answer(400)
        del self.aggregates[int(id_)]
        return answer(200)

    def _list_server_groups(self, offset, all_projects=None):
        found = [
            group
            for group in self.server_groups.values()
            if all_projects or group['project_id'] == self.acting
        ]
        # A page is of one.
        page = found[int(offset) : int(offset) + 1]
        return answer(200, {'server_groups': page})

    def _create_server_group(self, body):
        # Nova takes any number of the same name.
        id_ = str(uuid.uuid4())
        self.server_groups[id_] = {
            'id': id_, 'project_id': self.acting, **body['server_group'],
        }
        return answer(200, {'server_group': self.server_groups[id_]})

    def _delete_server_group(self, id_):
        return answer(204 if self.server_groups.pop(id_, None) else 404)

    def _create_class(self, name):
        if name in self.classes:
            return answer(204)
        self.classes.add(name)
        return answer(201)

    def _show_class(self, name):
        return answer(200 if name in self.classes else 404, {})

    def _delete_class(self, name):
        if any(name in p['inventories'] for p in self.providers.values()):
            return answer(409)
        if name not in self.classes:
            return answer(404)
        self.classes.remove(name)
        return answer(204)

    def _add_provider(self, name, parent, totals, id_):
        self.providers[id_] = {
            'uuid': id_,
            'name': name,
            'parent': parent,
            'generation': 0,
            'traits': [],
            'inventories': {c: self._inventory(t) for c, t in totals.items()},
        }

    @staticmethod
    def _inventory(total, **given):
        return {
            'total': total, 'reserved': 0, 'allocation_ratio': 1.0,
            'max_unit': 2**31 - 1, **given,
        }

    def _find_providers(self, name=None):
        found = [
            p for p in self.providers.values() if name in (None, p['name'])
        ]
        return answer(200, {'resource_providers': found})

    def _create_provider(self, body):
        if any(p['name'] == body['name'] for p in self.providers.values()):
            return answer(409)
        self._add_provider(
            body['name'], body['parent_provider_uuid'], {}, str(uuid.uuid4())
        )
        return answer(200, {})

    def _delete(self, id_):
        return answer(204 if self.providers.pop(id_, None) else 404)

    def _inventories(self, id_):
        if id_ not in self.providers:
            return answer(404)
        provider = self.providers[id_]
        return answer(
            200,
            {
                'inventories': provider['inventories'],
                'resource_provider_generation': provider['generation'],
            },
        )

    def _traits(self, id_):
        if id_ not in self.providers:
            return answer(404)
        return answer(200, {'traits': self.providers[id_]['traits']})

    def _set_inventories(self, id_, body):
        if id_ not in self.providers:
            return answer(404)
        provider = self.providers[id_]
        if self.compares and (
            body['resource_provider_generation'] != provider['generation']
        ):
            return conflict('placement.concurrent_update')
        if not set(body['inventories']) <= self.classes | set(SLOT_TOTALS):
            return answer(400)
        if any(held['total'] < 1 for held in body['inventories'].values()):
            return answer(400)
        # A total below what is in use is not refused.
        gone = provider['inventories'].keys() - body['inventories'].keys()
        if any(
            gone & used.keys()
            for held in self.allocations.values()
            for provider_id, used in held.items()
            if provider_id == id_
        ):
            return conflict('placement.inventory.inuse')
        provider['generation'] += 1
        provider['inventories'] = {
            class_: self._inventory(**held)
            for class_, held in body['inventories'].items()
        }
        return answer(200, body)

    def _consumers(self, id_):
        if id_ not in self.providers:
            return answer(404)
        found = {
            consumer: {'resources': held[id_]}
            for consumer, held in self.allocations.items()
            if id_ in held
        }
        return answer(200, {'allocations': found})

    def _show_allocations(self, consumer):
        held = self.allocations.get(consumer, {})
        if not held:
            return answer(200, {'allocations': {}})
        shown = {id_: {'resources': used} for id_, used in held.items()}
        return answer(
            200,
            {
                'allocations': shown,
                'project_id': 'project',
                'user_id': 'user',
                'consumer_generation': 1,
            },
        )

    def _set_allocations(self, consumer, body):
        assert body['consumer_generation'] == 1
        self._allocate(
            consumer,
            {
                id_: held['resources']
                for id_, held in body['allocations'].items()
            },
        )
        return answer(204)

    def _allocate(self, consumer, resources):
        self.allocations[consumer] = resources
        for id_ in resources:
            self.providers[id_]['generation'] += 1


class Acting(Service):
    """The cloud, for who acts in a project of their own."""

    def __init__(self, cloud, project_id):
        super().__init__()
        self._cloud = cloud
        self._project_id = project_id

    def request(self, *args, **kwargs):
        before, self._cloud.acting = self._cloud.acting, self._project_id
        try:
            return self._cloud.request(*args, **kwargs)
        finally:
            self._cloud.acting = before


class Trouble:
    """What goes wrong with a request.

    :param effect: whether it has its effect all the same
    :param said: what is answered; None if nothing is, in time
    """

    def __init__(self, effect, said=None):
        self.effect = effect
        self._said = said

    def answer(self):
        if self._said is None:
            raise exceptions.ConnectTimeout('timed out')
        return self._said
