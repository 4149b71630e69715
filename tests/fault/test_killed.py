# SPDX-License-Identifier: Apache-2.0
"""Managers are killed while clients wait for a response.

A killed manager has taken the call off the queue, so no other manager would
ever respond to the call.
"""

import functools
import os
import pathlib
import signal
import time

import pytest

from blazar_sched.service import faults
from blazar_sched.service.api import deploy
from blazar_sched.service.bus import rpc
from tests import loopback
from tests.fault.site import Deployment
from tests.fault.site import SLOT
from tests.fault.site import wait_for

# Seconds in which a client should have a response whatever happens to
# managers, and in which it must: 24 clients and all services share one
# machine.
WISH, BOUND = 10, 20
CLIENTS, MANAGERS, APIS = 24, 3, 2
# Seconds during which managers are killed, and between two kills.
KILLING = int(os.environ.get('BLAZAR_SCHED_KILL_SECONDS', '6'))
BETWEEN = 3
# The number of creates that reach each of two managers.
CREATES = 12


def lease(number):
    return {
        'name': f'lease {number}',
        'start_date': '2031-02-01 10:00',
        'end_date': '2031-02-01 11:00',
        'reservations': [SLOT],
    }


class Pair:
    """An API in this process before two managers, one of which is killed.

    The first create that reaches this manager kills it.
    """

    def __init__(self, site, processes, point):
        self._file = site.file()
        self._processes = processes
        self.ledger = site.ledger()
        self._doomed = self._start(**{faults.VARIABLE: point})
        bus = rpc.Client(rpc.transport(site.conf()))
        self._api = loopback.client(deploy.deploy(site.conf(), bus))
        wait_for('a manager', lambda: self._get('/v1/leases'))

    def start_the_other(self):
        self._start()

    def add_host(self, name):
        answer = self._api.simulate_post('/v1/os-hosts', json={'name': name})
        assert answer.status_code == 201, answer.text

    def create_until_down(self, again=False):
        """Return each response, with the seconds that it took.

        :param again: whether to repeat a create that nobody has answered, as
            each copy may go to a suspended manager
        """
        answers = []
        for number in range(CREATES):
            began = time.monotonic()
            post = functools.partial(
                self._api.simulate_post, '/v1/leases', json=lease(number),
                headers={'Idempotency-Key': f'lease-{number}'},
            )
            answer = post()
            while again and answer.status_code == 503:
                answer = post()
            answers.append((answer, time.monotonic() - began))
            if self._is_down():
                return answers
        raise AssertionError('no create has reached the doomed manager')

    def delete(self, lease_id):
        path = f'/v1/leases/{lease_id}'
        wait_for(
            'the deletion',
            lambda: self._api.simulate_delete(path).status_code == 204,
        )

    def resume(self):
        """Resume the suspended manager, until it has refused the create."""
        self._doomed.signal(signal.SIGCONT)
        wait_for(
            'the refusal',
            lambda: 'Refused: create_lease' in self._doomed.log.read_text(),
        )

    def close(self):
        self.ledger.close()

    def _is_down(self):
        if not self._doomed.is_alive:
            return True
        status = pathlib.Path(f'/proc/{self._doomed.pid}/status').read_text()
        return 'T (stopped)' in status

    def _start(self, **environment):
        return self._processes.start(
            'manager', '--config-file', self._file, **environment
        )

    def _get(self, path):
        return self._api.simulate_get(path).status_code == 200


@pytest.fixture
def point():
    return 'create_lease:called'


@pytest.fixture
def pair(point, tmp_path, bus, cloud, database_on, processes):
    site = Deployment(tmp_path, database_on('mysql'), bus, cloud.url)
    pair = Pair(site, processes, point)
    for name in cloud.hosts:
        pair.add_host(name)
    pair.start_the_other()
    yield pair
    pair.close()


@pytest.mark.parametrize(
    'point', ['create_lease:called', 'create_lease:answering']
)
def test_a_create_is_answered_though_its_manager_dies(pair):
    """Another manager creates the lease once, whether or not it was committed.
    """
    answers = pair.create_until_down()

    assert {answer.status_code for answer, _ in answers} == {201}
    assert max(seconds for _, seconds in answers) < BOUND
    assert sorted(x.id for x in pair.ledger.leases()) == sorted(
        answer.json['lease']['id'] for answer, _ in answers
    )


def test_sent_once_a_create_is_not_answered(pair, monkeypatch):
    """The control: without a second attempt there is no response."""
    monkeypatch.setattr(rpc, 'ATTEMPTS', 1)

    [*_, (answer, _)] = pair.create_until_down()

    assert answer.status_code == 503


@pytest.mark.parametrize('point', ['create_lease:called!SIGSTOP'])
def test_a_late_copy_of_a_create_makes_no_lease(pair):
    """The lease is deleted before a suspended manager goes on to create it.
    """
    for answer, _ in pair.create_until_down(again=True):
        pair.delete(answer.json['lease']['id'])

    pair.resume()

    assert pair.ledger.leases() == []


@pytest.mark.parametrize('engine', ['mysql', 'postgresql'])
def test_no_client_waits_long_while_managers_are_killed(
    bus, new_fleet, database_on, record_property, engine
):
    fleet = new_fleet(database_on(engine), bus, managers=MANAGERS, apis=APIS)
    with fleet.at_work(CLIENTS, offers=True, waiting=True) as traffic:
        end = time.monotonic() + KILLING
        number = 0
        while time.monotonic() < end:
            time.sleep(BETWEEN)
            # On a busy machine all managers would be down at once.
            wait_for('the managers', fleet.has_started)
            fleet.running[number % MANAGERS].kill()
            fleet.start(number % MANAGERS)
            number += 1
        # A client that acts at once is never too late.
        wait_for('offers', lambda: {'accepted', 'lapse'} <= {*traffic.offers})
        wait_for(
            'requests', lambda: {'BOOKED', 'CANCELLED'} <= {*traffic.requests}
        )

    record_property(
        f'{number} managers killed on {engine}',
        f'{len(traffic.waits)} answers {dict(traffic.statuses)}, the last '
        f'one after {max(traffic.waits):.1f} s (wanted: {WISH} s); '
        f'{len(traffic.made)} leases, offers: {dict(traffic.offers)}, '
        f'lease requests: {dict(traffic.requests)}',
    )
    assert max(traffic.waits) < BOUND
    assert traffic.statuses['post 503'] == 0
