# SPDX-License-Identifier: Apache-2.0
"""The calls to other services that a request for a lease makes."""

from collections import Counter
import datetime
import pathlib

import pytest

from tests.cloud import person

SERVICES = ('keystone', 'neutron', 'nova', 'placement')


@pytest.fixture
def calls(description):
    """calls() counts the calls of blazar-sched since the last call."""
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
    # The test is valid only if calls are counted.
    assert calls().keys() >= {'nova', 'placement'}
    costs = []
    for day in range(1, 11):
        calls()
        demo.book(person.hosts(), start=datetime.timedelta(days=day))
        costs.append(calls())
    # The manager's periodic calls may happen during some of these.
    assert min(cost['nova'] + cost['placement'] for cost in costs) == 0
    assert min(cost['neutron'] for cost in costs) == 0
    # The trust; the validation of the token is not counted as a call of ours.
    assert min(cost['keystone'] for cost in costs) <= 1
