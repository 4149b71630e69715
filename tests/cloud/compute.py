# SPDX-License-Identifier: Apache-2.0
"""Compute hosts with fake servers."""

import pathlib

import openstack

from tests.cloud.processes import Processes
from tests.cloud.site import Site

# The module is run by its path: the folder must not be on the module path,
# because some of its modules have the names of Nova's.
_PROGRAM = ('-P', pathlib.Path(__file__).with_name('hypervisor.py'))


class Computes:
    """nova-compute with a fake driver, once for each host."""

    def __init__(self, site: Site, processes: Processes) -> None:
        self._site = site
        self._processes = processes

    def configure(self) -> None:
        for host in self._site.hosts:
            own = self._site.made('nova', host)
            sections = {
                'DEFAULT': {
                    'host': host,
                    'state_path': own,
                    'compute_driver': 'fake.MediumFakeDriver',
                },
                'oslo_concurrency': {'lock_path': own / 'lock'},
            }
            self._site.write(f'{host}.conf', sections)

    def start(self) -> None:
        """Start all computes; without Placement they would wait for a minute.
        """
        for host in self._site.hosts:
            files = (
                f'--config-file={self._site.etc / name}'
                for name in ('nova.conf', f'{host}.conf')
            )
            self._processes.start(host, 'python', *_PROGRAM, *files)

    def wait(self, admin: openstack.connection.Connection) -> None:
        """Wait until Nova may send a server to each host."""
        for host in self._site.hosts:
            self._processes.wait(
                host, lambda host=host: _is_there(admin, host)
            )


def _is_there(admin: openstack.connection.Connection, host: str) -> bool:
    is_mapped = any(
        hypervisor.name == host and hypervisor.state == 'up'
        for hypervisor in admin.compute.hypervisors()
    )
    providers = admin.placement.resource_providers(name=host)
    return is_mapped and any(
        list(admin.placement.resource_provider_inventories(provider))
        for provider in providers
    )
