# SPDX-License-Identifier: Apache-2.0
"""Offers over REST, with a manager that only answers."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.service.api import deploy
from tests import loopback
from tests.unit.api.conftest import *  # noqa: F401, F403


@pytest.mark.parametrize('sent, meant', [
    ('True', True), ('1', True), (1, True), ('false', False), (0, False),
    ('', None), ('None', None), (None, None),
])
def test_alternatives_are_read_as_reservations_are(
    api, manager, answers, sent, meant
):
    """In a search; see test_lease for other requests."""
    manager.answers = answers
    instance = {
        'resource_type': 'virtual:instance', 'vcpus': '1', 'memory_mb': 1,
        'disk_gb': '0', 'amount': 1, 'affinity': sent,
        'resource_properties': None,
    }
    answer = api.post('/v1/offers', json={
        'duration': '6h', 'reservations': [instance],
        'alternatives': [[instance], [instance, instance]],
    }, version='1.1')
    assert answer.status_code == 200, answer.text
    [(_, sent_on)] = manager.calls
    first, *others = sent_on['values']['alternatives']
    [read] = first
    assert read['affinity'] is meant
    assert read['vcpus'] == 1
    assert others == [[read], [read, read]]


@pytest.mark.parametrize('projects', [None, [], ['p9']])
def test_an_operator_can_forbid_sharing(conf, manager, tmp_path, projects):
    file = tmp_path / 'policy.yaml'
    file.write_text('"blazar:leases:share": "role:admin"\n')
    deploy.deploy(conf, manager)  # registers [oslo_policy]
    conf.set_override('policy_file', str(file), 'oslo_policy')
    api = loopback.client(deploy.deploy(conf, manager))
    # The manager refuses a request that the policy allows.
    manager.answers['hold_offer'] = exception.LeaseNotFound('no lease')
    asked = {} if projects is None else {'projects': projects}
    one = {'resource_type': 'physical:host', 'min': 1, 'max': 1, **asked}
    for user, status in (
        ('alice:p1', 403 if projects else 404), ('admin:p1', 404)
    ):
        headers = {
            'X-Auth-Token': user, 'OpenStack-API-Version': 'reservation 1.1',
        }
        held = api.post('/v1/offers', headers=headers, json={
            'reservations': [one], 'duration': '1h', 'hold': '1m',
        })
        assert held.status_code == status
