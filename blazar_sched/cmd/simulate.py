# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched simulate`: what leases cost on a trace, by policy."""

import argparse
import importlib.util
import math
import sys

from blazar_sched.simulate import lease
from blazar_sched.simulate import policy as policy_

DAY = 86400


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise ValueError
    return count


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share < 1:
        raise ValueError
    return share


def _days(text: str) -> float:
    days = float(text)
    if not 0 <= days < math.inf:
        raise ValueError
    return days


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('--instances', required=True, metavar='CSV',
        help='arrival,lifetime,vcpus,memory_mb,kind[,declared]: seconds, and '
        "kind unbounded, bounded or preemptible; or tasks of Alibaba's "
        'cluster traces')
    add('--hosts', required=True, metavar='CSV',
        help="name,vcpus,memory_mb; or nodes of Alibaba's cluster traces")
    add('--sample', type=_count, metavar='N', help='play N of the hosts')
    add('--seed', type=int, default=1, help='of all that is drawn (1)')
    times = parser.add_mutually_exclusive_group()
    times.add_argument(
        '--repeat', type=_count, default=1, metavar='N',
        help='have each instance N times, but for the first at other times')
    times.add_argument(
        '--until-refused', type=_share, metavar='SHARE',
        help='have each as often as makes freepool refuse this share (0.2)')
    add('--lease-share', type=_share, default=0.3, metavar='SHARE',
        help='of all host-hours that leases take (0.3)')
    add('--ahead', type=_days, nargs=2, default=(1.0, 14.0),
        metavar=('LEAST', 'MOST'),
        help='days between the booking of a lease and its start (1 14)')
    add('--whole', type=_share, default=0.5, metavar='SHARE',
        help='of the leases that are of whole hosts, the others are of '
        'instances (0.5)')
    add('--tries', type=_count, default=3, metavar='N',
        help='starts drawn for each lease, of which it gets the one with the '
        'least leased beside it (3)')
    add('--without', action='append', default=[], choices=policy_.PARTS,
        metavar='PART',
        help=f'play ours with a part off, too: {", ".join(policy_.PARTS)}; '
        'may be repeated')
    add('--unbounded', default='never', metavar='POLICY',
        help="[blazar_sched] unbounded (never)")
    add('--max-backfill-lifetime', type=int, metavar='SECONDS',
        help='[blazar_sched] max_backfill_lifetime (the least --ahead)')
    add('--lease-gap-weight-multiplier', type=float, default=1.0,
        metavar='FACTOR', help='of [blazar_sched] (1.0)')
    add('--json', metavar='FILE',
        help='write the results')
    add('--plot', metavar='FILE',
        help='draw the results as PNG; needs matplotlib')


def run(args: argparse.Namespace) -> int:
    for module, wanted in (('nova', True), ('matplotlib', args.plot)):
        if wanted and importlib.util.find_spec(module) is None:
            print(
                f'simulate needs {module}: '
                "pip install 'blazar-sched[simulate]'", file=sys.stderr,
            )
            return 2
    from blazar_sched.simulate import stage

    lifetime = args.max_backfill_lifetime
    if lifetime is None:
        lifetime = int(args.ahead[0] * DAY)
    load = lease.Load(
        args.lease_share, tuple(args.ahead), args.whole, args.tries
    )
    setting = stage.Setting(
        args.instances, args.hosts, load,
        {
            'unbounded': args.unbounded,
            'max_backfill_lifetime': lifetime,
            'lease_gap_weight_multiplier': args.lease_gap_weight_multiplier,
        },
        args.seed, args.sample, args.repeat, args.until_refused,
    )
    stage.perform(
        setting, policy_.compared(args.without), args.json, args.plot
    )
    return 0
