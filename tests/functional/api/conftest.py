# SPDX-License-Identifier: Apache-2.0
"""What tests of the API have in common."""

import pytest


@pytest.fixture
def api(service):
    """A cloud with two hosts of 16 VCPUs, the second one for p1 alone."""
    service.manager.flavors.sync()
    for host in (
        {'name': 'compute-1', 'rack': '7'},
        {'name': 'compute-2', 'projects': ['p1']},
    ):
        answer = service.api.post('/v1/os-hosts', json=host)
        assert answer.status_code == 201, answer.text
    return service.api
