# SPDX-License-Identifier: Apache-2.0
"""Middleware in nova-api, and nova-scheduler's request filter."""

import datetime
import uuid

from nova.tests.functional.api import client
import pytest

from blazar_sched.domain import duration
from blazar_sched.hooks import request_filter
from blazar_sched.replica import limited_log
from blazar_sched.worker import process
from demo.cloud import host_of
from tests.nova import clouds
from tests.nova import managing

pytestmark = pytest.mark.more

HOUR = 3600
MONTH = 30 * 24 * HOUR
# Seconds for a request in transit.
SOON = 30
CLOUD = clouds.FOUR._replace(hooks=True)


def hints(lab, server):
    """Return the hints as GET /servers/{id} shows them at 2.100."""
    shown = lab.cloud.show(server)['scheduler_hints']
    return {name: hint for name, [hint] in shown.items()}


def seconds(text):
    return duration.parse_time(text, 'shown')


def refused(lab, hints, **parameters):
    """Return the message of a boot that nova-api refuses."""
    with pytest.raises(client.OpenStackApiException) as e:
        lab.cloud.boot(lab.flavor(), hints, **parameters)
    assert e.value.response.status_code == 400
    return e.value.response.json()


class TestHints:
    def test_a_duration_gets_an_end(self, lab):
        server = lab.boot(hints={'lifetime': '2h', 'query': '["=", "a", 1]'})

        shown = hints(lab, server)

        assert shown['lifetime'] == '2h'
        assert shown['query'] == '["=", "a", 1]'
        created = seconds(server['created'])
        assert created - SOON <= seconds(shown['lease_end']) - 2 * HOUR
        assert seconds(shown['lease_end']) - 2 * HOUR <= created
        assert shown.keys() == {'lifetime', 'query', 'lease_end'}

    @pytest.mark.row('C43')
    def test_the_filters_go_by_it(self, lab):
        lab.register('c1')
        lab.reserve('c1')

        assert lab.boots('c1', hints={'lifetime': '10m'})
        assert not lab.boots('c1', hints={'lifetime': '20m'})

    def test_at_the_first_version_of_the_api(self, lab):
        api = lab.cloud.client()
        api.microversion = None
        image = lab.cloud.boot(lab.flavor())['image']['id']
        server = api.post_server({
            'server': {
                'name': 'old', 'imageRef': image, 'flavorRef': lab.flavor()
            },
            'OS-SCH-HNT:scheduler_hints': {'lifetime': '2h'},
        })

        lab.cloud.settled(server)

        assert hints(lab, server).keys() == {'lifetime', 'lease_end'}

    def test_invalid_hint_is_refused_as_nova_refuses(self, lab):
        """A3: the refusal has the shape of Nova's own refusals."""
        novas = refused(lab, None, networks='nonsense')
        for said, name in (
            ({'lifetime': 'soon'}, 'lifetime'),
            ({'lease_end': '2050-01-01 00:00', 'lifetime': '1h'}, 'lifetime'),
            ({'reservation': [{'a': 1}]}, 'reservation'),
        ):
            ours = refused(lab, said)
            assert name in ours['badRequest']['message'], said
            assert ours.keys() == novas.keys() == {'badRequest'}
            assert ours['badRequest'].keys() == novas['badRequest'].keys()
            assert ours['badRequest']['code'] == 400
        assert lab.cloud.servers() == []


class TestDefault:
    @pytest.mark.row('F53')
    def test_the_filters_go_by_it_unless_the_flavor_says_more(self, lab):
        lab.cloud.configure(default_lifetime='10m')
        lab.register('c1')
        lab.reserve('c1')

        assert lab.boots('c1')
        assert lab.boots('c1', lab.flavor(lifetime='5m'))
        assert not lab.boots('c1', lab.flavor(lifetime='20m'))


class TestLeases:
    """The leases that the manager makes once it sees the servers."""

    @pytest.fixture(scope='class')
    def manager(self, cloud, tmp_path_factory):
        folder = tmp_path_factory.mktemp('manager')
        manager = managing.manager_of(cloud, managing.configured(folder))
        for name in cloud.hosts:
            manager.hosts.create(name, {})
        yield manager
        manager.ledger.close()

    @pytest.fixture
    def leases(self, lab, manager):
        """leases(hints) -> the booted server, and its leases."""

        def leases(hints_=None, **parameters):
            server = lab.boot(hints=hints_, **parameters)
            manager.instances.sync()
            return server, [
                noun for noun in manager.ledger.leases()
                if noun.reservations[0].demand.instance_id
                == server['id']
            ]

        return leases

    @pytest.mark.row('C33', 'C34', 'F53')
    def test_a_plain_boot_gets_one_of_a_month(self, lab, leases):
        lab.cloud.configure(default_lifetime='30d')

        server, [lease] = leases()

        shown = hints(lab, server)
        assert lease.end == seconds(shown['lease_default_end'])
        assert lease.name == f'lease-{server["id"][:6]}'
        assert (lease.project_id, lease.status) == (
            server['tenant_id'], 'ACTIVE'
        )
        assert lease.start == seconds(server['created'])
        assert -SOON <= lease.end - lease.start - MONTH <= 0

    @pytest.mark.parametrize(
        'said, name, length',
        [
            ({'lifetime': '2h'}, None, 2 * HOUR),
            ({'lease_name': 'mine'}, 'mine', MONTH),
            (
                {'lease_params': '{"name": "mine", "end": "%s"}'},
                'mine', 3 * HOUR,
            ),
        ],
        ids=str,
    )
    @pytest.mark.row('C31', 'C33', 'C43', 'F52')
    def test_the_users_own_values_win(self, lab, leases, said, name, length):
        lab.cloud.configure(default_lifetime='30d')
        end = datetime.datetime.fromtimestamp(
            process.now() + 3 * HOUR, datetime.UTC
        )
        said = {
            key: value.replace('%s', f'{end:%Y-%m-%d %H:%M:%S}')
            for key, value in said.items()
        }

        server, [lease] = leases(said)

        assert lease.name == (name or f'lease-{server["id"][:6]}')
        assert -SOON <= lease.end - lease.start - length <= 0


