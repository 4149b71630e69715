# SPDX-License-Identifier: Apache-2.0
"""Nova by python-novaclient, behind the session of all clients."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.flavor import Flavor
from blazar_sched.service.clients import rest
from blazar_sched.service.clients.nova import Aggregate
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server
from tests.standins.rest import answer
from tests.standins.rest import Service
from tests.standins.rest import Trouble

AGGREGATE = Aggregate(1, 'a', ('gone',), {})
SERVER = Server('s1', 'a', 'p', {}, 0, None, False)
FLAVOR = Flavor('f', 'f', 1, 1, 1)
CALLS = (
    lambda nova: nova.aggregates(),
    lambda nova: nova.create_aggregate('a', {}),
    lambda nova: nova.set_aggregate_metadata(AGGREGATE, {'a': None}),
    lambda nova: nova.set_aggregate_zone(AGGREGATE, 'z'),
    lambda nova: nova.add_to_aggregate(AGGREGATE, 'a'),
    lambda nova: nova.remove_from_aggregate(AGGREGATE, 'gone'),
    lambda nova: nova.flavors(),
    lambda nova: nova.flavor('f'),
    lambda nova: nova.create_flavor(FLAVOR),
    lambda nova: nova.add_flavor_access('f', 'p'),
    lambda nova: nova.remove_flavor_access('f', 'p'),
    lambda nova: nova.delete_flavor('f'),
    lambda nova: nova.hypervisor('a'),
    lambda nova: list(nova.hypervisors()),
    lambda nova: nova.create_server_group('g', 'affinity'),
    lambda nova: nova.delete_server_group('g'),
    lambda nova: nova.has_moved(SERVER, 0),
    lambda nova: nova.delete_servers([SERVER]),
    lambda nova: nova.shelve_servers([SERVER]),
    lambda nova: nova.unshelve_server(SERVER),
    lambda nova: nova.migrate_server(SERVER),
    lambda nova: nova.confirm_migration(SERVER),
    lambda nova: nova.set_server_metadata(SERVER, {'a': 'b'}),
    lambda nova: nova.set_server_metadata(SERVER, {'a': None}),
    lambda nova: list(nova.servers()),
    lambda nova: nova.server('s1'),
    lambda nova: nova.create_image(SERVER, 'i', {}),
)


@pytest.mark.parametrize('call', CALLS)
def test_each_call_has_the_words_of_the_session(call):
    api = Service()
    for said, words in {
        # Nova lacks the microversion, or has another fault.
        answer(406): 'the compute service answered 406',
        answer(401): 'the compute service answered 401',
        None: 'the compute service cannot be reached now',
    }.items():
        api.meddle = lambda method, path, said=said: Trouble(False, said)
        with pytest.raises(exception.Unavailable, match=words):
            call(Nova(api))


@pytest.mark.parametrize('call', CALLS)
def test_no_request_is_sent_once_the_claim_is_lost(call):
    api = Service()

    def lost():
        raise RuntimeError('lost')

    with rest.guarded(lost), pytest.raises(RuntimeError, match='lost'):
        call(Nova(api))
    assert api.asked == []


@pytest.mark.parametrize('id_', ['..', 'detail', 'a/b'])
def test_what_is_at_the_path_of_an_odd_id_is_no_flavor(id_):
    other = Service(('GET', '/.*', lambda *path: answer(200, {'x': 1})))
    assert Nova(other).flavor(id_) is None


def test_nothing_is_written_into_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    shown = {
        'id': 1, 'uuid': 'd2b0b6a1-0000-4000-8000-000000000000', 'name': 'a',
        'hosts': [], 'metadata': {},
    }
    api = Service(
        ('GET', '/os-aggregates', lambda: answer(200, {'aggregates': [shown]}))
    )
    assert [each.name for each in Nova(api).aggregates()] == ['a']
    assert list(tmp_path.iterdir()) == []


def test_who_hangs_keeps_no_other_from_a_host(monkeypatch):
    monkeypatch.setattr(rest.Turns, 'PATIENCE', 0)
    turns = rest.Turns()
    with turns.of('a'), turns.of('a'):
        pass
    with turns.of('a'):
        pass
