# SPDX-License-Identifier: Apache-2.0
"""What a request for a lease costs the rest of the cloud."""

from collections import Counter
import datetime
import pathlib

import pytest

from tests.cloud import person

SERVICES = ('keystone', 'neutron', 'nova', 'placement')


@pytest.fixture
def calls(description):
    """calls() counts the calls of our processes since the last time."""
    logs = {
        name: pathlib.Path(description['access_logs'][name])
        for name in SERVICES
    }
    read = dict.fromkeys(SERVICES, 0)

    def calls():
        made = Counter()
        for name, log in logs.items():
            lines = log.read_text().splitlines()
            made.update(
                name
                for line in lines[read[name]:]
                if 'blazar-sched' in line
            )
            read[name] = len(lines)
        return made

    calls()
    return calls


def test_a_lease_to_come_is_made_without_nova_or_placement(
    demo, register, calls
):
    register('compute-1')
    # Calls are seen, if there are any.
    assert calls().keys() >= {'nova', 'placement'}
    costs = []
    for day in range(1, 11):
        calls()
        demo.book(
            person.hosts(),
            start=datetime.timedelta(days=day),
        )
        costs.append(calls())
    # The manager's own looks at the cloud may fall into some of these.
    assert min(cost['nova'] + cost['placement'] for cost in costs) == 0
    assert min(cost['neutron'] for cost in costs) == 0
    # A trust; the check of the token is not known by our name.
    assert min(cost['keystone'] for cost in costs) <= 1
