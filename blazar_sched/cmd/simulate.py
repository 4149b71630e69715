# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched simulate`: the cost of leases on a trace, by policy."""

import argparse
import importlib.util
import math
import os
import sys

from blazar_sched.simulate import lease
from blazar_sched.simulate import policy

DAY = 86400


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise ValueError
    return count


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError
    return share


def _days(text: str) -> float:
    days = float(text)
    if not 0 <= days < math.inf:
        raise ValueError
    return days


def _new_file(text: str) -> str:
    # Checked before the simulation runs, not afterwards.
    if not os.path.isdir(os.path.dirname(text) or os.curdir):
        raise argparse.ArgumentTypeError(f'there is no folder for {text}')
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_trace(parser)
    _add_leases(parser)
    _add_policies(parser)
    parser.add_argument(
        '--json', type=_new_file, metavar='FILE', help='write the results'
    )
    parser.add_argument(
        '--plot',
        type=_new_file,
        metavar='FILE',
        help='draw the results as PNG; needs matplotlib',
    )


def _add_trace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--instances',
        required=True,
        metavar='CSV',
        help='arrival,lifetime,vcpus,memory_mb,kind[,declared]: seconds, and '
        "kind unbounded, bounded or preemptible; or the tasks of Alibaba's "
        'GPU cluster trace of 2023',
    )
    parser.add_argument(
        '--hosts',
        required=True,
        metavar='CSV',
        help='name,vcpus,memory_mb; or the nodes of that trace',
    )
    parser.add_argument(
        '--sample', type=_count, metavar='N', help='play N of the hosts'
    )
    parser.add_argument(
        '--seed', type=int, default=1, help='of all that is drawn (1)'
    )
    times = parser.add_mutually_exclusive_group()
    times.add_argument(
        '--repeat',
        type=_count,
        default=1,
        metavar='N',
        help='have each instance N times, all but the first shifted',
    )
    times.add_argument(
        '--until-refused',
        type=_share,
        metavar='SHARE',
        help='have each so often that freepool refuses this share',
    )


def _add_leases(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--lease-share',
        type=_share,
        default=0.3,
        metavar='SHARE',
        help='of all host-hours that leases take (0.3)',
    )
    parser.add_argument(
        '--ahead',
        type=_days,
        nargs=2,
        default=(1.0, 14.0),
        metavar=('LEAST', 'MOST'),
        help='days between the booking of a lease and its start (1 14)',
    )
    parser.add_argument(
        '--whole',
        type=_share,
        default=0.5,
        metavar='SHARE',
        help='of the leases that take whole hosts, not instances (0.5)',
    )
    parser.add_argument(
        '--tries',
        type=_count,
        default=3,
        metavar='N',
        help='starts drawn for each lease, of which it gets the one with the '
        'least leased beside it; 1: all the peaks of chance (3)',
    )


def _add_policies(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--without',
        action='append',
        default=[],
        choices=policy.PARTS,
        help='play ours with this off, too; may be given several times',
    )
    parser.add_argument(
        '--unbounded',
        default='never',
        metavar='POLICY',
        help='of [blazar_sched] in nova.conf (never)',
    )
    parser.add_argument(
        '--max-backfill-lifetime',
        type=int,
        metavar='SECONDS',
        help='the same (the least that leases are booked ahead)',
    )
    parser.add_argument(
        '--lease-gap-weight-multiplier',
        type=float,
        default=1.0,
        metavar='FACTOR',
        help='the same (1.0)',
    )


def run(args: argparse.Namespace) -> int:
    for module, wanted in (('nova', True), ('matplotlib', args.plot)):
        if wanted and importlib.util.find_spec(module) is None:
            print(
                f"simulate needs {module}: pip install '.[simulate]' in a "
                'checkout', file=sys.stderr,
            )
            return 2
    from blazar_sched.simulate import stage

    least, most = sorted(args.ahead)
    lifetime = args.max_backfill_lifetime
    if lifetime is None:
        lifetime = int(least * DAY)
    load = lease.Load(
        args.lease_share, (least, most), args.whole, args.tries
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
        setting, policy.compared(args.without), args.json, args.plot
    )
    return 0
