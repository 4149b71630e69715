# SPDX-License-Identifier: Apache-2.0
"""Clients that note each answer, and what SQL must hold according to them.

Each client creates leases, each under a key of its own, and repeats a request
until the answer is final. The name of a lease is its key. Now and then a
client repeats a create that was answered, reads the lease, or deletes it.
"""

import collections
from collections.abc import Iterator
import datetime
import json
import random
import threading
import time
from typing import Any
import uuid

import requests
import sqlalchemy as sa

from tests.fault import site
from tests.ha import cluster

# Seconds until a client gives up on one answer, and on all answers.
TIMEOUT = 130
PATIENCE = 240
# The statuses that ask a client to try again.
AGAIN = (429, 502, 503, 504)
# The hours for which the clients compete.
HOURS = 72
FIRST = datetime.datetime(2031, 2, 1)


def reservation(choice: random.Random) -> dict[str, Any]:
    """Return a whole host, or instances of half a host."""
    if choice.random() < 0.2:
        return {
            'resource_type': 'physical:host', 'min': 1, 'max': 2,
            'hypervisor_properties': '', 'resource_properties': '',
        }
    return {
        'resource_type': 'virtual:instance', 'vcpus': 4, 'memory_mb': 1024,
        'disk_gb': 0, 'amount': choice.randint(1, 3),
    }


class Load:
    """Running clients, from __enter__ until __exit__.

    `made` and `deleted` have the leases as the clients know them.
    """

    def __init__(self, url: str, clients: int) -> None:
        self._url = url
        self._clients = clients
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        # The ids of the leases by key: each answer 201 has added one.
        self.ids: dict[str, set[str]] = collections.defaultdict(set)
        self.made: dict[str, dict[str, Any]] = {}
        self.deleted: set[str] = set()
        self.troubles: list[str] = []
        # The count of each status by method; when each request was sent and
        # answered; the same of the creates that were decided.
        self.statuses: collections.Counter[str] = collections.Counter()
        self.waits: list[tuple[float, float]] = []
        self.creates: list[tuple[float, float]] = []
        self._threads = [
            threading.Thread(target=self._work, args=(seed,))
            for seed in range(clients)
        ]

    def __enter__(self) -> 'Load':
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def left(self) -> set[str]:
        return set(self.made) - self.deleted

    def answers_after(self, at: float) -> float:
        """Return the seconds from `at` to the answer to a later create."""
        return min(
            (end - at for began, end in list(self.creates) if began >= at),
            default=float('inf'),
        )

    def _work(self, seed: int) -> None:
        choice = random.Random(seed)
        with requests.Session() as session:
            session.headers.update(cluster.CLIENT)
            while not self._stopping.is_set():
                try:
                    self._turn(session, choice)
                except Exception as e:
                    self.troubles.append(f'{type(e).__name__}: {e}')

    def _turn(self, session: requests.Session, choice: random.Random) -> None:
        key = str(uuid.UUID(int=choice.getrandbits(128)))
        start = FIRST + datetime.timedelta(hours=choice.randrange(HOURS))
        end = start + datetime.timedelta(hours=choice.randint(1, 3))
        body = {
            'name': key, 'start_date': f'{start:%Y-%m-%d %H:%M}',
            'end_date': f'{end:%Y-%m-%d %H:%M}',
            'reservations': [reservation(choice)],
        }
        if choice.random() < 0.1:
            # The lease starts now, before the others.
            body |= {
                'start_date': 'now', 'end_date': '2031-01-01 00:00',
                'reservations': [site.SLOT],
            }
        while True:
            answer = self._ask(
                session, 'post', '/v1/leases', json=body,
                headers={'Idempotency-Key': key},
            )
            if answer.status_code != 201:
                assert answer.status_code == 400, answer.text
                assert 'NotEnough' in answer.text, answer.text
                return
            lease = answer.json()['lease']
            with self._lock:
                self.ids[key].add(lease['id'])
                self.made[lease['id']] = lease
            if choice.random() < 0.8:
                break
        path = f'/v1/leases/{lease["id"]}'
        if choice.random() < 0.3:
            answer = self._ask(session, 'get', path)
            assert answer.status_code == 200, f'a stale answer: {answer.text}'
        if choice.random() < 0.5:
            answer = self._ask(session, 'delete', path)
            # The lease is deleted already, if only the answer was lost.
            assert answer.status_code in (204, 404), answer.text
            self.deleted.add(lease['id'])

    def _ask(
        self, session: requests.Session, method: str, path: str, **kwargs: Any
    ) -> requests.Response:
        """Return the first answer that does not ask to try again."""
        deadline = time.monotonic() + PATIENCE
        while True:
            began = time.monotonic()
            try:
                answer = session.request(
                    method, self._url + path, timeout=TIMEOUT, **kwargs
                )
                status = answer.status_code
            except requests.RequestException:
                status = 0
            # A lease that is being started cannot be deleted yet.
            busy = method == 'delete' and status == 409
            final = not busy and status not in (0, *AGAIN)
            with self._lock:
                self.statuses[f'{method} {status or "none"}'] += 1
                self.waits.append((began, time.monotonic()))
                if final and method == 'post':
                    self.creates.append(self.waits[-1])
            if final:
                return answer
            assert time.monotonic() < deadline, f'{method} {path}: no answer'
            time.sleep(0.2)


class Found:
    """What plain SQL finds of the leases of a load."""

    def __init__(self, url: str, load: Load) -> None:
        engine = sa.create_engine(url)
        tables = sa.MetaData()
        tables.reflect(engine, only=[
            'lease', 'reservation', 'allocation', 'host', 'idempotency_key',
        ])
        with engine.connect() as connection:
            rows = {
                name: connection.execute(sa.select(table)).mappings().all()
                for name, table in tables.tables.items()
            }
        engine.dispose()
        held = {row['id']: row['name'] for row in rows['lease']}
        known = load.left()
        # Leases that were answered, and leases that nobody asked for once.
        self.lost = sorted(known - set(held))
        self.doubled = sorted(set(held) - known) + sorted(
            name for name, count in collections.Counter(held.values()).items()
            if count > 1
        ) + sorted(key for key, ids in load.ids.items() if len(ids) > 1)
        keys = {row['key']: row['lease_id'] for row in rows['idempotency_key']}
        self.lost += sorted(
            key for key, ids in load.ids.items()
            if keys.get(key) not in (ids - load.deleted or {None})
        )
        self.over = list(_over(rows['host'], rows['allocation']))


def _over(hosts: Any, allocations: Any) -> Iterator[tuple[str, int, str]]:
    """Yield each host, instant and class with more allocated than there is."""
    for host in hosts:
        mine = [row for row in allocations if row['host'] == host['uuid']]
        for at in {row['start'] for row in mine}:
            there = [row for row in mine if row['start'] <= at < row['end']]
            if len(there) > 1 and any(row['whole'] for row in there):
                yield host['uuid'], at, 'whole'
            for class_, inventory in _json(host['inventory']).items():
                sum_ = sum(
                    _json(row['amounts']).get(class_, 0) for row in there
                )
                if sum_ > (
                    inventory['total'] - inventory['reserved']
                ) * inventory['allocation_ratio']:
                    yield host['uuid'], at, class_


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
