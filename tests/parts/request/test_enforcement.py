# SPDX-License-Identifier: Apache-2.0
"""The limits of enforcement filters on lease requests."""

import pytest

from blazar_sched.parts.limit.exception import MaxHosts
from tests.functional.manager import test_enforcement
from tests.functional.manager.test_enforcement import world  # noqa: F401


@pytest.fixture
def conf(conf):
    conf.set_override(
        'enabled_filters', [*test_enforcement.LIMITS, 'MaxSizeFilter'],
        'enforcement',
    )
    return conf


@pytest.fixture
def ask(world, requests, whole):  # noqa: F811
    """ask(count, start=0, latest=900) -> a lease request for whole hosts."""

    def ask(count, start=0, latest=900):
        return requests.create({
            'name': 'later', 'project_id': 'project', 'user_id': 'user',
            'reservations': [whole(count, count)],
            'start': world.now + start, 'latest_start': world.now + latest,
            'duration': 60, 'wait_until': world.now + latest, 'priority': 1,
        })

    return ask


def test_lease_requests_that_wait_count_together(
    world, whole, limit, requests, ask  # noqa: F811
):
    """Each keeps a window free of the other requests."""
    limit(max_hosts_per_project=2, max_size_exempt_project_ids=['other'])
    hosts = len(world.ledger.hosts())
    world.create(whole(hosts, hosts), project_id='other', start=0, end=9000)
    first = ask(2, 100, 200)
    assert first['status'] == 'WAITING'
    with pytest.raises(MaxHosts):
        ask(1, 100, 200)
    # A lease does not wait for what may never be booked.
    world.create(whole(), start=9100, end=9200)
    requests.delete(first['id'], 'project')
    assert ask(1, 100, 200)['status'] == 'WAITING'


def test_a_request_that_has_waited_may_start_at_once(
    world, limit, whole, requests, ask  # noqa: F811
):
    limit(min_start_lead=100)
    world.create(whole(4, 4), start=100, end=500)
    made = ask(4)
    booked = {}
    while not booked and world.now < made['latest_start']:
        world.run(10)
        requests.step()
        booked = {
            lease.start - made['created_at']
            for lease in world.ledger.leases() if lease.name == 'later'
        }
    [lead] = booked
    assert lead >= 100


@pytest.mark.parametrize('exempt, lead', [([], 100), (['project'], 0)])
def test_a_request_is_booked_ahead_of_its_start(
    world, limit, ask, exempt, lead  # noqa: F811
):
    limit(min_start_lead=100, max_horizon_exempt_project_ids=exempt)
    made = ask(1)
    assert made['status'] == 'BOOKED'
    assert world.ledger.lease(made['lease_id']).start == world.now + lead
