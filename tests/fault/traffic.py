# SPDX-License-Identifier: Apache-2.0
"""Clients that create and delete leases, offers and lease requests.

Each request is repeated until it is answered, with the same key, through any
API. Therefore the leases must be as the clients know in the end.
"""

import collections
from collections.abc import Sequence
import random
import threading
import time
from typing import Any
import uuid

import requests

from tests import serving
from tests.fault import site

# Seconds until a client gives up on one response, and on all of them.
TIMEOUT = 25
PATIENCE = 240
# Statuses that ask the client to retry.
AGAIN = (429, 502, 503, 504)
# The maximum number of leases of a client.
MAX_LEASES = 6
# Seconds for which a client holds an offer.
HOLD = 4
V1_1 = {**serving.ADMIN, 'OpenStack-API-Version': 'reservation 1.1'}
# What the lease requests of all clients compete for.
HOST = {
    'resource_type': 'physical:host', 'min': 1, 'max': 1,
    'hypervisor_properties': '', 'resource_properties': '',
}
# Seconds between two turns of a client: few clients leave the cores to the
# processes that start, and many still ask for all that the cores can do.
PAUSE = 0.25
# How often a client looks whether a lease request is booked.
LOOKS = 10


class Traffic:
    """Running clients, from __enter__ until __exit__.

    :param ports: the ports of the APIs
    :param offers: whether the clients also hold offers, and accept them,
        delete them or let them lapse
    :param waiting: whether the clients also create lease requests, and cancel
        the requests that are not booked soon
    """

    def __init__(
        self, ports: Sequence[int], clients: int = 2, offers: bool = False,
        waiting: bool = False,
    ) -> None:
        self._ports = ports
        self._offers = offers
        self._waiting = waiting
        self._stopping = threading.Event()
        # The created leases, as in the responses; the ids of the deleted
        # leases.
        self.made: dict[str, dict[str, Any]] = {}
        self.deleted: set[str] = set()
        # The number of offers by what became of them.
        self.offers: collections.Counter[str] = collections.Counter()
        # The number of lease requests by what became of them.
        self.requests: collections.Counter[str] = collections.Counter()
        # The times of the request for each lease, and of its response.
        self.times: dict[str, tuple[float, float]] = {}
        # The seconds until each response, and the count of each status by
        # method.
        self.waits: list[float] = []
        self.statuses: collections.Counter[str] = collections.Counter()
        self.troubles: list[str] = []
        self._threads = [
            threading.Thread(target=self._work, args=(seed,))
            for seed in range(clients)
        ]

    def __enter__(self) -> 'Traffic':
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def total(self, status: int) -> int:
        """Return the number of answers with `status`, to any request."""
        return sum(
            count for answer, count in self.statuses.copy().items()
            if answer.endswith(f' {status}')
        )

    def left(self) -> set[str]:
        return set(self.made) - self.deleted

    def _work(self, seed: int) -> None:
        client = _Client(
            self, self._ports, random.Random(seed), self._offers, self._waiting
        )
        while not self._stopping.is_set():
            try:
                client.turn()
            except Exception as e:
                self.troubles.append(f'{type(e).__name__}: {e}')
            self._stopping.wait(PAUSE)


