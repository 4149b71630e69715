# SPDX-License-Identifier: Apache-2.0
"""The whole service in one process, with SQLite and an in-memory bus.

Only other services are stand-ins: Nova and Placement at the level of the
clients' methods, with hosts of 16 VCPUs and no servers, and Neutron at the
level of HTTP.
"""

import functools
import shutil
import tempfile
from types import SimpleNamespace

import futurist
import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.domain.flavor import Flavor
from blazar_sched.service.api import deploy
from blazar_sched.service.bus import rpc
from blazar_sched.service.manager.manager import Manager
from tests import loopback
from tests import overriding
from tests.standins import processor
from tests.standins.clients import add_compute_node
from tests.standins.clients import Nova
from tests.standins.clients import Placement
from tests.standins.neutron import NeutronApi

FLAVOR = {
    'id': 'm1.small', 'name': 'small', 'vcpus': 2, 'memory_mb': 2048,
    'disk_gb': 20,
}


@pytest.fixture
def options():
    """More of the configuration file, for tests to override."""
    return ''


@functools.cache
def _read(text, exchange):
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
        file.write(text)
        file.flush()
        return service_conf.load(files=[file.name])


@pytest.fixture
def service(empty_ledger, tmp_path, monkeypatch, options):
    """A running service: `.conf`, `.manager`, `.bus` and `.api`."""
    # The end of the service waits for idle threads, a second by default.
    monkeypatch.setattr(futurist._thread.ThreadWorker, 'MAX_IDLE_FOR', 0.05)
    ledger = shutil.copy(empty_ledger, tmp_path / 'ledger.sqlite')
    read = _read(
        '[DEFAULT]\ntransport_url = fake://\nrpc_response_timeout = 30\n'
        '[api]\nauth_strategy = noauth\nport = 0\n'
        # Tests of relocation and of limits set what they are about.
        '[manager]\nrelocate_instances = false\n'
        '[enforcement]\nenabled_filters =\nmax_start_horizon = -1\n'
        'max_percent_per_project = -1\n'
        f'{options}',
        overriding.exchange(),
    )
    with overriding.forgetting(read) as conf:
        conf.set_override('connection', f'sqlite:///{ledger}', 'database')
        yield from _serve(conf)


def _serve(conf):
    nova, placement = Nova(), Placement()
    nova.known_flavors = [Flavor(**FLAVOR)]
    for n in range(1, 5):
        add_compute_node(nova, placement, f'compute-{n}', 16, 65536, 1000)
    manager = Manager(
        conf, nova, placement, adapter={'neutron': NeutronApi()}.get,
        thread_time=processor.ticking(),
    )
    manager.start()
    bus = rpc.Client(rpc.transport(conf))
    api = loopback.client(deploy.deploy(conf, bus))
    yield SimpleNamespace(conf=conf, manager=manager, bus=bus, api=api)
    manager.stop()
