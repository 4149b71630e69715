# SPDX-License-Identifier: Apache-2.0
"""Log lines have the request's context, and cannot be forged."""

import io
import json
import logging
import pathlib
import subprocess
import sys
from urllib import parse

from oslo_context import context
from oslo_context import fixture
from oslo_log import formatters
import oslo_messaging
import pytest
import requests

from blazar_sched.conf import service as service_conf
from blazar_sched.service import logs
from blazar_sched.service.api import deploy
from blazar_sched.service.bus import rpc
from tests import loopback
from tests import serving
from tests.waiting import PATIENCE
from tests.waiting import until

SCRIPT = pathlib.Path(sys.executable).with_name('blazar-sched')
GLOBAL = 'req-11111111-1111-4111-8111-111111111111'
LEASE = {
    'name': 'night-run', 'start_date': '2030-01-01 00:00',
    'end_date': '2030-01-01 01:00', 'reservations': [],
}


@pytest.fixture
def log(tmp_path, port):
    """The log of a service that responds on `port`."""
    config = serving.write_config(
        tmp_path, port, '[DEFAULT]\nuse_json = true\n'
    )
    log = tmp_path / 'log'
    with log.open('w') as file:
        process = subprocess.Popen(
            [SCRIPT, 'serve', '--config-file', config], stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        until(lambda: 'listens on' in log.read_text(), log.read_text)
        yield log
    finally:
        process.terminate()
        process.wait(PATIENCE)


def test_each_request_can_be_found_by_its_id_and_its_lease(log, port):
    def ask(method, path, **kwargs):
        return requests.request(
            method, f'http://127.0.0.1:{port}{path}',
            headers={
                'X-Auth-Token': 'alice:p1', 'X-OpenStack-Request-ID': GLOBAL,
            },
            timeout=PATIENCE, **kwargs
        )

    created = ask('POST', '/v1/leases', json=LEASE)
    assert created.status_code == 201, created.text
    lease = created.json()['lease']['id']
    shown = ask('GET', f'/v1/leases/{lease}')
    refused = ask('GET', '/v1/os-hosts')
    nowhere = requests.get(
        f'http://127.0.0.1:{port}/v1/leases', headers={'X-Auth-Token': '?'},
        timeout=PATIENCE,
    )
    # The whole log, not these lines alone, is parsed by programs.
    lines = list(map(json.loads, log.read_text().splitlines()))
    assert not any(
        line['context'].get('request_id')
        for line in lines
        if 'listens on' in line['message']
    )

    def line_of(answer):
        id_ = answer.headers['X-OpenStack-Request-ID']
        [line] = [
            x for x in lines
            if x['context'].get('request_id') == id_
            and ' asked ' in x['message']
        ]
        assert f' {answer.status_code} ' in line['message']
        return line

    for answer in (created, shown):
        context = line_of(answer)['context']
        assert context['resource_uuid'] == lease
        assert context['global_request_id'] == GLOBAL
        assert (context['user'], context['project_id']) == ('alice', 'p1')
    assert line_of(refused)['context']['resource_uuid'] is None
    # A thread keeps nothing of earlier requests.
    assert line_of(nowhere)['context']['user'] is None
    assert line_of(nowhere)['context']['global_request_id'] is None


class Endpoint:
    """An end point that logs a line in each call."""

    target = oslo_messaging.Target(version=rpc.VERSION)

    def work(self, ctxt, number):
        logging.getLogger(__name__).warning('number %d', number)


def test_a_manager_elsewhere_logs_whose_request_it_is(tmp_path):
    path = tmp_path / 'blazar-sched.conf'
    path.write_text('[DEFAULT]\ntransport_url = fake://\n')
    conf = service_conf.load(files=[str(path)])
    lines = []

    class Handler(logging.Handler):
        def emit(self, record):
            lines.append(json.loads(self.format(record)))

    handler = Handler()
    handler.setFormatter(formatters.JSONFormatter())
    logger = logging.getLogger(__name__)
    logger.addHandler(handler)
    server = rpc.Server(rpc.transport(conf), [Endpoint()])
    server.start()
    try:
        client = rpc.Client(rpc.transport(conf))
        for number in range(3):
            client.call(
                {
                    'request_id': f'req-{number}', 'global_request_id': GLOBAL,
                    'resource_uuid': 'lease-1', 'user': 'alice',
                    'project_id': 'p1',
                },
                'work', number=number
            )
        # A replica that pulls makes no user's request.
        client.call({}, 'work', number=3)
    finally:
        server.stop()
        logger.removeHandler(handler)
    said = [line['context'] for line in lines]
    assert [x['request_id'] for x in said[:3]] == ['req-0', 'req-1', 'req-2']
    assert {x['global_request_id'] for x in said[:3]} == {GLOBAL}
    assert {x['resource_uuid'] for x in said[:3]} == {'lease-1'}
    assert (said[3]['user'], said[3]['resource_uuid']) == (None, None)
    assert said[3]['request_id'] not in {'req-0', 'req-1', 'req-2'}


# A line end, an escape sequence, a character that reverses text, and others.
HOSTILE = ['\n', '\r', '\x1b[2J', '\x1b]0;t\x07', '\x9b2J', '\u202e', '\u2028']


@pytest.fixture
def written(tmp_path):
    """written() returns the log lines, in the configured format."""
    path = tmp_path / 'log'
    conf = service_conf.load(files=[])
    conf.set_override('log_file', str(path))
    conf.set_override('auth_strategy', 'noauth', 'api')
    logs.setup(conf)
    with fixture.ClearRequestContext():
        yield conf, path.read_text


class Manager:
    """A manager that returns nothing, and logs each call."""

    def call(self, ctxt, method, **kwargs):
        context.RequestContext.from_dict(ctxt)
        logging.getLogger(__name__).warning('asked for %s', kwargs)
        raise ValueError(f'fault about {kwargs}')


@pytest.mark.parametrize('text', HOSTILE)
@pytest.mark.parametrize('path', [
    '/v1/leases/x{}', '/v1/os-hosts/7{}', '/v1/os-hosts/properties/{}',
    '/nowhere{}',
])
def test_no_path_forges_a_log_line(written, path, text):
    conf, read = written
    api = loopback.client(deploy.deploy(conf, Manager()))
    forged = parse.quote(f']{text}FORGED')
    for method in ('GET', 'PATCH', 'DELETE'):
        api.simulate_request(
            method, path.format(forged),
            json={'private': True} if method == 'PATCH' else None,
        )
    said = read()
    assert 'FORGED' in said
    assert all(line.isprintable() for line in said.split('\n'))
    assert not any(line.startswith('FORGED') for line in said.split('\n'))


@pytest.mark.parametrize('text', HOSTILE)
def test_no_text_of_a_user_forges_a_log_line(written, text):
    _, read = written
    logger = logging.getLogger(__name__)
    hostile = f'night{text}FORGED'
    context.RequestContext(
        user_id='u', project_id='p', user_name=hostile, resource_uuid=hostile
    )
    logger.warning(f'lease {hostile}')
    logger.warning('lease %s', hostile)
    logger.warning('lease %(name)s', {'name': hostile})
    try:
        raise ValueError(hostile)
    except ValueError:
        logger.exception('%s failed', hostile)
    said = read()
    assert said.count('FORGED') >= 7
    for line in said.rstrip('\n').split('\n'):
        assert line.isprintable()
        # Lines of a traceback have the prefix of oslo.log, too.
        assert line.startswith('20')


def test_with_oslos_own_formatter_a_line_is_forged():
    """The control of the test above."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        formatters.ContextFormatter(config=service_conf.load([]))
    )
    handler.emit(
        logging.LogRecord('x', 30, 'x', 1, 'lease %s', ('a\nFORGED',), None)
    )
    assert '\nFORGED' in stream.getvalue()


def test_colors_stay(written):
    conf, _ = written
    for kind in ('default', 'context'):
        conf.set_override(
            f'logging_{kind}_format_string', '\x1b[1m%(color)s%(message)s'
        )
    formatter = logs.Formatter(config=conf)
    record = logging.LogRecord('x', 30, 'x', 1, 'a\x1bb', (), None)
    record.color = '\x1b[32m'
    assert formatter.format(record) == '\x1b[1m\x1b[32ma\\x1bb'
