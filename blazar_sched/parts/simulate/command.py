# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched simulate`: the cost of leases on a trace, by policy."""

import argparse
import contextlib
import importlib.util
import math
import os
import sys
import tempfile
import time

from rich import progress

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import way
from blazar_sched.parts.simulate import lease
from blazar_sched.parts.simulate import policy
from blazar_sched.parts.simulate import trace

DAY = 86400
# The days of a cloud's past that are simulated, unless --days is given.
MONTH = 30


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


def _folder(text: str) -> str:
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f'{text} is not a directory')
    return text


def _new_file(text: str) -> str:
    # Checked before the simulation runs, not afterwards.
    if not os.path.isdir(os.path.dirname(text) or os.curdir):
        raise argparse.ArgumentTypeError(
            f'the directory of {text} does not exist'
        )
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_cloud(parser)
    _add_trace(parser)
    _add_leases(parser)
    _add_policies(parser)
    _add_ways(parser)
    parser.add_argument(
        '--json', type=_new_file, metavar='FILE',
        help='file for the results, as JSON',
    )


def _add_cloud(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--os-cloud', metavar='NAME',
        help='cloud in clouds.yaml whose Nova and Placement are asked for '
        'instances and hosts, in place of --instances and --hosts; envvars '
        'for the cloud of the OS_* environment variables. Requires an '
        'administrator; nothing in the cloud is changed',
    )
    parser.add_argument(
        '--days', type=_count, metavar='N',
        help='number of days to simulate: with --os-cloud the last N days '
        f'(default: {MONTH}), otherwise the first N days of the trace '
        '(default: until the last arrival)',
    )
    parser.add_argument(
        '--save', type=_folder, metavar='DIRECTORY',
        help='with --os-cloud, directory for the files instances.csv and '
        'hosts.csv with what was read, for --instances and --hosts',
    )


def _add_trace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--instances', metavar='CSV',
        help='file of instances with the columns '
        'arrival,lifetime,vcpus,memory_mb,kind[,declared]; times are in '
        'seconds, and kind is unbounded, bounded or preemptible; or the '
        "tasks of Alibaba's GPU cluster trace of 2023",
    )
    parser.add_argument(
        '--hosts', metavar='CSV',
        help='file of hosts with the columns name,vcpus,memory_mb; or the '
        "nodes of Alibaba's GPU cluster trace of 2023",
    )
    parser.add_argument(
        '--sample', type=_count, metavar='N',
        help='simulate a random sample of N hosts (default: all hosts)',
    )
    parser.add_argument(
        '--seed', type=int, default=1,
        help='seed of the random numbers (default: 1)',
    )
    parser.add_argument(
        '--seeds', type=_count, default=1, metavar='N',
        help='simulate N scenes, with N seeds from --seed on, and show one '
        'line for each scene (default: 1)',
    )
    parser.add_argument(
        '--jobs', type=_count, default=1, metavar='N',
        help='number of processes that simulate scenes (default: 1)',
    )
    parser.add_argument(
        '--gpus', action='store_true',
        help='count the GPUs of the instances and the hosts, of which each '
        'instance has its own; half of the leases of instances then reserve '
        'one GPU for each instance',
    )
    times = parser.add_mutually_exclusive_group()
    times.add_argument(
        '--repeat', type=_count, default=1, metavar='N',
        help='repeat each instance N times, each repetition at another time '
        '(default: 1)',
    )
    times.add_argument(
        '--until-refused', type=_share, metavar='SHARE',
        help='repeat each instance as often as needed for the policy '
        'freepool to refuse this share of the instances',
    )


def _add_leases(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--lease-share', type=_share, default=0.3, metavar='SHARE',
        help='share of all host-hours that is leased (default: 0.3)',
    )
    parser.add_argument(
        '--ahead', type=_days, nargs=2, default=(1.0, 14.0),
        metavar=('LEAST', 'MOST'),
        help='minimum and maximum number of days from the request for a '
        'lease to its start (default: 1 14)',
    )
    parser.add_argument(
        '--whole', type=_share, default=0.5, metavar='SHARE',
        help='share of the leases that reserve whole hosts; the other leases '
        'reserve instances (default: 0.5)',
    )
    parser.add_argument(
        '--tries', type=_count, default=3, metavar='N',
        help='number of random start times per lease, of which the lease '
        'gets the time with the least leased capacity; 1 leads to the '
        'highest peaks (default: 3)',
    )


