# SPDX-License-Identifier: Apache-2.0
"""How far the estimates of lease requests are from the starts that came.

``python -m tests.simulation.estimates --seeds 200`` plays worlds with lease
requests, and prints how many seconds the first estimate of a waiting request
was later than the start of the lease that was booked in the end. The estimate
was too early where the number is negative: another project took the room.
"""

import argparse
import collections
import datetime
import statistics

import rich.progress

from tests.simulation import features
from tests.simulation import play


def main():
    parser = argparse.ArgumentParser(
        prog='python -m tests.simulation.estimates'
    )
    parser.add_argument('--seeds', type=int, default=200, metavar='N')
    args = parser.parse_args()
    player = play.Player()
    later, ends = [], collections.Counter()
    for seed in rich.progress.track(range(args.seeds), 'seeds'):
        _, broken = player.play(seed, (features.REQUESTS,), ('wait_for_room',))
        if broken:
            raise SystemExit(f'seed {seed}: {broken}')
        requests = player.world.lease_requests
        ends.update(status for status, _ in requests.seen.values())
        later += _differences(requests)
    player.close()
    quantiles = statistics.quantiles(later, n=20)
    print(f'requests by their status in the end: {dict(ends)}')
    print(
        f'estimate - start of {len(later)} that waited and were booked: '
        f'{min(later):.0f} s to {max(later):.0f} s, 5 %: {quantiles[0]:.0f}, '
        f'median: {statistics.median(later):.0f}, 95 %: {quantiles[-1]:.0f}; '
        f'{sum(each < 0 for each in later)} estimates were too early'
    )


def _differences(requests):
    return [
        (_time(estimate) - _time(requests.booked[id_])).total_seconds()
        for id_, estimate in requests.estimates.items()
        if estimate is not None and id_ in requests.booked
    ]


def _time(text):
    return datetime.datetime.fromisoformat(text).replace(tzinfo=None)


if __name__ == '__main__':
    main()
