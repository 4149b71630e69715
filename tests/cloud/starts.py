# SPDX-License-Identifier: Apache-2.0
"""Measure the delay of leases that start in the same second.

``python -m tests.cloud python -m tests.cloud.starts --rounds 10`` measures on
a cloud of its own.
"""

import argparse
import datetime
import json
import os
import statistics
import sys
import time

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
    args = parser.parse_args()
    description = json.loads(os.environ[VARIABLE])
    admin = person.Person(description['auth_url'], 'admin', 'admin')
    for name in description['hosts']:
        admin.create('os-hosts', name=name)
    latest = []
    # A new cloud does everything for the first time in round 0, which is not
    # counted.
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
    account.clear(admin)
    slowest = max(latest[1:])
    print(f'latest of {args.rounds} rounds: {slowest:.2f} s')
    return int(slowest > WISH)


if __name__ == '__main__':
    sys.exit(main())
