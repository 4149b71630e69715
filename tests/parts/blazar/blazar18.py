# SPDX-License-Identifier: Apache-2.0
"""Run Blazar's own API and manager in one process: DATABASE_URL HOSTS.

The process runs in the Python in which Blazar 18 is installed. HOSTS is JSON:
the number, the uuid and the inventory of each host, by name. The process
prints its port and serves until its standard input ends.

Stand-ins replace only the services around Blazar: Keystone (a token is
USER:PROJECT), Nova, Placement, Neutron, and the bus between API and manager.
"""

import gettext
import itertools
import json
import sys
import threading
from types import SimpleNamespace
from unittest import mock
import uuid

gettext.install('blazar')

from blazar import context  # noqa: E402
from blazar.api.v1 import app as app_  # noqa: E402
from blazar.db import api as db_api  # noqa: E402
from blazar.manager import service as manager_  # noqa: E402
from blazar.utils import service as rpc  # noqa: E402
from blazar.utils import trusts  # noqa: E402
from blazar.utils.openstack import neutron  # noqa: E402
from blazar.utils.openstack import nova  # noqa: E402
from blazar.utils.openstack import placement  # noqa: E402
from oslo_config import cfg  # noqa: E402
from oslo_db import options  # noqa: E402
from oslo_serialization import jsonutils  # noqa: E402
from werkzeug import serving  # noqa: E402

CONF = cfg.CONF
PLUGINS = [
    'physical.host.plugin', 'virtual.instance.plugin',
    'flavor.instance.plugin', 'virtual.floatingip.plugin',
]
SUBNET = 'e93ab1f5-8b9d-4ec6-8f9e-3d5c0a5f6a01'
SOURCE = {
    'id': 'm1.small', 'name': 'small', 'vcpus': 2, 'ram': 2048, 'disk': 20,
    'swap': '', 'OS-FLV-EXT-DATA:ephemeral': 0, 'links': [],
}
CATALOG = [{
    'type': 'identity',
    'endpoints': [
        {'interface': name, 'url': 'http://127.0.0.1/identity'}
        for name in ('public', 'internal')
    ],
}]
# Seconds between two polls for events: Blazar's default is ten.
PAUSE = 0.2

# The project of each trust.
_projects = {}


class Nova:
    """The parts of novaclient that Blazar uses; all instances are one cloud.
    """

    hosts = {}
    numbers = itertools.count(1)
    made = {}

    def __init__(self, **kwargs):
        self.nova = self
        self.hypervisors = SimpleNamespace(
            get=self._hypervisor,
            search=lambda name, servers=False: [self._hypervisor(name)],
        )
        self.aggregates = SimpleNamespace(
            list=lambda: list(self.made.values()),
            get=lambda id_: self.made[id_], create=self._create_aggregate,
            set_metadata=lambda aggregate, metadata: None,
            add_host=lambda id_, host: self.made[id_].hosts.append(host),
            remove_host=lambda id_, host: self.made[id_].hosts.remove(host),
            delete=lambda id_: self.made.pop(id_),
        )
        self.flavors = SimpleNamespace(
            get=lambda id_: SimpleNamespace(
                to_dict=lambda: dict(SOURCE),
                get_keys=lambda: {'trait:HW_CPU_X86_AVX': 'required'},
            ),
            create=lambda flavorid, **kwargs: SimpleNamespace(
                id=flavorid, set_keys=lambda keys: None
            ),
            delete=lambda id_: None,
        )
        self.server_groups = SimpleNamespace(
            create=lambda name, policy: SimpleNamespace(id=str(uuid.uuid4())),
            delete=lambda id_: None,
        )
        self.flavor_access = SimpleNamespace(
            add_tenant_access=lambda flavor, project: None,
            remove_tenant_access=lambda flavor, project: None,
        )
        self.availability_zones = SimpleNamespace(list=lambda **kwargs: [])
        self.servers = SimpleNamespace(list=lambda **kwargs: [])

    def _hypervisor(self, name):
        for known, host in self.hosts.items():
            if name in (known, host['number']):
                totals = host['inventory']
                return SimpleNamespace(
                    id=host['number'], hypervisor_hostname=known,
                    service={'host': known}, vcpus=totals['VCPU'],
                    memory_mb=totals['MEMORY_MB'], local_gb=totals['DISK_GB'],
                    cpu_info='{}', hypervisor_type='QEMU',
                    hypervisor_version=8002000,
                )
        raise nova.nova_exception.NotFound(404)

    def _create_aggregate(self, name, zone):
        number = next(self.numbers)
        self.made[number] = SimpleNamespace(id=number, name=name, hosts=[])
        return self.made[number]


