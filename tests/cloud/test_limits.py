# SPDX-License-Identifier: Apache-2.0
"""Unified limits of Keystone, in place of the options of the filters."""

import datetime

import pytest

from tests.cloud import person
from tests.cloud import polling

LEASES = 'max_leases_per_project'
VCPUS = 'max_resources_per_project:VCPU'


@pytest.fixture
def set_limits(admin):
    """Set the default of a limit, and the limit of a project."""
    identity, made = admin.sdk.identity, []
    service = identity.find_service('blazar')

    def set_limits(name, default, **projects):
        of = {'service_id': service.id, 'resource_name': name}
        made.append((
            identity.delete_registered_limit,
            identity.create_registered_limit(**of, default_limit=default),
        ))
        for project, limit in projects.items():
            made.append((identity.delete_limit, identity.create_limit(
                **of, project_id=identity.find_project(project).id,
                resource_limit=limit,
            )))

    yield set_limits
    for delete, limit in reversed(made):
        delete(limit)
    polling.until(lambda: limits(admin)[LEASES] == -1)


def limits(who):
    """Return the limits that the service shows to a project."""
    return {
        each['name'] + (f":{each['unit']}" if 'resources' in each['name']
                        else ''): each['limit']
        for each in who.get('limits', '1.1')['limits']
    }


def test_the_limits_of_keystone_apply_to_their_projects(
    set_limits, register, admin, demo, alt
):
    register('compute-1')
    set_limits(LEASES, 1, demo=2)
    set_limits(VCPUS, 8)
    polling.until(lambda: VCPUS in limits(demo))
    assert (limits(demo)[LEASES], limits(alt)[LEASES]) == (2, 1)

    later = datetime.timedelta(days=1)
    for who, most in (demo, 2), (alt, 1):
        for _ in range(most):
            who.book(person.instances(1), start=later)
        with pytest.raises(person.Refused, match=f'{most} leases at most'):
            who.book(person.instances(1), start=later)
        lease = who.get('leases')['leases'][0]
        with pytest.raises(person.Refused, match='at most 8 of VCPU'):
            who.update_lease(lease, reservations=[
                {'id': lease['reservations'][0]['id'], 'amount': 5},
            ])
