# SPDX-License-Identifier: Apache-2.0
"""The API as default_api, in process, with a manager of canned responses."""

import json

from oslo_config import cfg
import pytest

from blazar_sched.conf import api as api_conf
from blazar_sched.conf import audit as audit_conf
from blazar_sched.conf import keystone as keystone_conf
from blazar_sched.service import parts
from blazar_sched.service.api import deploy
from blazar_sched.service.api import routes
from tests import loopback
from tests import tables


class RoteManager:
    """A manager in place of `service.bus.rpc.Client`.

    `answers` has the response of each method, or the exception that it raises;
    `calls` has the calls. Both pass through JSON, as on the bus. `trouble` is
    the exception of a health check.
    """

    def __init__(self):
        self.answers = {}
        self.calls = []
        self.contexts = []
        self.trouble = None

    def call(self, ctxt, method, **kwargs):
        sent = json.loads(json.dumps(kwargs, allow_nan=False))
        assert sent == kwargs
        self.contexts.append(json.loads(json.dumps(ctxt)))
        self.calls.append((method, sent))
        answer = self.answers[method]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, list):
            # The whole list is on one page.
            answer = {'items': answer, 'next': None}
        return json.loads(json.dumps(answer))

    def check(self):
        if self.trouble:
            raise self.trouble


def _conf():
    service = cfg.ConfigOpts()
    for each in (api_conf, audit_conf, keystone_conf):
        service.register_opts(each.opts, each.GROUP)
    for options in parts.each('conf', 'OPTIONS'):
        service.register_opts(options.get(api_conf.GROUP, ()), api_conf.GROUP)
    service([], default_config_files=[], default_config_dirs=[])
    service.set_override('auth_strategy', 'noauth', 'api')
    return service


@pytest.fixture
def conf():
    return _conf()


@pytest.fixture(scope='session')
def default_api():
    """The API with the default configuration, and its manager."""
    manager = RoteManager()
    return manager, loopback.client(deploy.deploy(_conf(), manager))


@pytest.fixture
def manager(default_api):
    manager, _ = default_api
    manager.__init__()
    return manager


@pytest.fixture
def api(request, manager, default_api):
    """The API; a test with a `conf` of its own has an API of its own."""
    if 'conf' in request.fixturenames:
        conf = request.getfixturevalue('conf')
        return loopback.client(deploy.deploy(conf, manager))
    return default_api[1]


@pytest.fixture
def ruled(conf, manager, tmp_path):
    """ruled(text) -> the API with this file of policy rules."""

    def ruled(text):
        file = tmp_path / 'policy.yaml'
        file.write_text(text)
        deploy.deploy(conf, manager)  # registers [oslo_policy]
        conf.set_override('policy_file', str(file), 'oslo_policy')
        return loopback.client(deploy.deploy(conf, manager))

    return ruled


@pytest.fixture
def refused(manager):
    """refused(answer, *words): is a refusal that the manager knows nothing of.

    The refusal has some words, a start, or is a whole message.
    """

    def refused(answer, *words, start='', message=None):
        assert answer.status_code == 400, answer.text
        said = answer.json['error_message']
        assert answer.json['error_name'] == 'InvalidInput'
        assert all(word in said for word in words), said
        assert said.startswith(start)
        assert message in (None, said)
        assert manager.calls == []

    return refused


@pytest.fixture
def lease():
    """A lease as the manager returns it."""
    return {
        'id': 'b1f5d6c4-0000-4000-8000-000000000000',
        'name': 'night-run',
        'project_id': 'p1',
        'user_id': 'alice',
        'start': 1767229200,
        'end': 1767232800,
        'status': 'PENDING',
        'degraded': False,
        'trust_id': None,
        'reservations': [
            {
                'id': 'b1f5d6c4-0000-4000-8000-000000000001',
                'lease_id': 'b1f5d6c4-0000-4000-8000-000000000000',
                'resource_type': 'physical:host',
                'status': 'pending',
                'parameters': {
                    'min': 1,
                    'max': 2,
                    'hypervisor_properties': '',
                    'resource_properties': '',
                    'before_end': 'default',
                },
                'missing_resources': False,
                'resources_changed': False,
                'projects': ['p7'],
                'on_end': 'shelve',
                'magnetic': True,
                'labels': {'team': 'vision'},
                'product': '',
                'made': {},
                'created_at': 1767225600,
                'updated_at': None,
            },
        ],
        'events': [
            {
                'id': 'b1f5d6c4-0000-4000-8000-000000000002',
                'lease_id': 'b1f5d6c4-0000-4000-8000-000000000000',
                'event_type': 'start_lease',
                'time': 1767229200,
                'status': 'UNDONE',
                'created_at': 1767225600,
                'updated_at': None,
            },
        ],
        'created_at': 1767225600,
        'updated_at': 1767225661,
    }


