# SPDX-License-Identifier: Apache-2.0
"""The API tests of Blazar's own Tempest plugin, with the whole service.

The files are read from the installed plugin, which is not imported: the plugin
needs Tempest, and Tempest a cloud.
"""

import importlib.util
import json
import pathlib
import unittest
from wsgiref import util

import pytest

from blazar_sched.service.api import deploy

driver = pytest.importorskip('gabbi.driver', reason='gabbi is not installed')

PLUGIN = importlib.util.find_spec('blazar_tempest_plugin')
STEPS = 22

pytestmark = pytest.mark.skipif(
    PLUGIN is None, reason='blazar-tempest-plugin is not installed'
)


def nova(environ, start_response):
    """Respond with the hypervisors."""
    start_response('200 OK', [('Content-Type', 'application/json')])
    hypervisors = [{'hypervisor_hostname': 'compute-1'}]
    return [json.dumps({'hypervisors': hypervisors}).encode()]


@pytest.mark.row('F88')
def test_every_step_passes(service, monkeypatch):
    reservation = deploy.deploy(service.conf, service.bus)

    def endpoints(environ, start_response):
        first = util.shift_path_info(environ)
        # The interceptor invents a host name.
        environ['HTTP_HOST'] = 'localhost'
        answering = {'reservation': reservation, 'compute': nova}[first]
        return answering(environ, start_response)

    # The fixture of the plugin, which is left out, reads this from Keystone.
    monkeypatch.setenv('OS_TOKEN', 'admin')
    [folder] = PLUGIN.submodule_search_locations
    suite = driver.build_tests(
        pathlib.Path(folder) / 'tests/api/gabbits', unittest.defaultTestLoader,
        intercept=lambda: endpoints, test_loader_name='blazar',
    )
    result = unittest.TestResult()
    suite.run(result)
    failed = [text for _, text in result.failures + result.errors]
    assert not failed, '\n'.join(failed)
    assert not result.skipped
    assert result.testsRun == STEPS
