# SPDX-License-Identifier: Apache-2.0
"""Nova at the level of HTTP: part of `cloud.CloudApi`.

Servers, flavors, aggregates and server groups, for tests of what the manager
asks Nova for, request by request. What is asked of servers happens when a test
calls `settle`.
"""

import uuid

from tests.standins.rest import answer
from tests.standins.rest import uuid_of

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


class NovaApi:
    """What the clients ask Nova for.

    :param hosts: names of the compute hosts
    """

    def __init__(self, hosts):
        self.flavors = {}
        self.access = set()
        self.aggregates = {}
        self.server_groups = {}
        self.servers = {}
        # What servers are asked for, until `settle` does it.
        self._wishes = {}
        # Whether Nova takes servers off their hosts as it shelves them.
        self.offloads = True
        # Names of the hosts whose service is down.
        self.down = set()
        # The project of who asks.
        self.acting = 'service'
        self._hosts = hosts

    def nova_routes(self):
        return (
            ('GET', '/os-hypervisors/detail', self._hypervisors),
            ('GET', '/os-services', self._services),
            ('GET', '/servers/detail', self._list_servers),
            ('GET', '/servers/([^/]+)', self._show_server),
            (
                'GET', '/servers/([^/]+)/os-instance-actions',
                self._list_actions,
            ),
            ('POST', '/servers/([^/]+)/action', self._act_on_server),
            ('POST', '/servers/([^/]+)/metadata', self._set_metadata),
            (
                'DELETE', '/servers/([^/]+)/metadata/(.+)',
                self._delete_metadata,
            ),
            ('GET', '/flavors/detail', self._list_flavors),
            ('GET', '/flavors/([^/]+)', lambda id_: answer(404)),
            ('POST', '/flavors', self._create_flavor),
            ('POST', '/flavors/(.+)/os-extra_specs', self._set_specs),
            ('POST', '/flavors/(.+)/action', self._change_access),
            ('DELETE', '/flavors/(.+)', self._delete_flavor),
            ('GET', '/os-aggregates', self._list_aggregates),
            ('POST', '/os-aggregates', self._create_aggregate),
            ('POST', '/os-aggregates/(.+)/action', self._change_aggregate),
            ('DELETE', '/os-aggregates/(.+)', self._delete_aggregate),
            ('GET', '/os-server-groups', self._list_server_groups),
            ('POST', '/os-server-groups', self._create_server_group),
            ('DELETE', '/os-server-groups/(.+)', self._delete_server_group),
        )

    def add_server(self, node, project_id, **hints):
        id_ = str(uuid.uuid4())
        self.servers[id_] = {
            'id': id_,
            'tenant_id': project_id,
            'OS-EXT-SRV-ATTR:hypervisor_hostname': node,
            'created': '2026-01-01T00:00:00Z',
            'image': {'id': 'x'},
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

    def _hypervisors(self, hypervisor_hostname_pattern='', marker=None):
        if marker is not None:
            # All are on the first page.
            return answer(200, {'hypervisors': []})
        found = [
            {
                'id': uuid_of(name),
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

    def _act_on_server(self, id_, body):
        [action] = body
        server = self.servers.get(id_)
        if server is None:
            return answer(404)
        if action == 'forceDelete':
            del self.servers[id_]
            return answer(202)
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
        # A task in progress does not prevent the change.
        if server['status'] not in _RUNNING:
            return answer(409)
        change(server['metadata'])
        return answer(200, {'metadata': server['metadata']})

    def _list_flavors(self, **query):
        # There are only those of reservations, which the client leaves out.
        return answer(200, {'flavors': []})

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
        return answer(200, {'flavor_access': []})

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
            'id': id_, 'uuid': uuid_of(name), 'name': name, 'hosts': [],
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
            if 'availability_zone' in said['metadata'] and any(
                server[_NODE] in aggregate['hosts']
                for server in self.servers.values()
            ):
                # As Nova does, unless the zone stays the same.
                return answer(400)
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

    def _list_server_groups(self, offset=0, all_projects=None):
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