@pytest.fixture
def host():
    """A host as the manager returns it."""
    return {
        'id': '7',
        'hypervisor_hostname': 'compute-1',
        'service_name': 'compute-1',
        'hypervisor_type': 'QEMU',
        'hypervisor_version': 8002000,
        'cpu_info': '{}',
        'availability_zone': 'nova',
        'inventory': {
            'VCPU': {'total': 16},
            'MEMORY_MB': {'total': 65536},
            'DISK_GB': {'total': 1000},
        },
        'hold': 'shared',
        'unbounded': None,
        'cleaning_time': None,
        'available_from': None,
        'available_until': 1893456000,
        'disabled': False,
        'spare': False,
        'projects': ['p7'],
        'region': 'west',
        'traits': ['HW_CPU_X86_AVX2'],
        'reservable': True,
        'capabilities': {'gpu': 'true'},
        'created_at': 1767225600,
        'updated_at': None,
    }


@pytest.fixture
def capacity():
    """A capacity as the manager returns it."""
    return {
        'start': 1767229200,
        'end': 1767232800,
        'hosts': 2,
        'parts': [
            {
                'start': 1767229200,
                'end': 1767232800,
                'hosts': 1,
                'instances': None,
                'resources': [
                    {
                        'resource_class': 'VCPU',
                        'total': 32,
                        'reserved': 8,
                        'used': 4,
                        'available': 20,
                    },
                ],
            },
        ],
    }


@pytest.fixture
def answers(lease, host, capacity):
    """The responses of a manager without faults, by method."""
    return {
        'list_leases': [lease],
        'get_lease': lease,
        'create_lease': lease,
        'update_lease': lease,
        'delete_lease': None,
        'get_extension': {
            'end': 1767232800, 'limited_by': 'capacity', 'reservation': 0,
            'available': 1, 'searched_until': None,
        },
        'list_hosts': [host],
        'get_host': host,
        'create_host': host,
        'update_host': host,
        'delete_host': None,
        'list_allocations': [{'host_id': '7', 'reservations': []}],
        'reallocate': None,
        'list_properties': [],
        'list_unknown_hosts': [],
        'list_unknown_properties': [],
        'update_property': {'property': 'gpu', 'private': True},
        'get_capacity': capacity,
        'list_limits': [{
            'name': 'max_leases_per_project', 'unit': 'leases', 'limit': 5,
            'used': 3,
        }],
        'list_public_properties': {
            'zones': ['nova'],
            'properties': [
                {'property': 'gpu', 'values': ['a100'], 'values_left_out': 0},
            ],
            'properties_left_out': 0,
        },
        'list_flavors': [{
            'id': 'm1.small', 'name': 'small', 'vcpus': 2, 'memory_mb': 2048,
            'disk_gb': 20, 'ephemeral_gb': 0, 'swap_mb': 0,
        }],
        **tables.of('ANSWERS'),
    }


@pytest.fixture
def requests():
    """A valid path and body for each route."""
    reservation = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
    bodies = {
        ('POST', '/v1/leases'): {
            'name': 'night-run',
            'end_date': '2030-01-01 01:00',
            'reservations': [reservation],
        },
        ('PUT', '/v1/leases/{lease_id}'): {'name': 'day-run'},
        ('POST', '/v1/os-hosts'): {'name': 'compute-1'},
        ('PUT', '/v1/os-hosts/{host_id}'): {'gpu': 'true'},
        ('PUT', '/v1/os-hosts/{host_id}/allocation'): {'lease_id': 'l1'},
        ('PATCH', '/v1/os-hosts/properties/{name}'): {'private': True},
        **{route: body for route, (_, body) in tables.of('ROUTES').items()},
    }
    return {
        route: (
            route.path.format(
                lease_id='l1', host_id='7', name='gpu',
                **tables.of('VARIABLES'),
            ),
            bodies.get((route.method, route.path)),
        )
        for route in routes.ROUTES
    }
