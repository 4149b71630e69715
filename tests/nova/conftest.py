# SPDX-License-Identifier: Apache-2.0
"""A cloud, and a ledger that its scheduler follows.

Only the manager is missing: tests write to the ledger what the manager would
write.
"""

import itertools
import pathlib
import time
import uuid

from nova import conf as nova_conf
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova import rpc as nova_rpc
from nova.scheduler.client import query
from nova.scheduler.client import report
import oslo_messaging
import pytest
from sqlalchemy import pool

from blazar_sched.conf import service as service_conf
from blazar_sched.domain import flavor
from blazar_sched.domain import states
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import Hosts
from blazar_sched.domain.demand import Slots
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.settings import Settings
from blazar_sched.replica import pace
from blazar_sched.service.bus import rpc
from blazar_sched.service.events import attempts
from blazar_sched.service.events import runner
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.worker import process
from blazar_sched.worker import threads
from demo.cloud import host_of
from demo.cloud import wait_for
from tests import overriding
from tests.nova import clouds

HOUR = 3600
# A window that opens after the end of the slowest test.
SOON = 900


def lasting(seconds):
    return {'lifetime': str(seconds)}


class EndPoint:
    """The manager's end point for pullers."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.answer = None
        self.settings = Settings()

    def changes(self, ctxt, since, limit):
        if self.answer is not None:
            return self.answer()
        return {
            **self.ledger.changes(since, limit),
            'settings': self.settings.encode(),
        }

    def snapshot(self, ctxt, after, limit):
        if self.answer is not None:
            return self.answer()
        return self.ledger.snapshot(after, limit)


class Lab:
    """A cloud and a ledger; times are in seconds from now."""

    def __init__(self, cloud, end_point):
        self.cloud = cloud
        self.end_point = end_point
        self.ledger = end_point.ledger
        self.now = process.now()
        self._flavors = {}

    def flavor(self, vcpus=1, **extra_specs):
        """Return a flavor; the extra specs are in the namespace blazar."""
        key = vcpus, tuple(sorted(extra_specs.items()))
        if key not in self._flavors:
            self._flavors[key] = self.cloud.flavor(
                vcpus, extra_specs={
                    f'blazar:{name}': value
                    for name, value in extra_specs.items()
                }
            )
        return self._flavors[key]

    def tell(self, **options):
        """Tell nova-scheduler the options of a manager, and the defaults."""
        self.end_point.settings = overriding.settings(**options)
        self.sync()

    def register(self, *names, **fields):
        """Make hosts reservable."""
        for name in names:
            held = {
                resource_class: Inventory(
                    figures['total'], figures['reserved'],
                    figures['allocation_ratio'],
                )
                for resource_class, figures
                in self.cloud.inventory(name).items()
            }
            noun = Host(
                uuid=self.cloud.hosts[name], id='', hypervisor_hostname=name,
                inventory=held, created_at=self.now, **fields,
            )
            self.ledger.commit(lambda tx, noun=noun: tx.put_host(noun))
        self.sync()

    def only(self, *names):
        """Close all other hosts to servers that are not bound."""
        others = self.cloud.hosts.keys() - names
        self.register(*others, hold='dedicated')

    def reserve(
        self, *names, start=SOON, end=SOON + HOUR, vcpus=0, gpus=0,
        project_id=None, projects=(), magnetic=False, labels=None,
    ):
        """Reserve `vcpus` on each host, or whole hosts; return the id.

        With `gpus` the reservation is of a flavor. An end of None is for ever,
        a project of None is the project that boots.
        """
        lease_id, reservation_id = str(uuid.uuid4()), str(uuid.uuid4())
        begin = self.now + start
        finish = window.FOREVER if end is None else self.now + end
        slot = {'VCPU': vcpus, 'MEMORY_MB': 4096, 'DISK_GB': 100}
        demand = Hosts(len(names), len(names))
        if gpus:
            slot['CUSTOM_GPU'] = gpus
            flavor = Flavor('any', 'any', vcpus, 4096, 100)
            demand = Slots(slot, len(names), flavor=flavor)
        elif vcpus:
            demand = Slots(slot, len(names))
        owned = Reservation(
            id=reservation_id, lease_id=lease_id,
            status=states.RESERVATION_PENDING, demand=demand,
            projects=projects, magnetic=magnetic, labels=labels or {},
            created_at=self.now,
        )
        noun = Lease(
            id=lease_id, name=f'lease-{lease_id}',
            project_id=project_id or self.cloud.project_id, user_id='user',
            start=begin, end=finish, status=states.LEASE_PENDING,
            reservations=(owned,), created_at=self.now,
        )
        allocations = [
            Allocation(
                id=str(uuid.uuid4()), reservation_id=reservation_id,
                host=self.cloud.hosts[name], start=begin, end=finish,
                amounts=slot if vcpus else {}, whole=not vcpus,
            )
            for name in names
        ]

        def work(tx):
            tx.put_lease(noun)
            tx.put_allocations(reservation_id, allocations)

        self.ledger.commit(work)
        self.sync()
        return reservation_id

    def know(self, server, end=None, **fields):
        """Add a record of a server to the ledger; an end of None is for ever.
        """
        asked = server['flavor']
        noun = Instance(
            uuid=server['id'], host=self.cloud.hosts[host_of(server)],
            project_id=server['tenant_id'],
            amounts=flavor.resources(
                asked['vcpus'], asked['ram'], asked['disk'],
                asked['extra_specs'],
            ),
            end=window.FOREVER if end is None else self.now + end, **fields,
        )
        self.ledger.commit(lambda tx: tx.put_instances([noun]))
        self.sync()

    def sync(self):
        """Wait until the scheduler's replica equals the ledger."""
        newest = self.ledger.changes(0, 1)['newest']
        process.ensure_started()._news.set()

        def probe():
            replica, stale = process.current()
            return not stale and (replica.revision, replica.settings) == (
                newest, self.end_point.settings
            )

        wait_for(f'revision {newest}', probe, lambda: time.sleep(0.005))

    def passes(self, name, flavor=None, hints=None, project_id=None):
        """Tell whether nova-scheduler selects the host for an instance.

        The scheduler is called as the conductor calls it. Its allocations in
        Placement are deleted; nothing is built.
        """
        try:
            [[selected]] = self.selections(
                flavor, hints, project_id,
                requested_destination=objects.Destination(
                    host=name, node=name
                ),
            )
        except nova_exception.NoValidHost:
            return False
        assert selected == name
        return True

    def selections(
        self, flavor=None, hints=None, project_id=None, count=1,
        return_alternates=False, **fields,
    ):
        """Return the host that each instance is given, and its alternates."""
        project_id = project_id or self.cloud.project_id
        context = nova_context.RequestContext(
            'admin', project_id, is_admin=True
        )
        instances = [str(uuid.uuid4()) for _ in range(count)]
        spec = objects.RequestSpec.from_components(
            context, instances[0], objects.ImageMeta.from_dict({}),
            objects.Flavor.get_by_flavor_id(context, flavor or self.flavor()),
            numa_topology=None,
            pci_requests=objects.InstancePCIRequests(requests=[]),
            filter_properties={'scheduler_hints': dict(hints or {})},
            instance_group=None, availability_zone=None, project_id=project_id,
            user_id='admin',
        )
        spec.num_instances = count
        for name, value in fields.items():
            setattr(spec, name, value)
        selected = query.SchedulerQueryClient().select_destinations(
            context, spec, instances, return_objects=True,
            return_alternates=return_alternates,
        )
        for each in instances:
            report.report_client_singleton().delete_allocation_for_instance(
                context, each, force=True
            )
        return [[each.service_host for each in hosts] for hosts in selected]

    def boots(self, name, flavor=None, hints=None, project_id=None):
        """Tell whether an instance can be booted on the host.

        The instance is deleted again. Unlike `passes` this uses nova-api, and
        takes about ten times as long.
        """
        server = self.cloud.boot(
            flavor or self.flavor(), hints, host=name, project_id=project_id
        )
        if server['status'] == 'ERROR':
            # The request was refused, and did not fail.
            fault = server['fault']
            assert 'No valid host was found' in fault['message'], str(fault)
            return False
        assert host_of(server) == name
        self.cloud.delete(server)
        return True

    def passing(self, flavor=None, hints=None, project_id=None):
        """Return the hosts that nova-scheduler selects for an instance."""
        return [
            name for name in self.cloud.hosts
            if self.passes(name, flavor, hints, project_id)
        ]

    def boot(self, flavor=None, hints=None, **parameters):
        server = self.cloud.boot(flavor or self.flavor(), hints, **parameters)
        assert server['status'] == 'ACTIVE', server.get('fault')
        return server

    def clear(self):
        self.end_point.answer = None
        self.end_point.settings = Settings()
        self.cloud.delete(*self.cloud.servers())

        def work(tx):
            for each in tx.leases():
                tx.delete_lease(each.id)
            for each in tx.hosts():
                tx.delete_host(each.uuid)

        self.ledger.commit(work)
        self.sync()


