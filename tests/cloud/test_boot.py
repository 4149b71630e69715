# SPDX-License-Identifier: Apache-2.0
"""Boots with the filters in nova-scheduler, by the command line client."""

import datetime

import pytest

from tests.cloud import person

HOUR = datetime.timedelta(hours=1)


@pytest.fixture(autouse=True)
def hosts(register, description):
    """All hosts are reservable: a refused server has no other host."""
    for name in description['hosts']:
        register(name)


@pytest.fixture
def reserve(description):
    """reserve(who, start=…) reserves all hosts; returns the lease."""
    number = len(description['hosts'])

    def reserve(who, **window):
        lease = who.book(person.hosts(number), **window)
        return lease if window else who.wait_for(lease, 'ACTIVE')

    return reserve


def test_the_right_project_passes_and_another_does_not(demo, alt, reserve):
    [reservation] = reserve(demo)['reservations']
    demo.boot('mine', reservation=reservation['id'])
    assert alt.finds_no_host('theirs', reservation=reservation['id'])


def test_without_a_hint_nobody_is_let_on_a_host_reserved_now(demo, reserve):
    reserve(demo)
    assert demo.finds_no_host('mine')


def test_only_a_server_that_ends_before_the_window_passes(demo, alt, reserve):
    reserve(demo, start=HOUR)
    alt.boot('short', lifetime='30m')
    assert alt.finds_no_host('long', lifetime='2h')
    assert alt.finds_no_host('endless')


def test_a_reservation_is_not_used_before_its_window(demo, reserve):
    [reservation] = reserve(demo, start=HOUR)['reservations']
    assert demo.finds_no_host('early', reservation=reservation['id'])


def test_an_instance_without_end_passes_where_nothing_is_reserved(alt):
    alt.boot('endless')
