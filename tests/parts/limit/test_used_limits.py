# SPDX-License-Identifier: Apache-2.0
"""What is used of the limits of a project, by the real manager."""

import pytest

from tests import tables
from tests.functional.api.test_used_limits import ADMIN
from tests.functional.api.test_used_limits import ALICE
from tests.functional.api.test_used_limits import BOB
from tests.functional.api.test_used_limits import book
from tests.functional.api.test_used_limits import HOST
from tests.functional.api.test_used_limits import limits
from tests.functional.api.test_used_limits import SMALL


@pytest.fixture
def options():
    return (
        '[enforcement]\n'
        'enabled_filters = MaxLeaseDurationFilter,MaxHorizonFilter,'
        'MaxLeasesFilter,MaxSizeFilter,MaxResourcesFilter\n'
        'max_lease_duration = 86400\n'
        'max_leases_per_project = 2\n'
        'max_instances_per_project = 5\n'
        'max_resources_per_lease = DISK_GB:1000\n'
        'max_resources_per_project = VCPU:20\n'
        'resource_weights = VCPU:0.5\n'
        'max_weight_hours_per_project = 60\n'
        'max_size_exempt_project_ids = p1\n'
    )


@pytest.mark.row('F76')
def test_every_filter_tells_its_figures(api):
    # The external service has none.
    assert limits(api, BOB) == {
        ('max_lease_duration', 'seconds'): (86400, None),
        ('min_start_lead', 'seconds'): (0, None),
        ('max_start_horizon', 'seconds'): (-1, None),
        ('max_end_horizon', 'seconds'): (-1, None),
        ('max_leases_per_project', 'leases'): (2, 0),
        ('max_hosts_per_lease', 'hosts'): (-1, None),
        ('max_instances_per_lease', 'instances'): (-1, None),
        ('max_hosts_per_project', 'hosts'): (-1, 0),
        ('max_instances_per_project', 'instances'): (5, 0),
        ('max_resources_per_lease', 'DISK_GB'): (1000, None),
        ('max_resources_per_project', 'VCPU'): (20, 0),
        ('max_percent_per_project', 'percent'): (-1, None),
        ('max_weight_per_lease', 'weight'): (-1, None),
        ('max_weight_per_project', 'weight'): (-1, 0),
        ('max_weight_hours_per_project', 'weight x hours'): (60, 0),
        **{
            (name, unit): (most, 0)
            for unit, name, most in tables.of('LIMITS')
        },
    }


def test_what_is_used_is_what_the_next_lease_is_refused_by(api):
    """Of p1: 3 VCPU x 0.5 x 1 h, then a host with 16 VCPU for 7 h."""
    lease = book(api, ALICE, 1, {**SMALL, 'amount': 1}).json['lease']
    assert book(api, ALICE, 7, HOST).status_code == 201
    book(api, BOB, 1, SMALL)
    found = limits(api)
    vcpus = found['max_resources_per_project', 'VCPU']
    assert vcpus == (20, 18)
    assert found['max_weight_per_project', 'weight'] == (-1, 9)
    assert found['max_weight_hours_per_project', 'weight x hours'] == (60, 57)
    assert found['max_leases_per_project', 'leases'] == (2, 2)
    assert found['max_hosts_per_project', 'hosts'] == (-1, 1)
    assert book(api, ALICE, 1, SMALL).json['error_name'] == 'MaxLeases'
    api.simulate_delete(f'/v1/leases/{lease["id"]}', headers=ALICE)
    found = limits(api)
    assert found['max_leases_per_project', 'leases'] == (2, 1)
    assert found['max_resources_per_project', 'VCPU'] == (20, 16)
    # Four VCPUs are left, and not one more.
    refused = book(api, ALICE, 1, {**SMALL, 'amount': 3})
    assert refused.json['error_name'] == 'MaxResources'
    assert book(api, ALICE, 1, {**SMALL, 'amount': 2}).status_code == 201


def test_a_held_offer_counts(api):
    answer = api.simulate_post('/v1/offers', headers=ALICE, json={
        'reservations': [HOST], 'duration': '1h', 'hold': '5m',
        'start_date': '2030-01-01 00:00',
    })
    assert answer.status_code == 200, answer.text
    assert limits(api)['max_leases_per_project', 'leases'] == (2, 1)


def test_only_an_administrator_may_name_a_project(api):
    book(api, ALICE, 1, SMALL)
    key = 'max_leases_per_project', 'leases'
    assert limits(api, ADMIN, project_id='p1')[key] == (2, 1)
    assert limits(api, ADMIN)[key] == (2, 0)
    assert limits(api, BOB, project_id='p1')[key] == (2, 0)
    assert limits(api, ADMIN, project_id="x' OR 1=1 --")[key] == (2, 0)
    for wrong in ('', 'x' * 256):
        answer = api.simulate_get(
            '/v1/limits', headers=ADMIN, query_string=f'project_id={wrong}'
        )
        assert answer.status_code == 400
        assert answer.json['error_message'].startswith('project_id')
