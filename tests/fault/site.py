# SPDX-License-Identifier: Apache-2.0
"""The configuration of a database, a bus and a cloud for their users."""

from collections.abc import Callable
import pathlib
import time
from typing import Any

from oslo_config import cfg

from blazar_sched.conf import service as service_conf
from blazar_sched.service import database
from blazar_sched.service.ledger.ledger import Ledger

TIMEOUT = 240.0
PAUSE = 0.05
# A reservation of one instance, as small as possible.
SLOT = {
    'resource_type': 'virtual:instance',
    'vcpus': 1,
    'memory_mb': 1,
    'disk_gb': 0,
    'amount': 1,
}


def wait_for(what: str, probe: Callable[[], Any]) -> Any:
    """Return the result of `probe` as soon as the result is true."""
    deadline = time.monotonic() + TIMEOUT
    while not (answer := probe()):
        assert time.monotonic() < deadline, what
        time.sleep(PAUSE)
    return answer


class Deployment:
    """The shared configuration of the processes of one service.

    :param database: a URL
    :param bus: a transport_url
    :param cloud: the URL of Nova and Placement
    :param manager: options of that group, beside those that shorten intervals
    """

    def __init__(
        self, folder: pathlib.Path, database: str, bus: str = 'fake://',
        cloud: str = '', **manager: object,
    ) -> None:
        self.database = database
        self._folder = folder
        self._groups: dict[str, dict[str, object]] = {
            'DEFAULT': {'transport_url': bus, 'rpc_response_timeout': 10},
            'database': {'connection': database},
            'nova': {'auth_type': 'none', 'endpoint': f'{cloud}/compute'},
            'placement': {
                'auth_type': 'none', 'endpoint': f'{cloud}/placement',
            },
            'manager': {
                'event_claim_seconds': 2,
                'event_retry_interval': 0.2,
                'sync_interval': 3600,
                'unbounded': 'forever',
                'relocate_instances': False,
                # All clients are of one project.
                'max_held_offers': 1000,
                'max_waiting_requests': 1000,
                **manager,
            },
            'enforcement': {'enabled_filters': ''},
        }

    def file(self, name: str = 'site', **api: object) -> pathlib.Path:
        """Write a configuration file for one process.

        A process may be reading the file that is replaced.
        """
        path = self._folder / f'{name}.conf'
        new = path.with_suffix('.new')
        lines = []
        for group, options in {
            **self._groups, 'api': {'auth_strategy': 'noauth', **api},
        }.items():
            lines.append(f'[{group}]')
            lines += [f'{key} = {value}' for key, value in options.items()]
        new.write_text('\n'.join(lines) + '\n')
        return new.replace(path)

    def conf(self) -> cfg.ConfigOpts:
        return service_conf.load(files=[str(self.file())])

    def ledger(self) -> Ledger:
        """Open the ledger; its tables are created if they are missing."""
        ledger = database.open_ledger(self.conf())
        ledger.upgrade()
        return ledger