class TestExtraSpecs:
    def test_valid_extra_spec_is_accepted(self, lab):
        for name, value in (
            ('reservation', '8d6d7b0e-0f0f-4d53-8b0b-9f3f0e7a2c11'),
            ('lifetime', '2h'), ('lifetime', '60'),
            ('preemptible', 'true'), ('preemptible', 'no'),
        ):
            lab.cloud.flavor(extra_specs={f'blazar:{name}': value})

    def test_invalid_extra_spec_is_refused(self, lab):
        for name, value, why in (
            ('reservation', 'x', 'format'),
            ('lifetime', 'abc', 'duration'),
            ('lifetime', '0', '100 years'),
            ('lifetime', '5000w5', 'duration'),
            ('lifetime', '36526d', '100 years'),
            ('preemptible', 'perhaps', 'boolean'),
            ('foo', 'bar', 'valid extra spec'),
            ('Lifetime', '1h', 'valid extra spec'),
        ):
            with pytest.raises(client.OpenStackApiException) as e:
                lab.cloud.flavor(extra_specs={f'blazar:{name}': value})

            assert e.value.response.status_code == 400
            message = e.value.response.json()['badRequest']['message']
            assert why in message, (name, value)

    def test_other_namespaces_are_others(self, lab):
        lab.cloud.flavor(extra_specs={'acme:lifetime': 'abc'})


class TestNarrowing:
    """F48: Placement returns two hosts of four, always the same."""

    @pytest.fixture
    def reserve(self, lab):
        lab.cloud.configure('scheduler', max_placement_results=2)
        made = []

        def reserve(*names):
            """Reserve hosts, and start the reservation as the manager does."""
            id_ = lab.reserve(*names, start=-60)
            aggregate = lab.cloud.api.post_aggregate(
                {'aggregate': {'name': id_}}
            )
            made.append((aggregate['id'], names))
            for name in names:
                lab.cloud.api.add_host_to_aggregate(aggregate['id'], name)
            lab.ledger.commit(
                lambda tx: tx.set_reservations_made(
                    {id_: {'aggregate_uuid': aggregate['uuid']}}
                )
            )
            lab.sync()
            return id_

        yield reserve
        for aggregate_id, names in made:
            for name in names:
                lab.cloud.api.api_post(
                    f'/os-aggregates/{aggregate_id}/action',
                    {'remove_host': {'host': name}},
                )
            lab.cloud.api.delete_aggregate(aggregate_id)

    @pytest.fixture
    def each(self, lab, reserve):
        lab.register(*lab.cloud.hosts)
        return {name: reserve(name) for name in lab.cloud.hosts}

    def where(self, lab, reservation_id):
        """Return the host of a server in the reservation; None if none."""
        server = lab.cloud.boot(lab.flavor(), {'reservation': reservation_id})
        if server['status'] == 'ERROR':
            assert 'No valid host' in server['fault']['message']
            return None
        name = host_of(server)
        lab.cloud.delete(server)
        return name

    @pytest.mark.row('F48')
    def test_every_host_is_found(self, lab, each):
        off = [self.where(lab, id_) for id_ in each.values()]
        lab.cloud.configure(narrow_placement=True)
        on = [self.where(lab, id_) for id_ in each.values()]

        assert off.count(None) == 2
        assert on == list(each)

    def test_unknown_reservation_does_not_narrow_placement(self, lab, each):
        lab.cloud.configure(narrow_placement=True)
        assert self.where(lab, str(uuid.uuid4())) is None

    @pytest.mark.parametrize(
        'current',
        [
            lambda: (None, True),
            lambda: (object(), True),
            lambda: (object(), False),
            lambda: 1 / 0,
        ],
        ids=['missing', 'stale', 'broken', 'raises'],
    )
    def test_unclear_request_is_not_narrowed(self, lab, monkeypatch, current):
        """The request does not fail either."""
        lab.cloud.configure(narrow_placement=True)
        monkeypatch.setattr(
            request_filter, 'failure',
            limited_log.LimitedLog(request_filter.LOG),
        )
        monkeypatch.setattr(process, 'current', current)

        assert not request_filter.narrow_to_reservation(None, object())
