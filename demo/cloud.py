# SPDX-License-Identifier: Apache-2.0
"""Nova and Placement in one process, with fake computes.

For the demonstration and for tests. Nova has the filters of this project. The
cloud is built on Nova's own functional fixtures, so everything is real except
the hypervisors, Glance, Neutron and Cinder. While the cloud runs, Nova owns
much global state: its configuration, logging, warnings and the temporary
directory. So there can only be one cloud at a time.

Import this module before any module that imports oslo.messaging: Nova runs on
native threads here and then refuses to share a process with eventlet.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import importlib.metadata
import logging
import os
import pathlib
import re
import threading
import time
from typing import Any
from typing import TypeVar
import uuid
import warnings

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', '1')

# This import comes first, because it selects the kind of threads.
import nova.tests.functional  # noqa: E402, F401, I001

import fixtures  # noqa: E402
import futurist  # noqa: E402
from keystoneauth1 import discover  # noqa: E402
from keystoneauth1 import plugin  # noqa: E402
from nova import test  # noqa: E402
from nova.tests import fixtures as nova_fixtures  # noqa: E402
from nova.tests.fixtures import notifications  # noqa: E402
from nova.tests.functional import fixtures as functional_fixtures  # noqa: E402
from nova.tests.functional.api import client  # noqa: E402
from openstack.service_description import ServiceDescription  # noqa: E402
from oslo_db import exception as db_exception  # noqa: E402
from oslo_db.sqlalchemy import exc_filters  # noqa: E402
import oslo_messaging  # noqa: E402
from oslo_messaging._drivers import impl_fake  # noqa: E402
from sqlalchemy import exc as sqla_exc  # noqa: E402

from blazar_sched.service.clients.rest import Session  # noqa: E402
from blazar_sched.worker import process  # noqa: E402

Server = dict[str, Any]

# Nova's fixture replaces this while a cloud is up.
_make_proxy: Callable[[Any, Any], Any] = ServiceDescription._make_proxy

ENABLED_FILTERS = (
    'ComputeFilter',
    'ComputeCapabilitiesFilter',
    'ImagePropertiesFilter',
    'ServerGroupAntiAffinityFilter',
    'ServerGroupAffinityFilter',
    'ReservationFilter',
    'LifetimeFilter',
)
API_FILTER = """
[filter:blazar_sched]
paste.filter_factory = blazar_sched.hooks.middleware:factory
"""
# The seconds that a wait may take, and the seconds between two probes. Nova's
# databases are files here, which a busy disk can delay.
TIMEOUT = 180.0
PAUSE = 0.05
# The maximum number of seconds between two probes of a server's state: a probe
# is made as soon as a notification says that an action on a server has ended.
# Each probe takes Nova as much processor time as a part of the action itself.
SERVER_PAUSE = 0.5
# The events of such notifications; a shutdown is a part of other actions.
_ENDED = re.compile(r'(compute_task|instance)\.(?!shutdown).*\.(end|error)')


class Timeout(Exception):
    """Raised if an expected state was not reached in time."""


T = TypeVar('T')


def wait_for(
    what: str, probe: Callable[[], T | None],
    pause: Callable[[], object] = lambda: time.sleep(PAUSE),
) -> T:
    """Return the result of `probe` as soon as the result is true.

    :param pause: waits between two probes
    :raises Timeout: after TIMEOUT seconds
    """
    deadline = time.monotonic() + TIMEOUT
    while not (answer := probe()):
        if time.monotonic() > deadline:
            raise Timeout(f'waited {TIMEOUT:.0f} s for {what}')
        pause()
    return answer


class _Admin(plugin.BaseAuthPlugin):
    """An auth plugin that both services accept, without Keystone."""

    def __init__(self, endpoints: Mapping[str, str], project_id: str) -> None:
        super().__init__()
        self._endpoints = endpoints
        self._project_id = project_id

    def get_headers(self, session: Any, **kwargs: Any) -> dict[str, str]:
        return {
            'X-Auth-Token': 'admin',
            'X-Auth-User': 'admin',
            'X-User-Id': 'admin',
            'X-Auth-Project-Id': self._project_id,
            'X-Roles': 'admin,member,reader',
        }

    def get_token(self, session: Any, **kwargs: Any) -> str:
        return 'admin'

    def get_endpoint(self, session: Any, **kwargs: Any) -> str | None:
        return self._endpoints.get(kwargs.get('service_type', ''))

    def get_endpoint_data(
        self, session: Any, *, endpoint_override: str | None = None,
        **kwargs: Any,
    ) -> discover.EndpointData | None:
        url = endpoint_override or self.get_endpoint(session, **kwargs)
        return super().get_endpoint_data(
            session, endpoint_override=url, **kwargs
        )

    def get_project_id(self, session: Any, **kwargs: Any) -> str:
        return self._project_id


class _CellDatabases(nova_fixtures.CellDatabases):
    """The databases of the cells, found by the context as in production.

    Nova's fixture gives a context without a cell the cell that any thread has
    named last, and so locks out all threads that name another cell meanwhile.
    Two concurrent requests can then wait for each other for ever. In practice
    only the computes name no cell, and all computes are in the default cell.
    """

    def _wrap_target_cell(self, context: Any, cell_mapping: Any) -> Any:
        return self._real_target_cell(context, cell_mapping)

    def _wrap_get_context_manager(self, context: Any) -> Any:
        named = getattr(context, 'db_connection', None)
        return named or self._default_ctxt_mgr


def _locked(error: sqla_exc.OperationalError, *args: object) -> None:
    """Raise DBDeadlock, so that Nova retries a transaction SQLite refused.

    SQLite refuses a transaction at once if another transaction has written
    since this transaction has read. Nova's databases in production report a
    deadlock in this case, after which Nova tries again.
    """
    raise db_exception.DBDeadlock(error)


exc_filters.filters(
    'sqlite', sqla_exc.OperationalError, r'.*database is locked.*'
)(_locked)


class _Ended(collections.defaultdict[str, notifications._Sub]):
    """The actions on servers that have ended, counted by notifications.

    Nova's fixture uses this as its subscriptions, by the type of the event.
    """

    def __init__(self) -> None:
        super().__init__(notifications._Sub)
        self.count = 0
        self._more = threading.Condition()

    def __getitem__(self, event_type: str) -> notifications._Sub:
        if _ENDED.fullmatch(event_type):
            with self._more:
                self.count += 1
                self._more.notify_all()
        return super().__getitem__(event_type)

    def wait(self, count: int) -> None:
        """Wait until there are more than `count`, or SERVER_PAUSE is over."""
        with self._more:
            self._more.wait_for(lambda: self.count > count, SERVER_PAUSE)


def _drop_exchanges(manager: impl_fake.FakeExchangeManager, kept: str) -> None:
    """Drop all exchanges of the process but one."""
    exchanges = manager._exchanges
    for name in exchanges.keys() - {kept}:
        exchanges.pop(name, None)


class _Nova(test.TestCase):
    """Nova's test case as the owner of its fixtures; it runs no test."""

    REQUIRES_LOCKING = True

    def __init__(self) -> None:
        super().__init__('runTest')
        self.ended = _Ended()

    def runTest(self) -> None:
        pass

    def setUp(self) -> None:
        # The remains of another cloud of this process must not receive
        # messages for hosts of the same names.
        exchange = f'nova-{uuid.uuid4()}'
        with fixtures.MonkeyPatch(
            'nova.rpc.set_defaults',
            lambda control_exchange: oslo_messaging.set_transport_defaults(
                exchange
            ),
        ):
            super().setUp()
        novas = ServiceDescription._make_proxy
        # Nova's fixture makes a bare adapter of Placement in place of the
        # SDK's proxy, which Nova does not need.
        self.useFixture(
            fixtures.MonkeyPatch(
                'openstack.service_description.ServiceDescription'
                '._make_proxy',
                lambda description, connection: (
                    _make_proxy if isinstance(connection.session, Session)
                    else novas
                )(description, connection),
            )
        )
        # The bus in memory drops the messages of all transports of the process
        # when one transport is cleaned up: Nova would wait for an answer in
        # vain after the restart of nova-scheduler's worker.
        self.useFixture(
            fixtures.MonkeyPatch(
                'oslo_messaging._drivers.impl_fake.FakeExchangeManager'
                '.cleanup',
                lambda manager: _drop_exchanges(manager, exchange),
            )
        )
        # Nova makes each idle thread wake up a hundred times a second, so
        # that a test ends sooner; a cloud lives longer and has hundreds of
        # threads.
        pool_worker: Any = futurist._thread.ThreadWorker
        pool_worker.MAX_IDLE_FOR = 0.25
        # Nova's fixture makes errors of notifications of kinds that are new to
        # Nova; a cloud only logs them, and force_delete is one.
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.rpc.LegacyValidatingNotifier.fatal', False
            )
        )
        # Nova's fixture would format every debug line and discard it.
        logging.getLogger().setLevel(logging.INFO)
        # Nova 34 was made for SQLAlchemy 2.0 and treats this warning of
        # SQLAlchemy 2.1 as an error.
        warnings.filterwarnings('ignore', message=r'The noload\(\) option')
        self.flags(
            compute_driver='fake.MediumFakeDriver',
            cpu_allocation_ratio=1.0,
            ram_allocation_ratio=1.0,
            disk_allocation_ratio=1.0,
            # A caller that waits for a stopped scheduler delays the end of
            # the cloud, by half an hour by default.
            long_rpc_timeout=60,
        )
        # Nothing here reads the unversioned notifications.
        self.flags(group='notifications', notification_format='versioned')
        # Validating Nova's own responses would take half of the time of a
        # response.
        self.flags(group='api', response_validation='ignore')
        self.flags(group='quota', instances=-1, cores=-1, ram=-1)
        self.flags(group='wsgi', api_paste_config=_installed('api-paste.ini'))
        self.flags(
            group='filter_scheduler',
            available_filters=[
                'nova.scheduler.filters.all_filters',
                'blazar_sched.filters.all_filters',
            ],
            enabled_filters=list(ENABLED_FILTERS),
            weight_classes=[
                'nova.scheduler.weights.all_weighers',
                'blazar_sched.weighers.all_weighers',
            ],
        )

    def _setup_cells(self) -> None:
        with fixtures.MonkeyPatch(
            'nova.tests.fixtures.CellDatabases', _CellDatabases
        ):
            super()._setup_cells()

    def start(self) -> None:
        """Start all services except the computes."""
        self.glance = self.useFixture(nova_fixtures.GlanceFixture(self))
        self.useFixture(nova_fixtures.NeutronFixture(self))
        self.useFixture(nova_fixtures.CinderFixture(self))
        self.useFixture(nova_fixtures.RealPolicyFixture())
        self.placement = self.useFixture(
            functional_fixtures.PlacementFixture()
        )
        self.useFixture(nova_fixtures.AllServicesCurrent())
        notifier = self.useFixture(
            nova_fixtures.NotificationFixture(self)
        ).fake_versioned_notifier
        notifier.subscriptions = self.ended
        self.rest = self.useFixture(
            nova_fixtures.OSAPIFixture(api_version='v2.1')
        )
        self.start_service('conductor')
        self.start_service('scheduler')


