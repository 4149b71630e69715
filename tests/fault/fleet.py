# SPDX-License-Identifier: Apache-2.0
"""A whole service in processes: managers, APIs and a nova-scheduler."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import json
import os
import pathlib
import time
from typing import Any

import requests

from blazar_sched.parts.request import models
from tests import serving
from tests.fault import content
from tests.fault import site as fault_site
from tests.fault.processes import Process
from tests.fault.processes import Processes
from tests.fault.site import Deployment
from tests.fault.site import wait_for
from tests.fault.traffic import Traffic
from tests.standins.served import ServedCloud

Line = dict[str, Any]


def last_line(text: str) -> Line:
    """Return the last of some lines of JSON that is complete, {} for none."""
    lines = text[: text.rfind('\n') + 1].rsplit('\n', 2)
    return json.loads(lines[-2]) if len(lines) > 1 else {}


class Schedulers:
    """The workers of a nova-scheduler, and the log of each replica."""

    def __init__(
        self, folder: pathlib.Path, processes: Processes, bus: str,
        workers: int, root: pathlib.Path | None, more: Sequence[pathlib.Path],
    ) -> None:
        self._folder = folder / 'workers'
        self._folder.mkdir()
        config = folder / 'nova.conf'
        config.write_text(
            f'[DEFAULT]\ntransport_url = {bus}\n'
            f'[blazar_sched]\nsnapshot_path = {folder}/snapshot\n'
        )
        self._config = os.pathsep.join(map(str, (config, *more)))
        self._processes = processes
        self._count = workers
        self.start(root)

    def start(self, root: pathlib.Path | None = None) -> None:
        self.master = self._processes.spawn(
            'tests.fault.scheduler', self._config, self._folder, self._count,
            root=root,
        )

    def pids(self) -> list[int]:
        """Return the pids of the living workers, oldest first."""
        files = sorted(
            self._folder.iterdir(), key=lambda path: path.stat().st_ctime
        )
        return [
            int(path.name)
            for path in files
            # The program of a zombie does not exist.
            if pathlib.Path('/proc', path.name, 'exe').exists()
        ]

    def learned(self, pid: int) -> list[Line]:
        """Return the states of a worker's replica, in order."""
        lines = (self._folder / str(pid)).read_text().splitlines(True)
        return [json.loads(line) for line in lines if line.endswith('\n')]

    def present(self) -> list[Line]:
        """Return the last state of the replica of each living worker."""
        return [
            last_line((self._folder / str(pid)).read_text())
            for pid in self.pids()
        ]

    def know(self, digest: str) -> bool:
        """Tell whether all workers live and have exactly these leases."""
        present = self.present()
        return len(present) == self._count and all(
            line.get('content') == digest and not line['stale']
            for line in present
        )


class Fleet:
    """A whole service on one site.

    `running` has a process for each manager and then for each API.

    :param root: the directory of another version of the package, for all
        processes
    :param ports: the ports of the APIs, by default as many as `apis`
    :param more: further configuration files by the process, as ``manager-0``,
        ``api-1`` or ``nova``; a later file takes precedence
    :param manager: options of that group
    """

    def __init__(
        self, folder: pathlib.Path, processes: Processes, database: str,
        bus: str, cloud: ServedCloud, managers: int = 1, apis: int = 1,
        workers: int = 1, root: pathlib.Path | None = None,
        ports: Sequence[int] = (),
        more: Callable[[str], Sequence[pathlib.Path]] = lambda process: (),
        **manager: object,
    ) -> None:
        site = Deployment(folder, database, bus, cloud.url, **manager)
        self._more = more
        self.ledger = site.ledger()
        self._cloud = cloud
        self._processes = processes
        self.ports = ports or serving.free_ports(apis)
        self._commands = [
            ('manager', site.file(f'manager-{n}')) for n in range(managers)
        ] + [
            ('api', site.file(f'api-{n}', port=port))
            for n, port in enumerate(self.ports)
        ]
        self.running = [
            self._start(*command, root) for command in self._commands
        ]
        self.schedulers = Schedulers(
            folder, processes, bus, workers, root, more('nova')
        )
        wait_for('an answer', self._answers)
        for name in cloud.hosts:
            wait_for(name, lambda name=name: self._has_registered(name))
        wait_for('fed replicas', self.fed)

    def _answers(self) -> bool:
        url = f'http://127.0.0.1:{self.ports[0]}/v1/leases'
        try:
            return requests.get(
                url, headers=serving.ADMIN, timeout=fault_site.TIMEOUT
            ).ok
        except requests.RequestException:
            return False

    def _has_registered(self, host: str) -> bool:
        """Register a host; tell whether a manager has done so in time."""
        answer = requests.post(
            f'http://127.0.0.1:{self.ports[0]}/v1/os-hosts',
            json={'name': host}, headers=serving.ADMIN,
            timeout=fault_site.TIMEOUT,
        )
        # Of two attempts the first one may have been done, and not answered.
        assert answer.status_code in (201, 409, 503), answer.text
        return answer.status_code != 503

    def _start(
        self, name: str, path: pathlib.Path, root: pathlib.Path | None = None
    ) -> Process:
        files = path, *self._more(path.stem)
        argv = name, *(f'--config-file={file}' for file in files)
        if root is None:
            return self._processes.start(*argv)
        return self._processes.spawn('tests.fault.command', *argv, root=root)

    def has_started(self) -> bool:
        """Tell whether all started processes are ready."""
        return all(
            p.log.exists() and 'Started' in p.log.read_text()
            for p in self.running
        )

    def start(self, number: int, root: pathlib.Path | None = None) -> None:
        """Restart a process of `running` that has ended."""
        self.running[number] = self._start(*self._commands[number], root)

    @contextlib.contextmanager
    def at_work(
        self, clients: int = 2, offers: bool = False, waiting: bool = False
    ) -> Iterator[Traffic]:
        """Run clients meanwhile; then check the leases that the clients know.

        Nothing else helps the service to recover.
        """
        with Traffic(self.ports, clients, offers, waiting) as traffic:
            yield traffic
        self.check(traffic)

    def settle(self) -> None:
        """Wait until nothing that was asked for remains to be done.

        A lease may still be removed after its deletion was answered.
        """
        wait_for('no held offer', lambda: not self.ledger.offers(None))
        wait_for(
            'every event done',
            lambda: not self.ledger.due_events(int(time.time())),
        )

    def check(self, traffic: Any) -> None:
        """Check the leases that clients know, as Traffic has them."""
        assert not traffic.troubles, traffic.troubles
        self.settle()
        wait_for('replicas equal to SQL', self.fed)
        assert not self.ledger.run(models.waiting)
        leases = self.ledger.leases()
        unlike = {lease.id for lease in leases} ^ traffic.left()
        assert not unlike, [
            (each, each in traffic.made, each in traffic.deleted)
            for each in unlike
        ]
        assert {lease.status for lease in leases} <= {'PENDING', 'ACTIVE'}
        assert set(self._cloud.flavors) == {
            lease.reservations[0].id
            for lease in leases
            if lease.status == 'ACTIVE'
        }
        assert self.ledger.check() == []

    def fed(self) -> bool:
        """Tell whether every replica equals a replica built from SQL."""
        now = content.digest(content.rebuilt(self.ledger))
        return self.schedulers.know(now)

    def close(self) -> None:
        self.ledger.close()
