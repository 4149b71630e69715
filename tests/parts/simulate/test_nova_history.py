# SPDX-License-Identifier: Apache-2.0
"""What servers and actions of Nova say of the past, at its edges."""

import types

from openstack import exceptions as sdk_exceptions
import pytest
from rich import progress

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.parts.simulate import nova_history

BEGIN = 1_750_000_000
END = BEGIN + 1000


def at(second):
    """Return a time, in seconds since the window began, as Nova shows it."""
    return duration.format_time(BEGIN + second)


def server(id_='a', created=-5000, launched=-4990, **fields):
    return types.SimpleNamespace(**{
        'id': id_, 'created_at': at(created), 'launched_at': at(launched),
        'updated_at': at(0), 'terminated_at': None, 'status': 'ACTIVE',
        'compute_host': 'c1', 'scheduler_hints': {},
        'flavor': types.SimpleNamespace(vcpus=1, ram=512, extra_specs={}),
    } | fields)


class Nova:
    """Answers with servers, and with the actions of each server by its id."""

    def __init__(self, servers=(), deleted=(), **actions):
        self._servers = servers
        self._deleted = deleted
        self._actions = actions
        self.asked = []

    def hypervisors(self, details):
        return []

    def resource_providers(self):
        return []

    def servers(self, all_projects, deleted_only=False, **query):
        assert all_projects
        return self._deleted if deleted_only else self._servers

    def server_actions(self, server):
        self.asked.append(server.id)
        if server.id not in self._actions:
            raise sdk_exceptions.NotFoundException()
        for action, second, *message in self._actions[server.id]:
            yield types.SimpleNamespace(
                action=action, start_time=at(second),
                message=message[0] if message else None,
            )


def read(nova):
    sdk = types.SimpleNamespace(compute=nova, placement=nova)
    with progress.Progress(disable=True) as bar:
        return nova_history.read(sdk, BEGIN, END, bar)


def stays(nova):
    """Return the first and last second of each instance."""
    return sorted(
        (each.arrival, each.arrival + each.lifetime)
        for each in read(nova).instances
    )


@pytest.mark.parametrize('actions, on_host, expected', [
    ([], True, [(0, 1000)]),
    ([], False, []),
    ([('shelve', 100)], False, [(0, 100)]),
    # The host is free from the offload on.
    ([('shelveOffload', 300), ('shelve', 100)], False, [(0, 300)]),
    # Nova keeps the server on its host until it is offloaded.
    ([('shelve', 100)], True, [(0, 1000)]),
    ([('unshelve', 400), ('shelve', 100)], True, [(0, 100), (400, 1000)]),
    ([('unshelve', 400)], True, [(400, 1000)]),
    # Failed actions change nothing.
    ([('shelve', 700, 'Error'), ('reboot', 600)], True, [(0, 1000)]),
    (
        [('unshelve', 400, 'Error'), ('unshelve', 300), ('shelve', 100)],
        True, [(0, 100), (300, 1000)],
    ),
    # Some actions were before the window.
    ([('unshelve', -10), ('shelve', -100)], True, [(0, 1000)]),
    ([('shelve', -10), ('unshelve', -100)], False, []),
    # The server was shelved a second time.
    (
        [('shelve', 800), ('unshelve', 400), ('shelve', 100)],
        False, [(0, 100), (400, 800)],
    ),
])
def test_stays_of_a_shelved_server(actions, on_host, expected):
    shelved = server(launched=900, compute_host='c1' if on_host else None)
    assert stays(Nova([shelved], a=actions)) == expected


def test_only_servers_that_may_have_been_shelved_are_asked_for_actions():
    nova = Nova([
        server('old'),
        server('built', created=100, launched=400),
        server('unshelved', launched=400),
        server('offloaded', compute_host=None),
    ], unshelved=[], offloaded=[])
    read(nova)
    assert nova.asked == ['unshelved', 'offloaded']


def test_a_server_whose_actions_cannot_be_read_counts_for_its_whole_life():
    nova = Nova([server('a', compute_host=None), server('b')])
    assert stays(nova) == [(0, 1000), (0, 1000)]
    assert read(nova).unread == 1


def test_deleted_servers_end_when_they_were_deleted():
    gone = {'status': 'DELETED', 'updated_at': at(990)}
    nova = Nova([server('a')], [
        # This one was still there when the first list was read.
        server('a', **gone),
        server('b', terminated_at=at(500), **gone),
        server('c', **gone),
        server('d', terminated_at=at(-10), **gone),
        # This one found no host.
        server('e', **gone | {'launched_at': None}),
    ])
    assert stays(nova) == [(0, 500), (0, 990), (0, 1000)]


@pytest.mark.parametrize('lifetime, kind, declared', [
    ('7000s', 'bounded', 2000),
    # The server is overdue.
    ('4000s', 'unbounded', None),
    ('wrong', 'unbounded', None),
])
def test_a_lifetime_is_declared_from_the_creation_on(lifetime, kind, declared):
    [found] = read(
        Nova([server(scheduler_hints={'lifetime': [lifetime]})])
    ).instances
    assert (found.kind, found.declared) == (kind, declared)


def test_servers_of_reservations_and_of_bare_metal_are_left_out():
    bare = types.SimpleNamespace(
        vcpus=8, ram=512, extra_specs={'resources:VCPU': '0'}
    )
    nova = Nova([
        server('a', flavor=bare),
        server('b', scheduler_hints={'reservation': 'any'}),
    ])
    assert read(nova).servers == 0


def test_a_cell_that_is_down_ends_the_reading():
    with pytest.raises(exception.Unavailable, match='a cell is down'):
        read(Nova([server(flavor=None)]))
