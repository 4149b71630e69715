# SPDX-License-Identifier: Apache-2.0
"""A database of Blazar 18, made by Blazar or by hand, and a new ledger.

Nova, Placement and Neutron are stand-ins at the level of HTTP, with hosts of 8
VCPUs.
"""

import contextlib
import json
import pathlib
import subprocess
from types import SimpleNamespace

from blazarclient import client as blazarclient
from keystoneauth1 import session as keystone_session
from keystoneauth1 import token_endpoint
import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.parts.blazar.exporting.exporter import Exporter
from blazar_sched.parts.blazar.importing.importer import Importer
from blazar_sched.service.api import server
from blazar_sched.service.bus import rpc
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.manager.manager import Manager
from tests.cloud import home
from tests.parts.blazar import database
from tests.services import database as servers
from tests.standins.cloud import CloudApi
from tests.standins.neutron import NeutronApi
from tests.standins.placement import SLOT_TOTALS

# The last table is not one of Blazar's.
HOSTS = ('compute-1', 'compute-2', 'compute-3', 'compute-4')


def client(url, token='admin'):
    """Return python-blazarclient's library, as a user."""
    auth = token_endpoint.Token(url, token)
    return blazarclient.Client(
        '1', session=keystone_session.Session(auth=auth),
        service_type='reservation',
    )


@pytest.fixture
def ledger_url(tmp_path):
    return f'sqlite:///{tmp_path}/ledger.sqlite'


@pytest.fixture
def site(tmp_path, ledger_url):
    """The other services, and `manager()`: a manager that is not started."""
    file = tmp_path / 'blazar-sched.conf'
    file.write_text(
        '[DEFAULT]\ntransport_url = fake://\n'
        f'[database]\nconnection = {ledger_url}\n'
        '[enforcement]\nenabled_filters =\n'
        '[api]\nauth_strategy = noauth\nport = 0\n'
    )
    conf = service_conf.load(files=[str(file)])
    cloud = CloudApi(*HOSTS)
    neutron = NeutronApi()

    def manager():
        return Manager(
            conf, Nova(cloud), Placement(cloud),
            adapter={'neutron': neutron}.get,
        )

    manager().ledger.upgrade()
    return SimpleNamespace(
        conf=conf, cloud=cloud, neutron=neutron, manager=manager
    )


@pytest.fixture
def importer(site):
    return Importer(site.conf, site.manager().services)


@pytest.fixture
def exporter(site):
    return Exporter(site.conf, site.manager().services)


@pytest.fixture
def serve(site):
    """serve() -> the URL of the API; no events run behind it."""
    with contextlib.ExitStack() as stack:

        def serve():
            api = server.serve(site.conf, rpc.Local(site.manager().endpoint))
            stack.callback(api.stop)
            return f'http://127.0.0.1:{api.port}/v1'

        yield serve


@pytest.fixture
def blazar(tmp_path):
    """A database with the tables of Blazar, filled by hand."""
    return database.Database(f'sqlite:///{tmp_path}/blazar.sqlite')


@pytest.fixture(scope='session')
def blazars_python():
    return home.blazar() / 'bin' / 'python'


@contextlib.contextmanager
def _running(python, url, hosts):
    """Run Blazar on a database; yield its URL."""
    known = {
        name: {'number': str(number), 'inventory': SLOT_TOTALS}
        for number, name in enumerate(hosts, 1)
    }
    process = subprocess.Popen(
        [
            python, pathlib.Path(__file__).with_name('blazar18.py'),
            url, json.dumps(known),
        ],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        port = process.stdout.readline().strip()
        assert port, 'Blazar does not start'
        yield f'http://127.0.0.1:{port}/v1'
        # Blazar ends at the end of its input, with all its threads.
        process.communicate(timeout=60)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


@pytest.fixture(params=servers.servers().values() or [None])
def real_blazar(request, blazars_python):
    """Blazar itself: the `url` of its database, and `running(*hosts)`.

    On SQLite Blazar locks itself out. `ledger` is an empty database for
    blazar-sched on the same server.
    """
    if request.param is None:
        pytest.skip('no database server is named: see tests.services')
    with (
        servers.made(request.param) as url,
        servers.made(request.param) as ledger,
    ):
        yield SimpleNamespace(
            url=url, ledger=ledger,
            running=lambda *hosts: _running(
                blazars_python, url, hosts or HOSTS[:-1]
            ),
        )
