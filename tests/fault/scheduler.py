# SPDX-License-Identifier: Apache-2.0
"""Feed replicas in forks, as in nova-scheduler's workers.

``python -m tests.fault.scheduler CONFIG FOLDER WORKERS``: the master prepares
as nova-scheduler does when it loads the filters, and then oslo.service forks.
Each worker writes the states of its replica to FOLDER/<pid>, one line of JSON
each. The times are of the monotonic clock, which all processes share. CONFIG
is a list of files, separated as in a path.
"""

# This import comes first, because it selects the kind of threads.
import oslo_service.backend as backend  # isort: skip

backend.init_backend(backend.BackendType.THREADING)

import json  # noqa: E402
import os  # noqa: E402
import pathlib  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

from oslo_log import log  # noqa: E402
from oslo_service import service  # noqa: E402

from blazar_sched.worker import process  # noqa: E402
from tests.fault import content  # noqa: E402

# Seconds between two polls of the replica.
PAUSE = 0.01


class Watch(service.ServiceBase):
    """A worker, which only polls its replica."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._stopping = False

    def start(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()

    def stop(self) -> None:
        self._stopping = True

    def wait(self) -> None:
        while not self._stopping:
            time.sleep(PAUSE)

    def reset(self) -> None:
        pass

    def _watch(self) -> None:
        said = None
        known: set[str] = set()
        with (self._folder / str(os.getpid())).open('a') as file:
            while True:
                replica, stale = process.current()
                at = time.monotonic()
                time.sleep(PAUSE)
                if replica is None or said == (replica.revision, stale):
                    continue
                revision = replica.revision
                try:
                    reserved = set(replica.reservations)
                    digest = content.digest(replica)
                except RuntimeError:
                    # The replica is being changed: poll again.
                    continue
                line = {
                    'at': at,
                    'revision': revision,
                    'stale': stale,
                    'new': list(reserved - known),
                    'content': digest,
                }
                file.write(json.dumps(line) + '\n')
                file.flush()
                said, known = (revision, stale), reserved


def main(config: str, folder: str, workers: str) -> None:
    log.register_options(process.CONF)
    process.CONF(
        [], project='nova', default_config_files=config.split(os.pathsep)
    )
    log.setup(process.CONF, 'nova')
    process.prepare()
    launcher = service.launch(
        process.CONF, Watch(pathlib.Path(folder)), workers=int(workers),
        restart_method='mutate',
    )
    launcher.wait()


if __name__ == '__main__':
    main(*sys.argv[1:])