def _placement(hosts):
    def inventory(total):
        return {
            'total': total, 'reserved': 0, 'min_unit': 1, 'max_unit': total,
            'step_size': 1, 'allocation_ratio': 1.0,
        }  # fmt: skip

    return SimpleNamespace(
        get_resource_provider=lambda name: {'uuid': name},
        list_resource_providers=lambda **kwargs: [{'name': n} for n in hosts],
        get_inventory=lambda name: {'inventories': {
            class_: inventory(total)
            for class_, total in hosts[name]['inventory'].items()
        }},
        get_traits=lambda name: ['HW_CPU_X86_AVX'],
        create_reservation_provider=lambda name: None,
        create_reservation_class=lambda id_: None,
        delete_reservation_class=lambda id_: None,
        update_reservation_inventory=lambda *args, **kwargs: None,
        delete_reservation_inventory=lambda *args: None
    )


def _create_trust():
    id_ = uuid.uuid4().hex
    _projects[id_] = context.current().project_id
    return SimpleNamespace(id=id_)


def _as_trustor(id_):
    return context.BlazarContext(
        service_catalog=CATALOG, project_id=_projects[id_]
    )


def _authenticated(app):
    def call(environ, start_response):
        # As in the API of blazar-sched without Keystone.
        user, _, project = environ['HTTP_X_AUTH_TOKEN'].partition(':')
        admin = 'admin,' if user == 'admin' else ''
        environ.update(
            HTTP_X_ROLES=f'{admin}member,reader',
            HTTP_X_PROJECT_ID=project or user, HTTP_X_USER_ID=user,
            HTTP_X_SERVICE_CATALOG=json.dumps(CATALOG),
        )
        return app(environ, start_response)

    return call


def main(url, hosts):
    Nova.hosts = json.loads(hosts)
    options.set_defaults(CONF, connection=url)
    CONF([], project='blazar', default_config_files=[])
    # Blazar's API responds to no request unless it may log at INFO.
    rpc.prepare_service()
    CONF.set_override('plugins', PLUGINS, 'manager')
    db_api.setup_db()
    nova.BlazarNovaClient = Nova
    Nova().aggregates.create('freepool', None)
    known = _placement(Nova.hosts)
    placement.BlazarPlacementClient = lambda: known
    neutron.FloatingIPPool = mock.Mock()
    neutron.FloatingIPPool.return_value.fetch_subnet.return_value = {
        'id': SUBNET
    }
    trusts.create_trust = _create_trust
    trusts.create_ctx_from_trust = _as_trustor
    rpc.RPCServer.__init__ = lambda self, target: None
    rpc.RPCClient.__init__ = lambda self, target: None
    manager_.ManagerService._send_notification = mock.Mock()
    manager = manager_.ManagerService()
    lock = threading.Lock()

    def call(self, name, **kwargs):
        with lock:
            answer = getattr(manager, name)(**kwargs)
        # The form in which the bus delivers it.
        return jsonutils.loads(jsonutils.dumps(answer))

    rpc.RPCClient.call = call
    app_.auth_token.filter_factory = lambda conf: _authenticated
    server = serving.make_server('127.0.0.1', 0, app_.make_app())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ended = threading.Event()

    def process():
        while not ended.wait(PAUSE):
            with lock:
                manager._process_events()

    events = threading.Thread(target=process)
    events.start()
    print(server.port, flush=True)
    sys.stdin.read()
    server.shutdown()
    ended.set()
    events.join()


if __name__ == '__main__':
    main(*sys.argv[1:])