@pytest.fixture(scope='module')
def end_point(tmp_path_factory):
    path = tmp_path_factory.mktemp('ledger') / 'ledger.sqlite'
    ledger = Ledger(f'sqlite:///{path}')
    ledger.upgrade()
    yield EndPoint(ledger)
    ledger.close()


class Pool(pool.QueuePool):
    """A pool that has a connection for each thread, which needs no ping."""

    def __init__(self, creator, **options):
        super().__init__(
            creator, **{**options, 'max_overflow': -1, 'pre_ping': False}
        )


@pytest.fixture(scope='session', autouse=True)
def pooled_connections():
    """Let Nova keep its connections to SQLite.

    oslo.db opens a file of SQLite again for each transaction, and SQLite then
    reads the schema of all tables: a fifth of the processor time of the tests.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, 'NullPool', Pool)
        yield


def pytest_collection_modifyitems(items):
    """Play the tests of one cloud one after the other."""
    here = pathlib.Path(__file__).parent
    places = [n for n, i in enumerate(items) if here in i.path.parents]
    kinds = {}
    for n in places:
        kinds.setdefault(clouds.kind_for(items[n]), []).append(items[n])
    ordered = itertools.chain.from_iterable(kinds.values())
    for n, item in zip(places, tuple(ordered), strict=True):
        items[n] = item


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Stop the cloud if the next module needs another one, or none.

    Fixtures of a module have the cloud until the end of the module.
    """
    if nextitem is None or nextitem.module is not item.module:
        clouds.stop_unless(nextitem and clouds.kind_for(nextitem))