def _installed(name: str) -> str:
    """Return the path at which Nova's data file `name` was installed."""
    for path in importlib.metadata.files('nova') or ():
        if path.name == name:
            return os.fspath(path.locate())
    raise FileNotFoundError(name)


def _with_our_filter(api_paste: str, folder: str) -> str:
    """Return the path of a copy of an api-paste.ini with the filter added."""
    text = pathlib.Path(api_paste).read_text()
    text = text.replace(' keystonecontext ', ' keystonecontext blazar_sched ')
    path = pathlib.Path(folder) / 'api-paste.ini'
    path.write_text(text + API_FILTER)
    return os.fspath(path)


class Cloud:
    """A running cloud.

    :param hosts: the names of its compute hosts
    :param vcpus: of each host, like `memory_mb` and `disk_gb`; nothing is
        overcommitted, and Nova keeps 512 MB of each host's memory
    :param options: the options of ``[blazar_sched]`` in nova.conf
    :param settings: the options of its other groups, by group and name
    :param hooks: whether nova-api has the filter of this project too

    Use the cloud as a context manager, or call start() and stop().
    """

    def __init__(
        self, hosts: Sequence[str], vcpus: int = 8,
        memory_mb: int = 16384 + 512, disk_gb: int = 1000,
        options: Mapping[str, Any] | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        hooks: bool = False,
    ) -> None:
        self._names = tuple(hosts)
        self._size = {
            'vcpus': vcpus, 'memory_mb': memory_mb, 'local_gb': disk_gb
        }
        self._options = {
            'poll_interval': 0.1, 'snapshot_path': '', **(options or {})
        }
        self._settings = settings or {}
        self._hooks = hooks
        self._nova = _Nova()
        # The uuids of the compute hosts by name.
        self.hosts: dict[str, str] = {}

    def __enter__(self) -> 'Cloud':
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> None:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        case = self._nova
        case.setUp()
        if self._hooks:
            api_paste = _with_our_filter(
                _installed('api-paste.ini'),
                case.useFixture(fixtures.TempDir()).path,
            )
            self.configure('wsgi', api_paste_config=api_paste)
        for group, options in self._settings.items():
            self.configure(group, **options)
        self.configure(**self._options)
        for name, amount in self._size.items():
            case.useFixture(
                fixtures.MonkeyPatch(
                    f'nova.virt.fake.MediumFakeDriver.{name}', amount
                )
            )
        case.start()
        self.api = self.client()
        self.add_computes(*self._names)
        # A worker that was started before uses another bus.
        process.stop()
        process.ensure_started()

    def add_computes(self, *names: str) -> None:
        """Start further compute hosts."""
        for name in names:
            self._nova._start_compute(name)
        self.hosts = {
            h['hypervisor_hostname']: h['id']
            for h in self.api.api_get('/os-hypervisors').body['hypervisors']
        }

    def stop(self) -> None:
        process.stop()
        # Nova's fixtures restore logging first and stop Nova's threads later.
        log = logging.getLogger('nova')
        level = log.level
        log.setLevel(logging.WARNING)
        self._nova.doCleanups()
        log.setLevel(level)
        # A request in progress may have started the worker again.
        process.stop()

    def configure(self, group: str = 'blazar_sched', **options: Any) -> None:
        """Set options of nova.conf from now on."""
        self._nova.flags(
            group=None if group == 'DEFAULT' else group, **options
        )

    @property
    def project_id(self) -> str:
        """The project that is used unless another project is named."""
        project_id: str = self._nova.rest.project_id
        return project_id

    @property
    def image_id(self) -> str:
        """The image that servers are booted from."""
        image_id: str = self._nova.glance.image1['id']
        return image_id

    def client(
        self, project_id: str | None = None
    ) -> client.TestOpenStackClient:
        """Return a client of Nova's API, an administrator in the project."""
        api = client.TestOpenStackClient(
            'admin', self._nova.rest.base_url, project_id or self.project_id,
            roles=['admin', 'member', 'reader'],
        )
        api.microversion = 'latest'
        return api

    def session(self) -> Session:
        """Return an administrator's session with Nova and Placement."""
        endpoints = {
            'compute': self._nova.rest.base_url,
            'placement': self._nova.placement.endpoint,
        }
        return Session(auth=_Admin(endpoints, self.project_id))

    # Resources of the cloud.

    def inventory(self, host: str) -> dict[str, dict[str, Any]]:
        """Return the inventories of `host` by class, from Placement."""
        answer = self._nova.placement.api.get(
            f'/resource_providers/{self.hosts[host]}/inventories'
        )
        inventories: dict[str, dict[str, Any]] = answer.body['inventories']
        return inventories

    def flavor(
        self, vcpus: int = 1, memory_mb: int = 512, disk_gb: int = 1,
        extra_specs: Mapping[str, str] | None = None, name: str | None = None,
    ) -> str:
        """Create a flavor and return its id."""
        flavor_id: str = self.api.post_flavor(
            {
                'flavor': {
                    'name': name or f'flavor-{uuid.uuid4().hex[:8]}',
                    'vcpus': vcpus,
                    'ram': memory_mb,
                    'disk': disk_gb,
                }
            }
        )['id']
        if extra_specs:
            self.api.post_extra_spec(
                flavor_id, {'extra_specs': dict(extra_specs)}
            )
        return flavor_id

    def boot(
        self, flavor_id: str, hints: Mapping[str, Any] | None = None,
        name: str | None = None, project_id: str | None = None,
        **parameters: Any,
    ) -> Server:
        """Boot a server and return the server once it is ACTIVE or ERROR.

        :param parameters: API parameters, such as ``host`` or ``metadata``
        """
        [server] = self.boot_many(
            1, flavor_id, hints, name=name, project_id=project_id, **parameters
        )
        return server

    def boot_many(
        self, count: int, flavor_id: str,
        hints: Mapping[str, Any] | None = None, name: str | None = None,
        project_id: str | None = None, min_count: int | None = None,
        **parameters: Any,
    ) -> list[Server]:
        """Boot `count` servers in one request; return the settled servers."""
        api = self.client(project_id)
        body = {
            'server': {
                'name': name or f'server-{uuid.uuid4().hex[:8]}',
                'imageRef': self.image_id,
                'flavorRef': flavor_id,
                'networks': 'none',
                'max_count': count,
                'min_count': count if min_count is None else min_count,
                'return_reservation_id': count > 1,
                **parameters,
            }
        }
        if hints:
            body['os:scheduler_hints'] = dict(hints)
        with self._action():
            servers = [api.post_server(body)]
            if count > 1:
                servers = api.get_servers(detail=False, search_opts=servers[0])
        return [self.settled(server) for server in servers]

    def show(self, server: Server) -> Server:
        shown: Server = self.api.get_server(server['id'])
        return shown

    def settled(self, server: Server, *statuses: str) -> Server:
        """Return `server` once it rests in one of `statuses` or ERROR."""
        statuses = statuses or ('ACTIVE',)

        def probe() -> Server | None:
            shown: Server = self.show(server)
            resting = shown['OS-EXT-STS:task_state'] is None and not (
                # Nova sets this status before it removes the server from
                # its host.
                shown['status'] == 'SHELVED_OFFLOADED' and host_of(shown)
            )
            if shown['status'] == 'ERROR' and 'fault' in shown:
                return shown
            return shown if resting and shown['status'] in statuses else None

        rested: Server = self._wait_for(
            f'server {server["id"]} in {statuses}', probe
        )
        return rested

    def delete(self, *servers: Server) -> None:
        """Delete the servers and wait until the servers are gone."""
        if not servers:
            return
        with self._action():
            for server in servers:
                self.api.delete_server(server['id'])
        ids = {server['id'] for server in servers}
        self._wait_for(
            f'servers {ids} gone',
            lambda: ids.isdisjoint(s['id'] for s in self._all(detail=False)),
        )

    def servers(self) -> list[Server]:
        """Return all servers of all projects."""
        return self._all()

    def _all(self, detail: bool = True) -> list[Server]:
        servers: list[Server] = self.api.get_servers(
            detail=detail, search_opts={'all_tenants': True}
        )
        return servers

    def act(
        self, server: Server, action: str, *statuses: str, **body: Any
    ) -> Server:
        """Run an API action on the server; return the settled server."""
        with self._action():
            self.api.post_server_action(server['id'], {action: body or None})
        return self.settled(server, *statuses)

    @contextlib.contextmanager
    def _action(self) -> Iterator[None]:
        """Request an action in the body; then wait until it may have ended."""
        count = self._nova.ended.count
        yield
        self._nova.ended.wait(count)

    def _wait_for(self, what: str, probe: Callable[[], T | None]) -> T:
        """Probe again whenever an action on a server has ended."""
        count = 0

        def probe_then() -> T | None:
            nonlocal count
            count = self._nova.ended.count
            return probe()

        return wait_for(what, probe_then, lambda: self._nova.ended.wait(count))

    def report(self) -> None:
        """Make the computes report their use, as they do every minute.

        The remains of moved instances are removed by such a report.
        """
        self._nova._run_periodics()

    def stop_compute(self, host: str) -> None:
        """Make the compute service on `host` fail."""
        self._nova.computes[host].stop()
        self._force_down(host, True)

    def start_compute(self, host: str) -> None:
        """Start the compute service on `host` again."""
        computes = self._nova.computes
        # The tracker of the former service would report outdated use.
        computes[host] = self._nova.restart_compute_service(computes[host])
        self._force_down(host, False)

    def _force_down(self, host: str, down: bool) -> None:
        [service] = self.api.get_services(binary='nova-compute', host=host)
        self.api.put_service_force_down(service['id'], down)


def host_of(server: Server) -> str | None:
    """Return the name of the host that the server is on, None for none."""
    host: str | None = server['OS-EXT-SRV-ATTR:host']
    return host
