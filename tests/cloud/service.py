# SPDX-License-Identifier: Apache-2.0
"""What the services of the cloud have in common."""

from collections.abc import Mapping
import pathlib

import requests

from tests.cloud.processes import Processes
from tests.cloud.site import Site


class Service:
    """A service with a REST API, served by `serve`.

    :cvar name: its project's, and its user's
    :cvar type: its service type in the catalog
    :cvar path: of its endpoint
    :cvar application: WSGI, as MODULE:NAME
    """

    name: str
    type: str
    path = ''
    application: str
    # Processes, and the threads of each.
    workers = 1
    threads = 4
    databases: tuple[str, ...] = ()

    def __init__(
        self, site: Site, processes: Processes
    ) -> None:
        self._site = site
        self._processes = processes

    @property
    def url(self) -> str:
        """Its endpoint."""
        return self._site.url(self.name) + self.path

    @property
    def access_log(self) -> pathlib.Path:
        return self._site.folder / f'{self.name}.access'

    @classmethod
    def environment(cls, site: Site) -> Mapping[str, str]:
        """Return what tells its programs where their configuration is."""
        return {}

    def configure(self) -> None:
        """Write its configuration."""
        raise NotImplementedError

    def upgrade(self) -> None:
        """Make its tables."""
        raise NotImplementedError

    def start(self) -> None:
        """Start its processes, and return once it answers."""
        self._processes.start(
            self.name,
            'python',
            # Our modules are called like theirs.
            '-P',
            pathlib.Path(__file__).with_name('serve.py'),
            self.application,
            self._site.ports[self.name],
            self.workers,
            self.threads,
            self.access_log,
        )
        self._processes.wait(self.name, self._answers)

    def _answers(self) -> bool:
        try:
            answer = requests.get(self._site.url(self.name), timeout=60)
        except requests.ConnectionError:
            return False
        return answer.status_code < 400

    def _upgrade(self, program: str, *arguments: object) -> None:
        self._processes.run(f'{self.name}-upgrade', program, *arguments)
