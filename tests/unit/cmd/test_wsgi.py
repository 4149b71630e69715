# SPDX-License-Identifier: Apache-2.0
"""`blazar_sched.wsgi:application`, as WSGI servers import and fork it."""

import contextlib
import importlib
import json
import logging
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

from falcon import testing
from keystonemiddleware import fixture as keystone_fixture
from oslo_config import cfg
import oslo_messaging
import pytest
import requests

from blazar_sched.conf import service as service_conf
from blazar_sched.service import assembly
from blazar_sched.service import database
from blazar_sched.service.api import server
from tests import serving
from tests.services import broker

SCRIPT = pathlib.Path(sys.executable).with_name('blazar-sched')
PATIENCE = 240
TOKEN = {'X-Auth-Token': 't1'}
# No broker listens there.
AWAY = 'rabbit://127.0.0.1:9/'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of the configuration, named by the environment."""
    folder = tmp_path / 'etc'
    folder.mkdir()
    monkeypatch.setenv('OS_BLAZAR_SCHED_CONFIG_DIR', str(folder))
    return folder


@pytest.fixture
def write(folder, tmp_path):
    """write(bus, auth) writes that configuration; returns its path."""

    def write(bus='fake://', auth='keystone'):
        path = folder / 'blazar-sched.conf'
        path.write_text(
            f'[DEFAULT]\ntransport_url = {bus}\nuse_json = true\n'
            f'[database]\nconnection = sqlite:///{tmp_path}/ledger.sqlite\n'
            f'[api]\nauth_strategy = {auth}\n'
            '[keystone_authtoken]\n'
            'www_authenticate_uri = http://keystone.example/\n'
        )
        return path

    return write


@pytest.fixture
def load(monkeypatch):
    """load() imports the module anew; returns the module."""

    def load():
        # The command line belongs to another program.
        monkeypatch.setattr(
            sys, 'argv', ['serve-this', '--config-file', '/nowhere', '--ours']
        )
        monkeypatch.delitem(sys.modules, 'blazar_sched.wsgi', raising=False)
        return importlib.import_module('blazar_sched.wsgi')

    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield load
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def tokens():
    """A Keystone that accepts `TOKEN`; the middleware is the real one."""
    with keystone_fixture.AuthTokenFixture() as fixture:
        fixture.add_token_data(
            't1', user_id='alice', project_id='p1', role_list=['reader']
        )
        yield fixture


def test_wsgi_application_is_the_api_of_a_manager(write, load, tokens):
    conf = service_conf.load(files=[str(write())])
    database.open_ledger(conf).upgrade()
    manager = assembly.start_manager(conf)
    try:
        api = testing.TestClient(load().application)
        assert api.get('/').status_code == 300
        assert api.get('/v1/leases').status_code == 401
        answer = api.get('/v1/leases', headers=TOKEN)
        assert answer.status_code == 200, answer.text
        assert answer.json == {'leases': []}
        assert api.get('/healthcheck').status_code == 200
    finally:
        manager.stop()


def test_there_is_nothing_yet_that_a_fork_would_lose(write, load, monkeypatch):
    opened = []
    monkeypatch.setattr(
        oslo_messaging, 'get_rpc_transport', lambda *_, **__: opened.append(1)
    )
    write(AWAY)
    threads = set(threading.enumerate())
    api = testing.TestClient(load().application)
    # The caller is identified without the manager.
    assert api.get('/').status_code == 300
    assert api.get('/v1/leases').status_code == 401
    assert opened == []
    assert set(threading.enumerate()) <= threads


def test_the_first_requests_share_one_client(write, load, monkeypatch):
    write()
    module = load()
    made = []
    all_ask = threading.Barrier(8)

    class Client:
        def __init__(self, bus, metrics):
            made.append(self)

        def connect(self):
            # No other request may have come this far.
            time.sleep(0.1)

        def check(self):
            all_ask.wait(PATIENCE)

    monkeypatch.setattr(module.rpc, 'transport', lambda conf, part: None)
    monkeypatch.setattr(module.rpc, 'Client', Client)
    monkeypatch.setattr(
        module.service_metrics, 'serve_workers', lambda conf: None
    )
    manager = module._Manager(None, None)
    asking = [threading.Thread(target=manager.check) for _ in range(8)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert len(made) == 1


def test_noauth_is_served_by_our_own_server_alone(write, load):
    write(auth='noauth')
    with pytest.raises(server.UnsafeAddress, match='noauth'):
        load()


def test_what_is_wrong_in_the_configuration_stops_the_server(write, load):
    path = write('nonsense')
    with pytest.raises(oslo_messaging.InvalidTransportURL):
        load()
    path.write_text('[api]\nauth_strategy = whatever\n')
    with pytest.raises(cfg.ConfigFileValueError, match='auth_strategy'):
        load()
    path.unlink()
    with pytest.raises(cfg.ConfigFilesNotFoundError, match=str(path)):
        load()


@pytest.mark.parametrize(('environment', 'paths'), [
    ({}, ['/etc/blazar-sched/blazar-sched.conf']),
    ({'DIR': '/srv/etc'}, ['/srv/etc/blazar-sched.conf']),
    (
        {'FILES': 'one.conf;/srv/two.conf'},
        ['/etc/blazar-sched/one.conf', '/srv/two.conf'],
    ),
    ({'DIR': '/srv', 'FILES': 'one.conf'}, ['/srv/one.conf']),
])
def test_the_environment_says_where_the_configuration_is(
    write, load, environment, paths
):
    write()
    named = {f'OS_BLAZAR_SCHED_CONFIG_{k}': v for k, v in environment.items()}
    assert load().config_files(named) == paths


@contextlib.contextmanager
def running(log, *command):
    with log.open('w') as file:
        process = subprocess.Popen(
            list(map(str, command)), stdout=file, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        finally:
            process.kill()


@pytest.fixture(
    params=['gunicorn', 'gunicorn --preload', 'uwsgi --lazy-apps', 'uwsgi']
)
def serve(request, tmp_path, port):
    """serve() runs a WSGI server; `.url`, `.log` and `.process`.

    The module is imported by each worker, or by their parent.
    """
    program, *options = request.param.split()
    # Workers have the tokens that `tokens` has.
    settings = tmp_path / 'settings.py'
    settings.write_text(
        'from keystonemiddleware import fixture\n'
        'known = fixture.AuthTokenFixture()\n'
        'known.setUp()\n'
        "known.add_token_data('t1', user_id='alice', project_id='p1',\n"
        "    role_list=['reader'])\n"
    )
    address = f'127.0.0.1:{port}'
    module = 'blazar_sched.wsgi:application'
    if program == 'uwsgi':
        pytest.importorskip('pyuwsgi', reason='pyuwsgi is not installed')
        command = [
            SCRIPT.with_name('uwsgi'), '--master', '--processes', 2,
            '--threads', 2, '--need-app', '--die-on-term', '--http-socket',
            address, '--import', settings, '--module', module, *options,
        ]
    else:
        pytest.importorskip('gunicorn')
        command = [
            sys.executable, '-m', 'gunicorn', '--config', settings,
            '--workers', 2, '--bind', address, *options, module,
        ]
    with contextlib.ExitStack() as stack:

        class Running:
            url = f'http://{address}'
            log = tmp_path / 'server.log'

            def __init__(self):
                self.process = stack.enter_context(running(self.log, *command))

            def get(self, path, **kwargs):
                """GET until a server listens."""
                deadline = time.monotonic() + PATIENCE
                while True:
                    try:
                        return requests.get(
                            f'{self.url}{path}', timeout=PATIENCE, **kwargs
                        )
                    except requests.ConnectionError:
                        assert time.monotonic() < deadline, (
                            self.log.read_text()
                        )
                        time.sleep(0.1)

            def answers(self, status):
                """Return the workers that have given this response to `get`.
                """
                return {
                    said['process']
                    for line in self.log.read_text().splitlines()
                    if line.startswith('{')
                    and re.search(
                        f"'/v1/leases': {status} ",
                        (said := json.loads(line))['message'],
                    )
                }

        yield Running


def test_a_wsgi_server_serves_it(write, serve):
    write(AWAY)
    api = serve()
    assert api.get('/').status_code == 300
    assert api.get('/v1/leases').status_code == 401
    assert api.get('/healthcheck').status_code == 503
    answer = api.get('/v1/leases', headers=TOKEN)
    assert answer.json()['error_name'] == 'Unavailable', answer.text
    api.process.send_signal(signal.SIGTERM)
    assert api.process.wait(PATIENCE) == 0


def test_a_wrong_configuration_stops_the_wsgi_server(write, serve):
    write('nonsense')
    process = serve().process
    assert process.wait(PATIENCE) not in (0, -signal.SIGTERM)


def test_prometheus_sees_all_workers_as_one(
    write, serve, tmp_path, monkeypatch
):
    folder = tmp_path / 'shared'
    folder.mkdir()
    monkeypatch.setenv('PROMETHEUS_MULTIPROC_DIR', str(folder))
    port = serving.free_port()
    config = write(AWAY)
    config.write_text(f'{config.read_text()}[metrics]\nport = {port}\n')
    api = serve()
    asked = 0
    deadline = time.monotonic() + PATIENCE
    while len(api.answers(503)) < 2:
        assert time.monotonic() < deadline
        # A worker shows the metrics from the first call of the manager on.
        assert api.get('/v1/leases', headers=TOKEN).status_code == 503
        asked += 1

    for _ in range(8):
        told = requests.get(f'http://127.0.0.1:{port}/metrics').text
        for line in (
            'blazar_sched_api_requests_total{method="GET",'
            f'route="/v1/leases",status="503"}} {asked}.0',
            f'blazar_sched_api_calls_total{{outcome="failed"}} {asked}.0',
        ):
            assert line in told
        assert told.count('\nblazar_sched_build_info{') == 1


@pytest.fixture
def bus(tmp_path_factory):
    """The transport_url of the broker."""
    if broker.named() is None:
        pytest.skip(f'{broker.VARIABLE} is not set: `make test-services`')
    with broker.turn(tmp_path_factory.getbasetemp().parent) as url:
        yield url


@pytest.mark.services
@pytest.mark.parametrize(
    'serve', ['gunicorn --preload', 'uwsgi'], indirect=True
)
def test_each_worker_has_its_own_way_to_the_manager(
    bus, write, serve, tmp_path
):
    config = write(bus)
    database.open_ledger(service_conf.load(files=[str(config)])).upgrade()
    log = tmp_path / 'manager.log'
    with running(log, SCRIPT, 'manager', '--config-file', config):
        api = serve()
        deadline = time.monotonic() + PATIENCE
        while api.get('/healthcheck').status_code != 200:
            assert time.monotonic() < deadline, api.log.read_text()
        while len(api.answers(200)) < 2:
            assert time.monotonic() < deadline, api.log.read_text()
            asking = [
                threading.Thread(
                    target=api.get, args=('/v1/leases',),
                    kwargs={'headers': TOKEN},
                )
                for _ in range(8)
            ]
            for thread in asking:
                thread.start()
            for thread in asking:
                thread.join()
        assert os.getpid() not in api.answers(200)
        # Each worker connects with its first request, and handles all of them.
        assert api.answers(500) == set()