def _add_policies(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--without', action='append', default=[], choices=policy.PARTS,
        help='also simulate this scheduler without this part; can be given '
        'several times; a single scene is always simulated without weighers, '
        'too',
    )
    parser.add_argument(
        '--suggest', action='store_true',
        help='simulate unbounded = relocate with several amounts of '
        'headroom in place of the other policies, and show the options with '
        'which every lease finds room and the fewest VCPU-hours are refused',
    )
    parser.add_argument(
        '--unbounded', default=duration.RELOCATE, metavar='POLICY',
        help='value of [manager] unbounded (default: relocate)',
    )
    parser.add_argument(
        '--lease-gap-weight-multiplier', type=float, default=1.0,
        metavar='FACTOR',
        help='value of [blazar_sched] lease_gap_weight_multiplier in '
        'nova.conf (default: 1.0)',
    )
    parser.add_argument(
        '--migration-failure', type=_share, default=0.0, metavar='SHARE',
        help='share of the live migrations that fail; such a migration is '
        'tried again (default: 0)',
    )


def _add_ways(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--unbounded-fixed', default='forever', metavar='POLICY',
        help='value of [manager] unbounded_fixed (default: forever)',
    )
    parser.add_argument(
        '--cold', type=_share, default=0.0, metavar='SHARE',
        help='share of the instances without GPUs that are moved by cold '
        'migration (default: 0)',
    )
    parser.add_argument(
        '--fixed', type=_share, default=0.0, metavar='SHARE',
        help='share of the instances without GPUs that cannot be moved '
        '(default: 0)',
    )
    parser.add_argument(
        '--gpu-way', choices=['no', *filter(None, way.WAYS)], default='no',
        help='how instances with GPUs are moved (default: no)',
    )


def run(args: argparse.Namespace) -> int:
    files = [each for each in (args.instances, args.hosts) if each]
    if len(files) != (0 if args.os_cloud else 2):
        print(
            'simulate: either --instances and --hosts or --os-cloud is '
            'required',
            file=sys.stderr,
        )
        return 2
    if args.save and not args.os_cloud:
        print('simulate: --save requires --os-cloud', file=sys.stderr)
        return 2
    if args.seeds > 1 and args.suggest:
        print('simulate: --suggest requires a single seed', file=sys.stderr)
        return 2
    if importlib.util.find_spec('nova') is None:
        print(
            "simulate requires nova: run pip install '.[simulate]' in a "
            'checkout',
            file=sys.stderr,
        )
        return 2
    if not args.os_cloud:
        _simulate(args)
        return 0
    args.days = args.days or MONTH
    with (
        contextlib.nullcontext(args.save) if args.save
        else tempfile.TemporaryDirectory()
    ) as folder:
        args.instances = os.path.join(folder, 'instances.csv')
        args.hosts = os.path.join(folder, 'hosts.csv')
        _read_cloud(args, int(time.time()))
        _simulate(args)
    return 0


def _read_cloud(args: argparse.Namespace, now: int) -> None:
    """Write the files of instances and hosts from the cloud's past.

    :raises Unavailable: if the cloud cannot be asked
    :raises InvalidInput: if the cloud has no hosts or had no servers
    """
    from blazar_sched.parts.simulate import nova_history

    with progress.Progress() as bar:
        past = nova_history.read_cloud(
            args.os_cloud, now - args.days * DAY, now, bar
        )
    print(
        f'{args.os_cloud}, last {args.days} days: {len(past.hosts)} hosts, '
        f'{past.servers} servers'
    )
    if past.unread:
        print(
            f'The actions of {past.unread} servers cannot be read: these '
            'servers count as never shelved.'
        )
    if not past.hosts or not past.instances:
        raise exception.InvalidInput(
            f'--os-cloud {args.os_cloud}: nothing to simulate'
        )
    trace.write_instances(args.instances, past.instances)
    trace.write_hosts(args.hosts, past.hosts)


def _simulate(args: argparse.Namespace) -> None:
    from blazar_sched.parts.simulate import comparison

    least, most = sorted(args.ahead)
    load = lease.Load(args.lease_share, (least, most), args.whole, args.tries)
    settings = comparison.Settings(
        args.instances, args.hosts, load,
        {
            'unbounded': args.unbounded,
            'unbounded_fixed': args.unbounded_fixed,
            'lease_gap_weight_multiplier': args.lease_gap_weight_multiplier,
        },
        args.seed, args.sample, args.repeat, args.until_refused,
        args.migration_failure, args.gpus,
        (args.cold, args.fixed, way.read_way(args.gpu_way) or ''),
        args.days and args.days * DAY,
    )
    if args.seeds > 1:
        comparison.run_scenes(
            settings, policy.compared(args.without), args.seeds, args.jobs,
            args.json,
        )
        return
    policies = (
        policy.suggested() if args.suggest
        else policy.compared([*args.without, policy.WEIGHERS])
    )
    comparison.run(settings, policies, args.json, args.suggest)
