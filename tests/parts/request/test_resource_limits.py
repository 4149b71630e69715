# SPDX-License-Identifier: Apache-2.0
"""The limits on amounts of resource classes, for lease requests."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.request.lease_request import PRIORITIES
from tests.parts.limit.test_resource_limits import conf  # noqa: F401
from tests.parts.limit.test_resource_limits import DAY
from tests.parts.limit.test_resource_limits import GPU
from tests.parts.limit.test_resource_limits import gpus
from tests.parts.limit.test_resource_limits import HOUR
from tests.parts.limit.test_resource_limits import on  # noqa: F401
from tests.parts.limit.test_resource_limits import refused
from tests.parts.limit.test_resource_limits import world  # noqa: F401

LOW, NORMAL, HIGH = range(len(PRIORITIES))


@pytest.fixture
def ask(world, requests):  # noqa: F811
    def ask(reservation, **values):
        now = world.now
        return requests.create({
            'name': 'night-run', 'project_id': 'project', 'user_id': 'user',
            'reservations': [reservation], 'start': now + 7200,
            'latest_start': now + DAY, 'duration': 100,
            'wait_until': now + DAY, 'priority': NORMAL, **values,
        })

    return ask


def test_a_lease_request_waits_while_the_project_has_too_much(
    world, limit, on, requests, ask  # noqa: F811
):
    limit(max_resources_per_project={GPU: 4})
    lease = world.create(gpus(1), start=300, end=400)
    made = ask(on('b'))
    assert made['status'] == 'WAITING'
    world.leases.delete(lease.id, None)
    requests.step()
    assert requests.get(made['id'], None)['status'] == 'BOOKED'
    with refused(exception.MaxResources, '4', GPU):
        ask(gpus(1))


def test_a_lease_that_is_moved_may_be_beyond_the_limit(
    world, limit, on, ask  # noqa: F811
):
    """The lease reserves no more than before."""
    moved = ask(on('b'), flexible=True)
    assert moved['status'] == 'BOOKED'
    limit(
        max_resources_per_project={GPU: 3},
        max_resources_exempt_project_ids=['other'],
    )
    other = ask(
        on('b'), project_id='other', priority=HIGH,
        latest_start=world.now + 2 * HOUR, wait_until=world.now + HOUR,
    )
    assert other['status'] == 'BOOKED'
    lease = world.ledger.lease(moved['lease_id'])
    assert lease.start == world.ledger.lease(other['lease_id']).end
    world.check()
