# SPDX-License-Identifier: Apache-2.0
"""Several instances in one request: each counts for the next."""

import collections

from nova import context
from nova import objects
import pytest

from blazar_sched.worker import nova_objects
from demo import cloud

pytestmark = pytest.mark.more

HOUR = 3600


def placed(servers):
    """Return the number of servers on each host."""
    return collections.Counter(
        cloud.host_of(server) for server in servers
        if server['status'] == 'ACTIVE'
    )


def refused(servers):
    return all(
        server['status'] == 'ERROR'
        and 'not enough hosts available' in server['fault']['message']
        for server in servers
    )


def test_min_count_is_for_nova_a_matter_of_quota(lab):
    """At least three of five are requested, and three fit: Nova refuses all.
    """
    lab.only('c1')
    lab.register('c1')
    lab.reserve('c1', vcpus=2)

    servers = lab.cloud.boot_many(
        5, lab.flavor(2), {'lifetime': str(HOUR)}, min_count=3
    )

    assert len(servers) == 5
    assert refused(servers)


def test_reservation_that_is_partly_used(lab):
    lab.register('c1')
    mine = lab.reserve('c1', start=-60, vcpus=6)
    hint = {'reservation': mine}
    lab.know(lab.boot(lab.flavor(2), hint), reservation_id=mine)

    assert refused(lab.cloud.boot_many(3, lab.flavor(2), hint))
    assert placed(lab.cloud.boot_many(2, lab.flavor(2), hint)) == {'c1': 2}


@pytest.mark.row('F42')
def test_twenty_fill_what_the_window_leaves_and_no_more(lab):
    """Three hosts have room for six beside the reservations."""
    lab.only('c1', 'c2', 'c3', 'c4')
    lab.register(*lab.cloud.hosts)
    lab.reserve('c1', 'c2', 'c3', vcpus=2)
    lab.reserve('c4', vcpus=6)

    asked = lab.flavor(1), {'lifetime': str(HOUR)}
    servers = lab.cloud.boot_many(20, *asked)

    assert placed(servers) == {'c1': 6, 'c2': 6, 'c3': 6, 'c4': 2}
    assert refused([lab.cloud.boot(*asked)])


# A boot, a boot of two servers, and a move of a server booted with another.
REQUESTS = pytest.mark.parametrize(
    ('count', 'moved'), [(1, False), (2, False), (1, True)]
)


@pytest.fixture
def alternates(lab):
    """Return the alternates with allocations: all hosts but c4 have some."""
    lab.register('c1', 'c2', 'c3', 'c4')
    for name in 'c1', 'c2', 'c3':
        lab.reserve(name, vcpus=2)
    [cell] = [
        each for each in objects.CellMappingList.get_all(
            context.get_admin_context()
        ) if not each.is_cell0()
    ]

    def alternates(count, moved):
        fields = {
            'num_instances': 2,
            'requested_destination': objects.Destination(cell=cell),
        } if moved else {}
        found = lab.selections(count=count, return_alternates=True, **fields)
        return {name for _, *others in found for name in others} - {'c4'}

    return alternates


@REQUESTS
def test_no_host_with_allocations_is_an_alternate(alternates, count, moved):
    """nova-conductor would take it without asking a filter."""
    assert alternates(count, moved) == set()


@REQUESTS
def test_control_such_a_host_would_be_one(
    alternates, monkeypatch, count, moved
):
    monkeypatch.setattr(nova_objects, 'end_alternates', lambda *args: None)
    assert alternates(count, moved)
