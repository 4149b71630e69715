# SPDX-License-Identifier: Apache-2.0
"""The port for Prometheus, as `blazar-sched serve` opens it."""

import pathlib
import subprocess
import sys

import pytest

from tests import serving
from tests.waiting import response

SCRIPT = pathlib.Path(sys.executable).with_name('blazar-sched')


@pytest.fixture
def metrics_port(port):
    # The free port of the API may be returned again.
    while (found := serving.free_port()) == port:
        pass
    return found


@pytest.fixture
def served(tmp_path, port, metrics_port):
    path = serving.write_config(
        tmp_path, port, f'[metrics]\nport = {metrics_port}\n'
    )
    with subprocess.Popen(
        [SCRIPT, 'serve', '--config-file', path], stderr=subprocess.DEVNULL
    ) as process:
        yield process
        process.terminate()


def test_serve_tells_of_its_api_and_of_its_manager(served, port, metrics_port):
    api, metrics = (
        f'http://127.0.0.1:{each}' for each in (port, metrics_port)
    )
    assert response(served, f'{api}/v1/leases').status_code == 200
    answer = response(served, f'{metrics}/metrics')
    assert answer.status_code == 200
    told = answer.text
    assert 'route="/v1/leases",status="200"} 1.0' in told
    assert 'method="list_leases",outcome="answered"' in told
    assert 'blazar_sched_manager_revision ' in told
    # The API does not expose the metrics either.
    assert response(served, f'{api}/metrics').status_code == 404
