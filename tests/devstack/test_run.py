# SPDX-License-Identifier: Apache-2.0
"""The files of stack.sh are read by the programs themselves."""

import contextlib
import subprocess
import time

import pytest
import requests

from tests.devstack.node import PROGRAMS
from tests.services import broker
from tests.services import database

PATIENCE = 240


@pytest.fixture
def new_site(new_node, port):
    """new_site(database, bus) -> a stacked Node with the real programs."""

    def make(database_url, bus):
        node = new_node(
            programs=PROGRAMS, DATABASE_URL=database_url, TRANSPORT_URL=bus,
            BLAZAR_SCHED_PORT=port, SERVICE_LISTEN_ADDRESS='127.0.0.1',
        )
        node.stack()
        return node

    return make


@contextlib.contextmanager
def running(node, *commands):
    """Run the commands; yield the processes and their logs."""
    with contextlib.ExitStack() as stack:
        processes = {}
        for number, command in enumerate(commands):
            log = node.state / f'{number}.log'
            with log.open('wb') as file:
                process = subprocess.Popen(
                    command, stdout=file, stderr=subprocess.STDOUT
                )
            stack.callback(process.wait)
            stack.callback(process.kill)
            processes[log] = process
        yield processes


def get(processes, url, status):
    """GET until the response has `status`."""
    deadline = time.monotonic() + PATIENCE
    answer = None
    while answer is None or answer.status_code != status:
        for log, process in processes.items():
            assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, answer and answer.text
        with contextlib.suppress(requests.ConnectionError):
            answer = requests.get(url, timeout=PATIENCE)
        time.sleep(0.1)
    return answer


def test_tables_are_created_and_the_service_runs(new_site, tmp_path, port):
    """Without a broker `serve` runs all in one process."""
    node = new_site(f'sqlite:///{tmp_path}/ledger.sqlite', 'fake://')
    program, part, *arguments = node.commands()['blazar-sched-api']
    assert part == 'api'

    checked = subprocess.run(
        [program, 'db', 'check', *arguments], capture_output=True, text=True
    )
    said = checked.stdout
    assert said.endswith('\n0 inconsistencies found\n'), checked.stderr
    assert checked.stderr == ''

    url = f'http://127.0.0.1:{port}'
    with running(node, [program, 'serve', *arguments]) as processes:
        # These URLs need no token, so Keystone, which is missing here, is not
        # called.
        versions = get(processes, f'{url}/', 300).json()['versions']
        assert versions[0]['id'] == 'v1.0'
        get(processes, f'{url}/healthcheck', 200)
        get(processes, f'{url}/v1/leases', 401)


@pytest.fixture
def bus(tmp_path_factory):
    if broker.named() is None:
        pytest.skip(f'{broker.VARIABLE} is not set: see `make test-services`')
    with broker.turn(tmp_path_factory.getbasetemp().parent) as url:
        yield url


# The end of DevStack's database_connection_url.
@pytest.fixture(
    params=[('mysql', 'charset=utf8'), ('postgresql', 'client_encoding=utf8')],
    ids=lambda param: param[0]
)
def database_url(request):
    engine, query = request.param
    server = database.servers().get(engine)
    if server is None:
        pytest.skip(f'{database.VARIABLE} names no {engine}')
    with database.made(server) as url:
        yield f'{url}?{query}'


@pytest.mark.services
def test_api_and_manager_find_each_other(bus, database_url, new_site, port):
    node = new_site(database_url, bus)
    with running(node, *node.commands().values()) as processes:
        # The URL that stack.sh polls.
        [waiting] = [
            call for call in node.lines('calls') if '/healthcheck' in call
        ]
        [url] = [word for word in waiting.split() if '://' in word]
        # Apache, which is missing here, forwards to this port.
        _, path = url.split('/reservation')
        get(processes, f'http://127.0.0.1:{port}{path}', 200)
        for process in processes.values():
            process.terminate()
        for log, process in processes.items():
            assert process.wait(PATIENCE) == 0, log.read_text()
