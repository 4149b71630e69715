# SPDX-License-Identifier: Apache-2.0
"""Blazar 18's database, made by Blazar or by hand, and a ledger to fill.

Nova, Placement and Neutron are there at their HTTP edge, with hosts of 8
VCPUs.
"""

import contextlib
import json
import pathlib
import subprocess
from types import SimpleNamespace

from blazarclient import client as blazarclient
from keystoneauth1 import session as session_
from keystoneauth1 import token_endpoint
import pytest

from blazar_sched.conf import service as conf_
from blazar_sched.service.api import server as server_
from blazar_sched.service.bus import rpc
from blazar_sched.service.clients import neutron as neutron_
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.clients import placement as placement_
from blazar_sched.service.importing import importer as importer_
from blazar_sched.service.manager import manager as manager_
from tests.cloud import home
from tests.functional.importing import database
from tests.services import database as servers
from tests.unit import neutron as neutron_edge
from tests.unit.manager import edge as edge_

# The last one is not Blazar's.
HOSTS = ('compute-1', 'compute-2', 'compute-3', 'compute-4')


def client(url, token='admin'):
    """Return python-blazarclient's library, as a user."""
    auth = token_endpoint.Token(url, token)
    return blazarclient.Client(
        '1', session=session_.Session(auth=auth), service_type='reservation'
    )


@pytest.fixture
def ledger_url(tmp_path):
    return f'sqlite:///{tmp_path}/ledger.sqlite'


@pytest.fixture
def site(tmp_path, ledger_url):
    """The other services, and `manager()`: one of ours, not started."""
    file = tmp_path / 'blazar-sched.conf'
    file.write_text(
        '[DEFAULT]\ntransport_url = fake://\n'
        f'[database]\nconnection = {ledger_url}\n'
        '[api]\nauth_strategy = noauth\nport = 0\n'
    )
    conf = conf_.load(files=[str(file)])
    edge = edge_.Edge(*HOSTS)
    neutron = neutron_edge.Neutron()

    def manager():
        return manager_.Manager(
            conf,
            nova_.Nova(edge),
            placement_.Placement(edge),
            neutron=neutron_.Neutron(neutron),
        )

    manager().ledger.upgrade()
    return SimpleNamespace(
        conf=conf, edge=edge, neutron=neutron, manager=manager
    )


@pytest.fixture
def importer(site):
    return importer_.Importer(site.conf, site.manager().services)


@pytest.fixture
def serve(site):
    """serve() -> the URL of our API; no event is done behind it."""
    with contextlib.ExitStack() as stack:

        def serve():
            api = server_.serve(site.conf, rpc.Local(site.manager().endpoint))
            stack.callback(api.stop)
            return f'http://127.0.0.1:{api.port}/v1'

        yield serve


@pytest.fixture
def blazar(tmp_path):
    """A database of Blazar's, filled by hand."""
    return database.Database(f'sqlite:///{tmp_path}/blazar.sqlite')


@pytest.fixture(scope='session')
def blazars_python():
    return home.blazar() / 'bin' / 'python'


@contextlib.contextmanager
def _running(python, url, hosts):
    """Run Blazar on a database; yield its URL."""
    known = {
        name: {'number': str(number), 'inventory': edge_.SLOT_TOTALS}
        for number, name in enumerate(hosts, 1)
    }
    process = subprocess.Popen(
        [
            python, pathlib.Path(__file__).with_name('blazar18.py'),
            url, json.dumps(known),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        port = process.stdout.readline().strip()
        assert port, 'Blazar does not start'
        yield f'http://127.0.0.1:{port}/v1'
        # It ends at the end of its input, with all that is under way.
        process.communicate(timeout=60)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


@pytest.fixture(params=servers.servers().values() or [None])
def real_blazar(request, blazars_python):
    """Blazar itself: `url`, of its database, and `running(*hosts)`.

    On SQLite it locks itself out. `ledger` is for us, on the same server.
    """
    if request.param is None:
        pytest.skip('no database server is named: see tests.services')
    with (
        servers.made(request.param) as url,
        servers.made(request.param) as ledger,
    ):
        yield SimpleNamespace(
            url=url,
            ledger=ledger,
            running=lambda *hosts: _running(
                blazars_python, url, hosts or HOSTS[:-1]
            ),
        )
