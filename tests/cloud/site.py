# SPDX-License-Identifier: Apache-2.0
"""The folders, ports and URLs of one cloud."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import pathlib

REGION = 'RegionOne'
# The password of every user: they exist on loopback alone, as long as the
# cloud.
PASSWORD = 'secret'

Sections = Mapping[str, Mapping[str, object]]


@dataclasses.dataclass(frozen=True)
class Site:
    """The folders, ports and URLs of one cloud.

    :param folder: the folder of configuration, state and logs
    :param venv: the virtual environment of the services
    :param databases: an SQLAlchemy URL by name
    :param bus: a transport_url
    :param ports: the port of each service on loopback, by name
    :param hosts: the names of the compute hosts
    :param hold: the hold of hosts whose registration names none
    """

    folder: pathlib.Path
    venv: pathlib.Path
    databases: Mapping[str, str]
    bus: str
    ports: Mapping[str, int]
    hosts: Sequence[str]
    hold: str

    def url(self, name: str) -> str:
        return f'http://127.0.0.1:{self.ports[name]}'

    @property
    def etc(self) -> pathlib.Path:
        return self.made('etc')

    def made(self, *names: str) -> pathlib.Path:
        """Return a folder of the cloud, which is created if missing."""
        folder = self.folder.joinpath(*names)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def write(self, name: str, sections: Sections, more: str = '') -> None:
        """Write a configuration file."""
        (self.etc / name).write_text(ini(sections) + more)

    def credentials(self, user: str) -> dict[str, object]:
        """Return the credentials of a service user, as keystoneauth options.
        """
        return {
            'auth_type': 'password',
            'auth_url': f'{self.url("keystone")}/v3',
            'username': user,
            'password': PASSWORD,
            'project_name': 'service',
            'user_domain_name': 'Default',
            'project_domain_name': 'Default',
            'region_name': REGION,
        }

    def authtoken(self, user: str) -> dict[str, object]:
        """Return the options of a service that validates tokens."""
        return {
            **self.credentials(user),
            'www_authenticate_uri': self.url('keystone'),
            'service_token_roles': 'service',
            'service_token_roles_required': True,
        }


def ini(sections: Sections) -> str:
    lines = []
    for section, options in sections.items():
        lines.append(f'[{section}]')
        lines.extend(f'{name} = {value}' for name, value in options.items())
    return '\n'.join(lines) + '\n'
