# SPDX-License-Identifier: Apache-2.0
"""Magnetic reservations draw only the servers of their own project.

Servers of projects that share the reservation name it in a hint.
"""

import types

import pytest

from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.worker import magnetic
from blazar_sched.worker import request

HOSTS = [types.SimpleNamespace(uuid=uuid) for uuid in ('h1', 'h2')]


def asked(project_id, reservation_id=None, created=150):
    return request.Request(
        request.RequestedServer(
            'i1', project_id, {}, None, window.FOREVER, reservation_id,
            preemptible=False, created=created, features=None,
        ),
        instance_uuid='i1', project_id=project_id, amounts=(1, 1, 1), extra={},
        reservation_id=reservation_id, preemptible=False, end=window.FOREVER,
        own=None,
    )


@pytest.fixture
def replica():
    """A reservation of h1 from 100 to 200, of project mine and a friend's."""
    replica = state.Replica(accounting.SchedulerAccounting)
    replica.apply(1, [
        *(record.encode(Host(h.uuid, h.uuid, h.uuid)) for h in HOSTS),
        reservation(magnetic=True),
        record.encode(Allocation('a', 'r', 'h1', 100, 200, whole=True)),
    ])
    return replica


def reservation(projects=('friend',), **fields):
    return record.encode(record.Reservation(
        'r', 'l', 'mine', 'physical:host', 100, 200, projects=projects,
        **fields,
    ))


def drawn(replica, project_id, now=150, **fields):
    found = magnetic.hosts_of_project(
        replica, asked(project_id, **fields), HOSTS, now
    )
    return [h.uuid for h in found]


def test_in_its_window_only(replica):
    assert drawn(replica, 'mine', 99) == []
    assert drawn(replica, 'mine', 100) == ['h1']
    assert drawn(replica, 'mine', 199) == ['h1']
    assert drawn(replica, 'mine', 200) == []


def test_magnetic_reservation_draws_no_server_of_a_shared_project(replica):
    assert drawn(replica, 'mine') == ['h1']
    assert drawn(replica, 'friend') == []
    assert drawn(replica, 'another') == []
    assert drawn(replica, None) == []


def test_not_what_names_a_reservation(replica):
    assert drawn(replica, 'mine', reservation_id='r2') == []


def test_no_longer_once_it_is_not_magnetic(replica):
    replica.apply(2, [reservation()])
    assert drawn(replica, 'mine') == []


def test_sharing_it_with_another_changes_nothing(replica):
    replica.apply(2, [reservation(('another',), magnetic=True)])
    assert drawn(replica, 'mine') == ['h1']
    assert drawn(replica, 'another') == []
    assert drawn(replica, 'friend') == []


def test_not_who_was_in_the_way_of_it(replica):
    """Such a server has its own record wherever it goes."""
    assert drawn(replica, 'mine', created=0) == []
    replica.apply(2, [reservation(magnetic=True, cleared=('h1',))])
    assert drawn(replica, 'mine', created=0) == ['h1']
    replica.apply(3, [
        reservation(magnetic=True, cleared=('h1',), in_the_way=('i1',))
    ])
    assert drawn(replica, 'mine', created=0) == []


def test_magnetic_reservation_is_there_during_its_change(replica):
    """Another thread may read at any moment."""

    class Watched(dict):
        def __getitem__(self, project_id):
            held = super().__getitem__(project_id)
            assert 'r' in held
            return held

    replica.magnetic = Watched(replica.magnetic)
    replica.apply(2, [reservation(magnetic=True, aggregate='a')])
    assert drawn(replica, 'mine') == ['h1']
    assert drawn(replica, 'friend') == []


def test_deleted_magnetic_reservation_draws_no_server(replica):
    replica.apply(2, [
        (record.ALLOCATION, 'a', None), (record.RESERVATION, 'r', None)
    ])
    assert drawn(replica, 'mine') == []
    assert not replica.magnetic['mine']
