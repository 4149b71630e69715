# SPDX-License-Identifier: Apache-2.0
"""The base class of the services of the cloud."""

from collections.abc import Mapping
import pathlib

from tests.cloud import processes
from tests.cloud.processes import Processes
from tests.cloud.site import Site


class Service:
    """A service with a REST API, served by `serve`.

    :cvar name: the name of its project and its user
    :cvar type: its service type in the catalog
    :cvar path: the path of its endpoint
    :cvar application: the WSGI application, as MODULE:NAME
    """

    name: str
    type: str
    path = ''
    application: str
    # Processes, and the threads of each.
    workers = 1
    threads = 4
    databases: tuple[str, ...] = ()

    def __init__(self, site: Site, processes: Processes) -> None:
        self._site = site
        self._processes = processes

    @property
    def url(self) -> str:
        """Return the URL of the endpoint."""
        return self._site.url(self.name) + self.path

    @property
    def access_log(self) -> pathlib.Path:
        return self._site.folder / f'{self.name}.access'

    @classmethod
    def environment(cls, site: Site) -> Mapping[str, str]:
        """Return the variables that name the configuration for its programs.
        """
        return {}

    def configure(self) -> None:
        """Write the configuration."""
        raise NotImplementedError

    def upgrade(self) -> None:
        """Create the tables."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the processes, and wait until the service responds."""
        self._processes.start(
            self.name,
            'python',
            # Modules of this tree have the names of the service's modules.
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
        return processes.answers(self._site.url(self.name))

    def _upgrade(self, program: str, *arguments: object) -> None:
        self._processes.run(f'{self.name}-upgrade', program, *arguments)
