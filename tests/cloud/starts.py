# SPDX-License-Identifier: Apache-2.0
"""Measure the delay of leases that start in the same second.

``python -m tests.cloud python -m tests.cloud.starts --rounds 10`` measures on
a cloud of its own. With ``--refuse 400`` Placement refuses the first change of
inventories of each lease.
"""

import argparse
from collections.abc import Iterator
import contextlib
import datetime
from http import server
import json
import os
import pathlib
import signal
import statistics
import sys
import threading
import time
from typing import Any

import requests

from tests.cloud import account
from tests.cloud import person
from tests.cloud import polling
from tests.cloud.__main__ import VARIABLE

# Seconds from the creation of leases to their start, and between two polls.
# Each poll takes time from the measured work.
AHEAD = 6
PAUSE = 0.2
# Seconds within which all leases of a round should be ACTIVE.
WISH = 2.0
REASON = {
    'errors': [
        {'status': 400, 'detail': 'Unknown resource class in inventory'}
    ]
}


class Placement(server.BaseHTTPRequestHandler):
    """A proxy of Placement that refuses some requests.

    :cvar target: the URL of Placement
    :cvar status: the status of a refusal, None if nothing is refused
    :cvar refused: the resource classes whose first inventory was refused
    """

    protocol_version = 'HTTP/1.1'
    target: str
    status: int | None
    refused: set[str]
    lock = threading.Lock()
    # Connections are kept alive: new connections would take time from the
    # measured work.
    session = requests.Session()

    def handle_any(self) -> None:
        length = int(self.headers.get('Content-Length') or 0)
        body = self.rfile.read(length)
        if self._is_refused(body):
            self._answer(self.status or 0, json.dumps(REASON).encode(), {})
            return
        headers = {k: v for k, v in self.headers.items() if k != 'Host'}
        answer = self.session.request(
            self.command, self.target + self.path, data=body, headers=headers
        )
        self._answer(answer.status_code, answer.content, answer.headers)

    do_GET = do_PUT = do_POST = do_DELETE = handle_any

    def log_message(self, *args: object) -> None:
        """Log nothing."""

    def _is_refused(self, body: bytes) -> bool:
        path = self.path.partition('?')[0]
        if self.command != 'PUT' or not path.endswith('/inventories'):
            return False
        if self.status is None:
            return False
        with self.lock:
            new = set(json.loads(body)['inventories']) - self.refused
            self.refused.update(new)
        return bool(new)

    def _answer(self, status: int, body: bytes, headers: Any) -> None:
        self.send_response(status)
        for name in ('Content-Type', 'OpenStack-API-Version'):
            if name in headers:
                self.send_header(name, headers[name])
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def proxied(
    admin: person.Person, folder: pathlib.Path, status: int
) -> Iterator[None]:
    """Make the manager reach Placement through a proxy that refuses requests.

    :param folder: the folder of the cloud
    """
    Placement.target = admin.sdk.placement.get_endpoint().rstrip('/')
    Placement.status = status
    Placement.refused = set()
    proxy = server.ThreadingHTTPServer(('127.0.0.1', 0), Placement)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    path = folder / 'etc' / 'blazar-sched.conf'
    before = path.read_text()
    url = f'http://127.0.0.1:{proxy.server_port}'
    path.write_text(
        before.replace(
            '[placement]\n', f'[placement]\nendpoint_override = {url}\n'
        )
    )
    restart_manager(admin, folder)
    try:
        yield
    finally:
        path.write_text(before)
        restart_manager(admin, folder)
        proxy.shutdown()


def restart_manager(admin: person.Person, folder: pathlib.Path) -> None:
    """Kill the manager, and wait until the next manager responds."""
    file = folder / 'manager.pid'
    killed = file.read_text()
    os.kill(int(killed), signal.SIGKILL)
    polling.until(lambda: file.read_text() not in ('', killed))
    polling.until(lambda: admin.reservation.get('/os-hosts').ok)


def play(admin: person.Person, leases: int) -> list[float]:
    """Return the seconds from each lease's start until it is ACTIVE."""
    start = int(time.time()) + AHEAD
    window = [
        datetime.datetime.fromtimestamp(at, datetime.UTC).strftime(
            '%Y-%m-%d %H:%M:%S'
        )
        for at in (start, start + 3600)
    ]
    for number in range(leases):
        admin.create(
            'leases', name=f'lease {number}', start_date=window[0],
            end_date=window[1],
            reservations=[person.instances(vcpus=1, memory_mb=64)],
        )
    active: dict[str, float] = {}
    while len(active) < leases:
        assert time.time() < start + polling.PATIENCE, active
        time.sleep(PAUSE)
        now = time.time()
        for lease in admin.get('leases')['leases']:
            if lease['status'] == 'ACTIVE':
                active.setdefault(lease['id'], now - start)
    return sorted(active.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=10)
    parser.add_argument('--leases', type=int, default=6)
    parser.add_argument('--refuse', type=int, choices=(400, 409))
    args = parser.parse_args()
    description = json.loads(os.environ[VARIABLE])
    admin = person.Person(description['auth_url'], 'admin', 'admin')
    for name in description['hosts']:
        admin.create('os-hosts', name=name)
    folder = pathlib.Path(description['folder'])
    latest = []
    with contextlib.ExitStack() as stack:
        if args.refuse:
            stack.enter_context(proxied(admin, folder, args.refuse))
        # A new cloud does everything for the first time in round 0, which is
        # not counted.
        for number in range(args.rounds + 1):
            seconds = play(admin, args.leases)
            latest.append(seconds[-1])
            print(
                f'round {number}: all ACTIVE after {seconds[-1]:.2f} s, '
                f'the median after {statistics.median(seconds):.2f} s',
                flush=True,
            )
            for lease in admin.get('leases')['leases']:
                admin.reservation.delete(f'/leases/{lease["id"]}')
            polling.until(lambda: not admin.get('leases')['leases'])
        if args.refuse:
            print(f'{len(Placement.refused)} classes refused once')
    account.clear(admin)
    slowest = max(latest[1:])
    print(f'latest of {args.rounds} rounds: {slowest:.2f} s')
    return int(slowest > WISH)


if __name__ == '__main__':
    sys.exit(main())
