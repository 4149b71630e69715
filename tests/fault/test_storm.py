# SPDX-License-Identifier: Apache-2.0
"""Four nova-schedulers place servers while leases come and managers go.

Afterwards the capacity that is promised is added up for each instant, from
the servers of the cloud and the allocations in SQL. The storm takes some
minutes, and is run by

BLAZAR_SCHED_STORM=40 make test-services ARGS="tests/fault/test_storm.py -s"
"""

from multiprocessing import managers
import os
import random
import threading
import time

import pytest
import requests

from blazar_sched.domain import inventory
from blazar_sched.domain import window
from tests import serving
from tests.fault import placer
from tests.fault.fleet import Fleet
from tests.fault.site import wait_for
from tests.standins.rest import uuid_of
from tests.standins.served import ServedCloud

LARGE = os.environ.get('BLAZAR_SCHED_STORM', '')
BOOTS = int(LARGE.partition(',')[0] or 0)
HOSTS = tuple(f'compute-{n}' for n in range(1, 13))
SCHEDULERS = 4
# Seconds for which the managers are away, and between two boots.
AWAY = 120
PAUSE = 6.0

pytestmark = pytest.mark.skipif(
    not LARGE, reason='BLAZAR_SCHED_STORM is not set: takes some minutes'
)


class Placement:
    """The claims of servers, one at a time, and the servers of Nova."""

    def __init__(self, cloud):
        self._cloud = cloud
        self._lock = threading.Lock()
        # The host, the VCPUs and the lifetime of each server, by uuid.
        self.claims = {}
        self.alternates = 0

    def servers(self):
        with self._lock:
            found = {name: {} for name in HOSTS}
            for id_, (host, vcpus, _) in self.claims.items():
                found[host][id_] = vcpus
            return found

    def claim(self, id_, host, vcpus, lifetime, is_alternate=False):
        """Claim capacity that is there now; tell whether it is."""
        with self._lock:
            used = sum(
                claim[1] for other, claim in self.claims.items()
                if claim[0] == host and other != id_
            )
            if used + vcpus > placer.VCPUS:
                return False
            self.claims[id_] = host, vcpus, lifetime
            self.alternates += is_alternate
            return True

    def build(self, id_):
        host, vcpus, lifetime = self.claims[id_]
        made = self._cloud.add_server(
            host, placer.PROJECT, **{'lifetime': lifetime} if lifetime else {}
        )
        server = self._cloud.servers.pop(made)
        server['flavor'] |= {'vcpus': vcpus, 'ram': 1, 'disk': 0}
        server['created'] = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
        self._cloud.servers[id_] = server | {'id': id_}

    def give_up(self, id_):
        del self.claims[id_]


@pytest.fixture
def placement():
    with ServedCloud(HOSTS) as cloud:
        placement = Placement(cloud)

        class Cloud(managers.BaseManager):
            pass

        Cloud.register('placement', callable=lambda: placement)
        server = Cloud(('127.0.0.1', 0), placer.KEY).get_server()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        placement.cloud, placement.port = cloud, server.address[1]
        yield placement


@pytest.mark.row('F96')
@pytest.mark.timeout(1200)
@pytest.mark.parametrize('is_control', [False, True])
def test_no_capacity_is_promised_twice(
    bus, database_on, processes, placement, tmp_path, capsys, is_control
):
    """The control forgets what is placed, and takes any alternate.

    No lease of the control is moved when the server is seen later.
    """
    fleet = Fleet(
        tmp_path, processes, database_on('mysql'), bus, placement.cloud,
        managers=2, sync_interval=30,
        polling_interval=3600 if is_control else 1,
    )
    try:
        placers = [
            processes.spawn(
                'tests.fault.placer', tmp_path / 'nova.conf', placement.port,
                seed, BOOTS, PAUSE, int(is_control),
            )
            for seed in range(SCHEDULERS)
        ]
        draw = random.Random(0)
        leases = 0
        for number in range(16):
            if number == 5:
                # A scheduler that does not know a lease yet cannot learn of
                # the lease while no manager is there.
                wait_for('fed replicas', fleet.fed)
                time.sleep(PAUSE)
                for n in (0, 1):
                    fleet.running[n].kill()
                time.sleep(AWAY)
                for n in (0, 1):
                    fleet.start(n)
                wait_for('managers', fleet._answers)
            leases += _lease(fleet.ports[0], draw)
            time.sleep(PAUSE)
        while any(each.is_alive for each in placers):
            time.sleep(1)
        assert [each.wait() for each in placers] == [0] * SCHEDULERS
        wait_for('records', lambda: len(fleet.ledger.instances()) == len(
            placement.claims
        ))
        over = _over(fleet.ledger, placement)
        with capsys.disabled():
            print(
                f'\n{len(placement.claims)} servers, {leases} leases, '
                f'{placement.alternates} on alternates: {len(over)} instants '
                'with more promised than there is'
            )
        assert bool(over) == is_control
        assert leases and len(placement.claims) > SCHEDULERS
    finally:
        fleet.close()


def _lease(port, draw):
    start = time.time() + draw.randint(900, 5400)
    answer = requests.post(
        f'http://127.0.0.1:{port}/v1/leases', headers=serving.ADMIN,
        timeout=60, json={
            'name': 'lease', 'start_date': _date(start),
            'end_date': _date(start + draw.randint(900, 5400)),
            'reservations': [{
                'resource_type': 'virtual:instance', 'vcpus': 2,
                'memory_mb': 1, 'disk_gb': 0, 'amount': draw.randint(1, 6),
            }],
        },
    )
    assert answer.status_code in (201, 400), answer.text
    return answer.status_code == 201


def _date(seconds):
    return time.strftime('%Y-%m-%d %H:%M', time.gmtime(seconds))


def _over(ledger, placement):
    """Return the instants at which more is promised than a host has."""
    steps = {uuid_of(name): [] for name in HOSTS}
    for allocation, _ in ledger.allocations():
        steps[allocation.host].append((
            allocation.start, allocation.end,
            allocation.amounts[inventory.VCPU],
        ))
    records = {each.uuid: each for each in ledger.instances()}
    for id_, (host, vcpus, lifetime) in placement.claims.items():
        end = records[id_].end if lifetime else window.FOREVER
        steps[uuid_of(host)].append((0, end, vcpus))
    return [
        (host, at) for host, held in steps.items()
        for at in {start for start, *_ in held}
        if sum(n for start, end, n in held if start <= at < end)
        > placer.VCPUS
    ]
