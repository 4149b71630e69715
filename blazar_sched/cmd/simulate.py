# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched simulate`: the cost of leases on a trace, by policy."""

import argparse
import importlib.util
import math
import os
import sys

from blazar_sched.domain import way
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
        raise argparse.ArgumentTypeError(
            f'the directory of {text} does not exist'
        )
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_trace(parser)
    _add_leases(parser)
    _add_policies(parser)
    _add_ways(parser)
    parser.add_argument(
        '--json',
        type=_new_file,
        metavar='FILE',
        help='file for the results, as JSON',
    )
    parser.add_argument(
        '--plot',
        type=_new_file,
        metavar='FILE',
        help='file for a plot of the results, as PNG; requires matplotlib',
    )


def _add_trace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--instances',
        required=True,
        metavar='CSV',
        help='file of instances with the columns '
        'arrival,lifetime,vcpus,memory_mb,kind[,declared]; times are in '
        'seconds, and kind is unbounded, bounded or preemptible; or the '
        "tasks of Alibaba's GPU cluster trace of 2023",
    )
    parser.add_argument(
        '--hosts',
        required=True,
        metavar='CSV',
        help='file of hosts with the columns name,vcpus,memory_mb; or the '
        "nodes of Alibaba's GPU cluster trace of 2023",
    )
    parser.add_argument(
        '--sample',
        type=_count,
        metavar='N',
        help='simulate a random sample of N hosts (default: all hosts)',
    )
    parser.add_argument(
        '--seed',
        type=int,
        default=1,
        help='seed of the random numbers (default: 1)',
    )
    parser.add_argument(
        '--seeds',
        type=_count,
        default=1,
        metavar='N',
        help='simulate N scenes, with N seeds from --seed on, and show one '
        'line for each scene (default: 1)',
    )
    parser.add_argument(
        '--jobs',
        type=_count,
        default=1,
        metavar='N',
        help='number of processes that simulate scenes (default: 1)',
    )
    parser.add_argument(
        '--gpus',
        action='store_true',
        help='count the GPUs of the instances and the hosts, of which each '
        'instance has its own; half of the leases of instances then reserve '
        'one GPU for each instance',
    )
    times = parser.add_mutually_exclusive_group()
    times.add_argument(
        '--repeat',
        type=_count,
        default=1,
        metavar='N',
        help='repeat each instance N times, each repetition at another time '
        '(default: 1)',
    )
    times.add_argument(
        '--until-refused',
        type=_share,
        metavar='SHARE',
        help='repeat each instance as often as needed for the policy '
        'freepool to refuse this share of the instances',
    )


def _add_leases(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--lease-share',
        type=_share,
        default=0.3,
        metavar='SHARE',
        help='share of all host-hours that is leased (default: 0.3)',
    )
    parser.add_argument(
        '--ahead',
        type=_days,
        nargs=2,
        default=(1.0, 14.0),
        metavar=('LEAST', 'MOST'),
        help='minimum and maximum number of days from the request for a '
        'lease to its start (default: 1 14)',
    )
    parser.add_argument(
        '--whole',
        type=_share,
        default=0.5,
        metavar='SHARE',
        help='share of the leases that reserve whole hosts; the other leases '
        'reserve instances (default: 0.5)',
    )
    parser.add_argument(
        '--tries',
        type=_count,
        default=3,
        metavar='N',
        help='number of random start times per lease, of which the lease '
        'gets the time with the least leased capacity; 1 leads to the '
        'highest peaks (default: 3)',
    )


def _add_policies(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--without',
        action='append',
        default=[],
        choices=policy.PARTS,
        help='also simulate this scheduler without this part; can be given '
        'several times; a single scene is always simulated without weighers, '
        'too',
    )
    parser.add_argument(
        '--suggest',
        action='store_true',
        help='simulate unbounded = relocate with several amounts of '
        'headroom in place of the other policies, and show the options with '
        'which every lease finds room and the fewest instances are refused',
    )
    parser.add_argument(
        '--unbounded',
        default='never',
        metavar='POLICY',
        help='value of [blazar_sched] unbounded in nova.conf (default: never)',
    )
    parser.add_argument(
        '--max-backfill-lifetime',
        type=int,
        metavar='SECONDS',
        help='value of [blazar_sched] max_backfill_lifetime in nova.conf '
        '(default: the minimum of --ahead)',
    )
    parser.add_argument(
        '--lease-gap-weight-multiplier',
        type=float,
        default=1.0,
        metavar='FACTOR',
        help='value of [blazar_sched] lease_gap_weight_multiplier in '
        'nova.conf (default: 1.0)',
    )
    parser.add_argument(
        '--migration-failure',
        type=_share,
        default=0.0,
        metavar='SHARE',
        help='share of the live migrations that fail; such a migration is '
        'tried again (default: 0)',
    )


def _add_ways(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--unbounded-fixed',
        default='forever',
        metavar='POLICY',
        help='value of [blazar_sched] unbounded_fixed in nova.conf (default: '
        'forever)',
    )
    parser.add_argument(
        '--cold',
        type=_share,
        default=0.0,
        metavar='SHARE',
        help='share of the instances without GPUs that are moved by cold '
        'migration (default: 0)',
    )
    parser.add_argument(
        '--fixed',
        type=_share,
        default=0.0,
        metavar='SHARE',
        help='share of the instances without GPUs that cannot be moved '
        '(default: 0)',
    )
    parser.add_argument(
        '--gpu-way',
        choices=['no', *filter(None, way.WAYS)],
        default='no',
        help='how instances with GPUs are moved (default: no)',
    )


def run(args: argparse.Namespace) -> int:
    if args.seeds > 1 and (args.suggest or args.plot):
        print(
            'simulate: --suggest and --plot require a single seed',
            file=sys.stderr,
        )
        return 2
    for module, wanted in (('nova', True), ('matplotlib', args.plot)):
        if wanted and importlib.util.find_spec(module) is None:
            print(
                f"simulate requires {module}: run pip install '.[simulate]' "
                'in a checkout',
                file=sys.stderr,
            )
            return 2
    from blazar_sched.simulate import comparison

    least, most = sorted(args.ahead)
    lifetime = args.max_backfill_lifetime
    if lifetime is None:
        lifetime = int(least * DAY)
    load = lease.Load(
        args.lease_share, (least, most), args.whole, args.tries
    )
    settings = comparison.Settings(
        args.instances, args.hosts, load,
        {
            'unbounded': args.unbounded,
            'unbounded_fixed': args.unbounded_fixed,
            'max_backfill_lifetime': lifetime,
            'lease_gap_weight_multiplier': args.lease_gap_weight_multiplier,
        },
        args.seed, args.sample, args.repeat, args.until_refused,
        args.migration_failure, args.gpus,
        (args.cold, args.fixed, way.read_way(args.gpu_way) or ''),
    )
    if args.seeds > 1:
        comparison.run_scenes(
            settings, policy.compared(args.without), args.seeds, args.jobs,
            args.json,
        )
        return 0
    policies = (
        policy.suggested() if args.suggest
        else policy.compared([*args.without, policy.WEIGHERS])
    )
    comparison.run(settings, policies, args.json, args.plot, args.suggest)
    return 0
