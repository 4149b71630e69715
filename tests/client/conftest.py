# SPDX-License-Identifier: Apache-2.0
"""Blazar's own client, unmodified, and the client of this project.

Both have a library, and commands of `openstack`; Blazar's has the program
`blazar` too. The tests use a real HTTP server on loopback, with the whole
service.
"""

import json
import os
import pathlib
import re

from blazarclient import client as blazarclient
from keystoneauth1 import session as keystone_session
from keystoneauth1 import token_endpoint
from openstack import connection
import pytest

from blazar_sched.service.api import routes
from blazar_sched.service.api import server
import blazar_sched_client
from tests import programs
from tests.functional.conftest import options  # noqa: F401
from tests.functional.conftest import service  # noqa: F401

# The name in each program of the command 'reservation lease set'.
PROGRAMS = {
    'blazar': {
        'prefix': ['blazar'],
        'join': '-',
        'names': {'lease set': 'lease update', 'host set': 'host update'},
    },
    'openstack': {
        'prefix': ['openstack', 'reservation'],
        'join': ' ',
        'names': {},
    },
}
# Every operation of the OpenAPI document.
OPERATIONS = {f'{route.method} {route.path}' for route in routes.ROUTES}
DOC = pathlib.Path(__file__).parents[2] / 'doc' / 'source'
# The operations that need no method and no command: the guide has the reasons.
NEEDLESS = set(re.findall(
    r'\* - ``([A-Z]+ /.*)``\n', (DOC / 'user' / 'client.rst').read_text()
))


def operation(method, path):
    """Return the operation of a request."""
    fitting = [
        known for known, asked in (
            (each, path.split('/')) for each in OPERATIONS
        )
        if known.startswith(f'{method} ')
        and len(known.split('/')) == len(asked)
        and all(one.startswith('{') or one == other for one, other in zip(
            known.split('/')[1:], asked[1:], strict=True
        ))
    ]
    # A path without a variable takes precedence.
    return min(fitting, key=lambda known: known.count('{'))


@pytest.fixture
def endpoint(service):  # noqa: F811
    running = server.serve(service.conf, service.bus)
    yield f'http://127.0.0.1:{running.port}/v1'
    running.stop()


@pytest.fixture
def login(endpoint):
    """Return a library client for a token."""

    def make(token):
        auth = token_endpoint.Token(endpoint, token)
        return blazarclient.Client(
            '1', session=keystone_session.Session(auth=auth),
            service_type='reservation',
        )

    return make


@pytest.fixture
def connect(endpoint):
    """Return the SDK's connection of the user of a token."""

    def make(token='admin', **more):
        auth = token_endpoint.Token(endpoint, token)
        conn = connection.Connection(
            session=keystone_session.Session(auth=auth), **more
        )
        blazar_sched_client.load(conn)
        return conn

    return make


class Shell:
    """One of the two programs, run by the user of a token."""

    def __init__(self, program, endpoint, home, run=programs.run, **environ):
        self.program = program
        self._run = run
        self._program = PROGRAMS[program]
        self._environ = {
            'PATH': os.environ['PATH'],
            'HOME': str(home),
            'LANG': 'C.UTF-8',
            # The variables that the demonstration prints.
            'OS_AUTH_TYPE': 'admin_token',
            'OS_ENDPOINT': endpoint,
            'OS_TOKEN': 'admin',
            **environ,
        }

    def run(self, noun, verb, *arguments):
        name = f'{noun} {verb}'
        name = self._program['names'].get(name, name)
        name = name.replace(' ', self._program['join'])
        command = [*self._program['prefix'], *name.split(), *arguments]
        return self._run(command, self._environ)

    def do(self, *words):
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def read(self, *words):
        shown = self.do(*words, '-f', 'json')
        # The create commands print a line before the created object.
        return json.loads(shown[min(
            shown.index(c) for c in '{[' if c in shown
        ):])


@pytest.fixture(params=PROGRAMS)
def shell(request, endpoint, tmp_path):
    return Shell(request.param, endpoint, tmp_path)