class _Client:
    def __init__(
        self, traffic: Traffic, ports: Sequence[int], choice: random.Random,
        offers: bool, waiting: bool,
    ) -> None:
        self._traffic = traffic
        self._ports = ports
        self._random = choice
        self._offers = offers
        self._waiting = waiting
        self._mine: list[str] = []

    def turn(self) -> None:
        if len(self._mine) == MAX_LEASES:
            self._random.shuffle(self._mine)
            while len(self._mine) > MAX_LEASES // 2:
                self._delete(self._mine.pop())
        if self._waiting and self._random.random() < 0.3:
            self._wait()
        elif self._offers and self._random.random() < 0.5:
            self._offer()
        else:
            self._create(self._lease(), {
                **serving.ADMIN, 'Idempotency-Key': str(uuid.uuid4()),
            })

    def _offer(self) -> None:
        """Hold an offer; accept it, delete it or let it lapse."""
        lease = self._lease()
        answer = self._ask('post', '/v1/offers', 'hold', headers=V1_1, json={
            'reservations': lease['reservations'], 'hold': HOLD, 'limit': 1,
            'start_date': lease['start_date'], 'duration': '1h',
        })
        assert answer.status_code == 200, answer.text
        offer = answer.json()['offers'][0]
        chosen = self._random.choice(['accept', 'accept', 'delete', 'lapse'])
        if chosen == 'accept':
            chosen = self._create(
                {'name': 'lease', 'offer': offer['id']}, V1_1
            )
        elif chosen == 'delete':
            answer = self._ask(
                'delete', f'/v1/offers/{offer["id"]}', headers=V1_1
            )
            # The offer is deleted already, if only the response was lost.
            assert answer.status_code in (204, 404), answer.text
        self._traffic.offers[chosen] += 1

    def _wait(self) -> None:
        """Create a lease request; cancel the request if it waits for long."""
        answer = self._ask('post', '/v1/requests', 'wait', json={
            'name': 'request', 'reservations': [HOST], 'duration': '1h',
            'start_date': '2031-03-03 10:00',
            'latest_start_date': '2031-03-03 13:00',
            'wait_until': '2031-01-01 10:00',
        }, headers={**V1_1, 'Idempotency-Key': str(uuid.uuid4())})
        assert answer.status_code == 201, answer.text
        path = f'/v1/requests/{answer.json()["request"]["id"]}'
        for _ in range(LOOKS):
            request = self._ask('get', path, headers=V1_1).json()['request']
            if request['status'] != 'WAITING':
                break
            time.sleep(0.1)
        else:
            self._ask('delete', path, 'cancel', headers=V1_1)
            request = self._ask('get', path, headers=V1_1).json()['request']
        self._traffic.requests[request['status']] += 1
        if request['status'] == 'BOOKED':
            self._traffic.made[request['lease_id']] = request
            self._mine.append(request['lease_id'])

    def _create(self, body: dict[str, Any], headers: dict[str, str]) -> str:
        """Create a lease; return whether it was accepted or refused."""
        began = time.monotonic()
        answer = self._ask('post', '/v1/leases', json=body, headers=headers)
        if answer.status_code == 409 or 'NotEnoughHosts' in answer.text:
            return 'refused'
        assert answer.status_code == 201, answer.text
        lease = answer.json()['lease']
        self._traffic.times[lease['id']] = began, time.monotonic()
        self._traffic.made[lease['id']] = lease
        self._mine.append(lease['id'])
        return 'accepted'

    def _lease(self) -> dict[str, Any]:
        if self._random.random() < 0.3:
            start, end = 'now', '2031-01-01 10:00'
        else:
            day = f'2031-02-{1 + self._random.randrange(28):02}'
            start, end = f'{day} 10:00', f'{day} 11:00'
        return {
            'name': 'lease',
            'start_date': start,
            'end_date': end,
            'reservations': [site.SLOT],
        }

    def _delete(self, lease_id: str) -> None:
        answer = self._ask(
            'delete', f'/v1/leases/{lease_id}', headers=serving.ADMIN
        )
        # The lease is already deleted, if only the response was lost.
        assert answer.status_code in (204, 404), answer.text
        self._traffic.deleted.add(lease_id)

    def _ask(
        self, method: str, path: str, name: str = '', **kwargs: Any
    ) -> Any:
        """Return the first answer that is not a request to retry.

        :param name: the name by which statuses are counted, if not the method
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            url = f'http://127.0.0.1:{self._random.choice(self._ports)}{path}'
            began = time.monotonic()
            try:
                answer = requests.request(
                    method, url, timeout=TIMEOUT, **kwargs
                )
            except requests.RequestException:
                answer = None
            else:
                status = f'{name or method} {answer.status_code}'
                self._traffic.statuses[status] += 1
            self._traffic.waits.append(time.monotonic() - began)
            if answer is not None and not (
                self._is_refused(name or method, answer)
            ):
                return answer
            assert time.monotonic() < deadline, f'{method} {path}: no answer'
            too_many = answer is not None and answer.status_code == 429
            time.sleep(int(answer.headers['Retry-After']) if too_many else 0.1)

    def _is_refused(self, name: str, answer: Any) -> bool:
        """Tell whether a request is refused only for now."""
        busy = name == 'delete' and answer.status_code == 409
        return busy or answer.status_code in AGAIN