def pytest_sessionfinish():
    clouds.stop_unless(None)


@pytest.fixture(scope='module', autouse=True)
def paces():
    """Let pauses of the service be shorter than the actions of Nova here."""
    with pytest.MonkeyPatch.context() as patch:
        for where, seconds in {
            pace: {'MAX_PAUSE': 0.1, 'SOONEST': 0.0, 'LATEST': 0.01},
            threads: {'RPC_TIMEOUT': 1},
            attempts: {'LOOK_AGAIN': 0.1, 'RAREST_LOOK': 0.5},
            runner: {'INTERVAL': 0.1},
        }.items():
            for name, value in seconds.items():
                patch.setattr(where, name, value)
        yield


@pytest.fixture(scope='module')
def bare_cloud(request, tmp_path_factory):
    """A cloud whose scheduler has no manager to pull from.

    Modules share it; CLOUD of a module says which cloud the module needs.
    """
    # This comes before the cloud has its own temporary directory, which is
    # removed with the cloud.
    tmp_path_factory.getbasetemp()
    cloud = clouds.running(clouds.kind_of(request.module))
    process.ensure_started()
    with cloud.restoring():
        yield cloud
    process.stop()
    cloud.clear()


@pytest.fixture(scope='module')
def cloud(bare_cloud, end_point):
    service = service_conf.load(files=[])
    service.set_override('transport_url', 'fake:/')
    server = rpc.Server(rpc.transport(service), [end_point])
    server.start()
    yield bare_cloud
    process.stop()
    server.stop()


@pytest.fixture
def lab(cloud, end_point):
    lab = Lab(cloud, end_point)
    with cloud.restoring():
        yield lab
    lab.clear()


@pytest.fixture(scope='class')
def nova_notifies(cloud):
    """Nova sends its notifications, on the exchange that this returns.

    Nova's own fixture only records them.
    """
    notifier = oslo_messaging.Notifier(
        nova_rpc.NOTIFICATION_TRANSPORT,
        serializer=nova_rpc.RequestContextSerializer(
            nova_rpc.JsonPayloadSerializer()
        ),
        driver='messagingv2', topics=['versioned_notifications'],
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nova_rpc, 'NOTIFIER', notifier)
        yield nova_conf.CONF.control_exchange
