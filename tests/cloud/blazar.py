# SPDX-License-Identifier: Apache-2.0
"""Blazar 18 on the cloud: its own programs, with the same other services.

Blazar has the service user of blazar-sched, so that trusts for one service are
valid for the other.
"""

import pathlib
from urllib import parse

from blazarclient import client as blazarclient

from tests import serving
from tests.cloud import home
from tests.cloud import processes
from tests.cloud import site
from tests.cloud.person import Person
from tests.cloud.processes import Processes

USER = 'blazar'
FREEPOOL = 'freepool'
PLUGINS = (
    'physical.host.plugin', 'virtual.instance.plugin',
    'flavor.instance.plugin', 'virtual.floatingip.plugin',
)
# blazar-api by itself ends at once: its server is a daemon thread.
_API = (
    'import threading; from blazar.cmd import api; api.main(); '
    'threading.Event().wait()'
)


def client(person: Person, url: str) -> blazarclient.Client:
    """Return python-blazarclient's library, as a person."""
    return blazarclient.Client(
        '1', session=person.sdk.session, service_type='reservation',
        endpoint_override=url, region_name=site.REGION,
    )  # fmt: skip


class Blazar:
    """The API and the manager of Blazar.

    :param folder: the folder of the configuration and logs
    :param database: an SQLAlchemy URL
    :param description: the description of the cloud
    """

    def __init__(
        self, folder: pathlib.Path, database: str, description: dict[str, str]
    ) -> None:
        self._conf = folder / 'blazar.conf'
        self._port = serving.free_port()
        self._processes = Processes(folder, home.blazar() / 'bin', {})
        self._configure(database, description)

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self._port}/v1'

    def _configure(self, database: str, description: dict[str, str]) -> None:
        keystone = parse.urlsplit(description['auth_url'])
        sections = {
            'DEFAULT': {
                'host': '127.0.0.1',
                'port': self._port,
                'transport_url': description['bus'],
                'os_auth_host': keystone.hostname,
                'os_auth_port': keystone.port,
                'os_admin_username': USER,
                'os_admin_password': site.PASSWORD,
                'os_admin_project_name': 'service',
                'os_region_name': site.REGION,
                'identity_service': 'identity',
            },
            'database': {'connection': database},
            'manager': {'plugins': ','.join(PLUGINS)},
            'nova': {'aggregate_freepool_name': FREEPOOL},
            'keystone_authtoken': credentials(description),
        }
        self._conf.write_text(site.ini(sections))

    def upgrade(self) -> None:
        """Create the tables."""
        self._processes.run(
            'blazar-upgrade', 'blazar-db-manage', '--config-file', self._conf,
            'upgrade', 'head',
        )

    def start(self) -> None:
        arguments = '--config-file', self._conf
        self._processes.start('blazar-manager', 'blazar-manager', *arguments)
        self._processes.start('blazar-api', 'python', '-c', _API, *arguments)
        self._processes.wait('blazar-api', self._answers)

    def stop(self) -> None:
        self._processes.end()

    def _answers(self) -> bool:
        return processes.answers(self.url)


def credentials(description: dict[str, str]) -> dict[str, object]:
    """Return the credentials of the service user, as keystoneauth options."""
    return {
        'auth_type': 'password',
        'auth_url': description['auth_url'],
        'www_authenticate_uri': description['auth_url'],
        'username': USER,
        'password': site.PASSWORD,
        'project_name': 'service',
        'user_domain_name': 'Default',
        'project_domain_name': 'Default',
        'region_name': site.REGION,
        'service_token_roles': 'service',
        'service_token_roles_required': True,
    }
