# SPDX-License-Identifier: Apache-2.0
"""A cloud on loopback, from its creation to its first server."""

from collections.abc import Iterable
from collections.abc import Iterator
from concurrent import futures
import contextlib
import pathlib
import time
from typing import Any

import openstack
import sqlalchemy as sa

from tests import serving
from tests.cloud import compute
from tests.cloud import glance
from tests.cloud import home
from tests.cloud import keystone
from tests.cloud import neutron
from tests.cloud import nova
from tests.cloud import person
from tests.cloud import placement
from tests.cloud import reservation
from tests.cloud import seed
from tests.cloud.processes import Processes
from tests.cloud.service import Service
from tests.cloud.site import Site
from tests.services import database
from tests.services import found

SERVICES: tuple[type[Service], ...] = (
    keystone.Keystone, nova.Nova, neutron.Neutron, glance.Glance,
    placement.Placement, reservation.Reservation,
)


class Cloud:
    """A running cloud.

    :param folder: the folder of its configuration, state and logs
    :param stack: the exit stack that removes the cloud
    :param computes: the number of compute hosts
    :param hold: the hold of hosts whose registration names none
    """

    def __init__(
        self, folder: pathlib.Path, stack: contextlib.ExitStack, computes: int,
        hold: str,
    ) -> None:
        self._began = time.monotonic()
        venv = home.venv()
        self._told(f'programs in {venv}')
        server = found.database(stack, 'mysql')
        self.site = Site(
            folder=folder, venv=venv,
            databases={
                name: stack.enter_context(_database(server))
                for service in SERVICES
                for name in service.databases
            },
            bus=found.broker(stack),
            ports=dict(zip(
                (service.name for service in SERVICES),
                serving.free_ports(len(SERVICES)), strict=True,
            )),
            hosts=[f'compute-{n + 1}' for n in range(computes)], hold=hold,
        )
        self.processes = Processes(folder, venv / 'bin', self._environment())
        # The processes end before the databases are removed.
        stack.callback(self.processes.end)
        self.services = [
            service(self.site, self.processes) for service in SERVICES
        ]
        self._computes = compute.Computes(self.site, self.processes)
        self._up()

    def describe(self) -> dict[str, Any]:
        """Return the description of the cloud for users and tests."""
        return {
            'folder': str(self.site.folder),
            'auth_url': self._auth_url,
            'bus': self.site.bus,
            'hosts': self.site.hosts,
            'access_logs': {
                service.name: str(service.access_log)
                for service in self.services
            },
        }

    @property
    def _auth_url(self) -> str:
        return f'{self.site.url("keystone")}/v3'

    def _environment(self) -> dict[str, str]:
        return {
            name: value
            for service in SERVICES
            for name, value in service.environment(self.site).items()
        }

    def _up(self) -> None:
        for service in self.services:
            service.configure()
        self._computes.configure()
        _at_once(service.upgrade for service in self.services)
        self._told('tables')
        first, *others = self.services
        first.start()
        self._told(first.name)
        seed.identity(self._admin(), self.services)
        self._told('users and catalog')
        _at_once(service.start for service in others)
        self._told(', '.join(service.name for service in others))
        self._computes.start()
        # A new token is needed: a token has the catalog of the time at which
        # it was made.
        admin = self._admin()
        seed.content(admin)
        self._told('image, flavors, network')
        self._computes.wait(admin)
        self._told(f'{len(self.site.hosts)} compute hosts')

    def _admin(self) -> openstack.connection.Connection:
        return person.connect(self._auth_url, 'admin', 'admin')

    def _told(self, what: str) -> None:
        """Report what is running now, and since when."""
        passed = time.monotonic() - self._began
        print(f'{passed:6.1f} s  {what}', flush=True)


@contextlib.contextmanager
def _database(server: str) -> Iterator[str]:
    with database.made(server) as url:
        engine = sa.create_engine(url, isolation_level='AUTOCOMMIT')
        with engine.connect() as connection:
            # The default of the server may differ: the services have keys of
            # this width.
            connection.exec_driver_sql('ALTER DATABASE CHARACTER SET utf8mb3')
        engine.dispose()
        yield url


def _at_once(calls: Iterable[Any]) -> None:
    """Make all calls at the same time; raise the first error."""
    with futures.ThreadPoolExecutor() as pool:
        for future in [pool.submit(call) for call in calls]:
            future.result()
