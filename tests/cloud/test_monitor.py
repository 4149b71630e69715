# SPDX-License-Identifier: Apache-2.0
"""Hosts that fail, and come back."""

import datetime

import pytest

from tests.cloud import person

SOON = datetime.timedelta(minutes=30)


@pytest.fixture
def fail(nova):
    """fail(host) has Nova say that a host has failed; returns its undoing."""
    failed = []

    def fail(host):
        nova.set_down(host, True)
        failed.append(host)
        return lambda: nova.set_down(host, False)

    yield fail
    for host in failed:
        nova.set_down(host, False)


@pytest.fixture
def host_of(admin):
    """host_of(lease) -> the ids of the hosts that a lease has."""

    def host_of(lease):
        answer = admin.get(f'os-hosts/allocations?lease_id={lease["id"]}')
        return [
            host['resource_id']
            for host in answer['allocations']
            if host['reservations']
        ]

    return host_of


def test_a_lease_to_come_is_moved_off_a_host_that_fails(
    demo, register, fail, host_of, until
):
    first = register('compute-1')
    lease = demo.book(person.hosts(), start=SOON)
    assert host_of(lease) == [first['id']]
    second = register('compute-2')
    fail('compute-1')
    until(lambda: host_of(lease) == [second['id']])
    assert not demo.lease(lease)['degraded']


def test_a_lease_is_whole_again_once_its_host_is_back(
    demo, register, fail, until
):
    register('compute-1')
    lease = demo.wait_for(demo.book(person.hosts()), 'ACTIVE')
    recover = fail('compute-1')
    until(lambda: demo.lease(lease)['degraded'])
    [reservation] = demo.lease(lease)['reservations']
    assert reservation['missing_resources']
    with pytest.raises(person.Refused, match='409'):
        demo.book(person.hosts(), start=SOON * 10)

    recover()
    until(lambda: not demo.lease(lease)['degraded'])
    [reservation] = demo.lease(lease)['reservations']
    assert not reservation['missing_resources']
    demo.boot('mine', reservation=reservation['id'])
