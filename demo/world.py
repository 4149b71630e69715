# SPDX-License-Identifier: Apache-2.0
"""A small world to look at: hosts, leases, a held offer, servers."""

from collections.abc import Callable
from collections.abc import Mapping
import time
from typing import Any

from keystoneauth1 import adapter

from demo.cloud import Cloud
from demo.scenario import ADMIN
from demo.scenario import ALICE
from demo.scenario import BOB
from demo.scenario import iso

HOUR = 3600
_VERSION = {'OpenStack-API-Version': 'reservation 1.1'}
_HOST = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
_SIZE = {
    'resource_type': 'virtual:instance', 'amount': 2, 'vcpus': 2,
    'memory_mb': 1024, 'disk_gb': 10, 'affinity': None,
}
# The further hosts, by their rack.
HOSTS = {
    'compute-3': '2', 'compute-4': '2', 'compute-5': '2', 'compute-6': '3',
    'compute-7': '3', 'compute-8': '3',
}
# Who books how many of what under which name, with the start and the end in
# hours.
LEASES: tuple[tuple[str, str, dict[str, Any], float, float], ...] = (
    (ALICE, 'training-run', {**_HOST, 'min': 2, 'max': 2}, 0, 20),
    (BOB, 'genome', {**_HOST, 'min': 3, 'max': 3}, 0, 40),
    (BOB, 'course', _SIZE, 0, 60),
    (ALICE, 'web', _SIZE, 3, 50),
    (ALICE, 'night-batch', {**_HOST, 'min': 2, 'max': 2, 'on_end': 'keep'},
     22, 34),
    (BOB, 'fold', {**_HOST, 'min': 5, 'max': 5}, 62, 84),
    (ALICE, 'benchmark', {**_HOST, 'before_end': 'snapshot'}, 44, 56),
)


def fill(
    cloud: Cloud, api: Mapping[str, adapter.Adapter], flavor: str,
    say: Callable[[str], None],
) -> None:
    """Add hosts, leases and a held offer, and servers that declare an end.

    :param api: the reservation API, by project
    """
    cloud.add_computes(*HOSTS)
    for name, rack in HOSTS.items():
        _post(api[ADMIN], '/os-hosts', {'name': name, 'rack': rack})
    now = int(time.time())
    for who, name, reservation, start, end in LEASES:
        _post(api[who], '/leases', {
            'name': name,
            'start_date': 'now' if start == 0 else iso(now + start * HOUR),
            'end_date': iso(now + end * HOUR),
            'reservations': [reservation],
        })
    _post(api[ALICE], '/offers', {
        'reservations': [_HOST], 'duration': '8h', 'hold': '1h',
        'start_date': iso(now + 36 * HOUR),
    })
    for who, lifetime in ((BOB, '16h'), (BOB, '9h'), (ALICE, '12h')):
        cloud.boot(flavor, {'lifetime': lifetime}, project_id=who)
    say(f'{len(HOSTS)} more hosts, {len(LEASES)} leases, a held offer and '
        'three servers are there')


def _post(client: adapter.Adapter, path: str, body: Mapping[str, Any]) -> None:
    client.post(path, json=body, headers=_VERSION)
