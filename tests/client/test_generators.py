# SPDX-License-Identifier: Apache-2.0
"""Clients that generators of others make of the OpenAPI document."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from blazar_sched.service.api import microversion
from blazar_sched.service.api import openapi
from blazar_sched.service.api import routes
from tests import npm

PROGRAMS = pathlib.Path(__file__).parent / 'generated'
PACKAGES = '@hey-api/openapi-ts@0.95.0 @types/node@22 typescript@5.9'
COMPILE = (
    '--strict --module commonjs --moduleResolution node10 --target es2022 '
    '--lib es2022,dom,dom.iterable --outDir js book.ts'
)

pytestmark = pytest.mark.more


def run(*command, **options):
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False,
        **options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def document(tmp_path):
    made = openapi.document(routes.ROUTES, microversion.KNOWN[-1])
    path = tmp_path / 'openapi.json'
    path.write_text(json.dumps(made))
    return path


@pytest.fixture
def url(endpoint, connect):
    """The URL of a service with a host."""
    connect().reservation.create_host(name='compute-1')
    return endpoint.removesuffix('/v1')


def check(booked):
    """A lease was booked, listed and deleted, and another one refused."""
    refusal = 'NotEnoughHostsAvailable'
    assert json.loads(booked) == ['PENDING', ['run'], 0, refusal]


@pytest.mark.skipif(
    importlib.util.find_spec('openapi_python_client') is None,
    reason='openapi-python-client is not installed',
)
def test_python(document, url, tmp_path):
    made = tmp_path / 'made'
    said = run(
        sys.executable, '-m', 'openapi_python_client', 'generate',
        '--meta', 'none', '--path', document,
        '--output-path', made / 'reservations_client',
    )
    assert 'WARNING' not in said
    calls = [
        path for path in (made / 'reservations_client/api').rglob('*.py')
        if path.name != '__init__.py'
    ]
    assert len(calls) == len(routes.ROUTES)
    check(run(
        sys.executable, PROGRAMS / 'book.py', url,
        env={**os.environ, 'PYTHONPATH': str(made)},
    ))


@pytest.mark.skipif(not shutil.which('npm'), reason='npm is not installed')
def test_typescript(document, url, tmp_path):
    assert npm.install('npm', tmp_path, *PACKAGES.split())
    tools = tmp_path / 'node_modules/.bin'
    run(
        tools / 'openapi-ts', '-i', document, '-o', 'gen',
        '-c', '@hey-api/client-fetch', cwd=tmp_path,
    )
    made = (tmp_path / 'gen/sdk.gen.ts').read_text()
    calls = re.findall('^export const', made, re.M)
    assert len(calls) == len(routes.ROUTES)
    shutil.copy(PROGRAMS / 'book.ts', tmp_path)
    run(tools / 'tsc', *COMPILE.split(), cwd=tmp_path)
    check(run('node', tmp_path / 'js/book.js', url))
