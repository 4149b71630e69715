# SPDX-License-Identifier: Apache-2.0
"""Hosts that fail and recover."""

import datetime

import pytest

from tests.cloud import person

SOON = datetime.timedelta(minutes=30)


@pytest.fixture
def fail(nova):
    """fail(host) makes Nova report a host as failed; returns the reversal."""
    failed = []

    def fail(host):
        nova.set_down(host, True)
        failed.append(host)
        return lambda: nova.set_down(host, False)

    yield fail
    for host in failed:
        nova.set_down(host, False)


@pytest.mark.row('F70', 'F71')
def test_instances_leave_a_host_that_fails_and_may_come_back(
    demo, register, fail, host_of, nova, placement, until
):
    first = register('compute-1')
    lease = demo.wait_for(demo.book(person.instances(2)), 'ACTIVE')
    [opened] = lease['reservations']
    coming = demo.book(person.instances(), start=SOON)
    second = register('compute-2')

    def are_on(host):
        return (
            placement.slots(opened['id']) == {host['hypervisor_hostname']: 2}
            and nova.hosts_in(opened['id']) == [host['service_name']]
            and host_of(lease) == host_of(coming) == [host['id']]
        )

    def lacks(each):
        now = demo.lease(each)
        [reservation] = now['reservations']
        assert now['degraded'] == reservation['missing_resources']
        return now['degraded']

    assert are_on(first)
    recover = fail('compute-1')
    until(lambda: are_on(second))
    assert not lacks(lease) and not lacks(coming)

    fail('compute-2')
    until(lambda: lacks(lease) and lacks(coming))
    recover()
    until(lambda: not lacks(lease) and not lacks(coming))
    until(lambda: are_on(first))
