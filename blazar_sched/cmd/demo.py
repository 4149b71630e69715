# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched demo`: the main use end to end, without a cloud."""

import argparse
import importlib.util
import logging
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--keep',
        action='store_true',
        help='keep the service running after the demo, with a few leases, '
        'and print the address of its web page',
    )
    parser.add_argument(
        '--port',
        type=int,
        default=0,
        help='port of the reservation API on 127.0.0.1 (default: a free port)',
    )


def run(args: argparse.Namespace) -> int:
    if importlib.util.find_spec('nova') is None:
        print(
            "The demo requires Nova: run pip install '.[demo]' in a checkout",
            file=sys.stderr,
        )
        return 2
    # Nova logs these messages during shutdown, when the scenario is over.
    logging.getLogger('nova.thread_pool_factory').setLevel(logging.WARNING)
    from blazar_sched.demo import runner

    return runner.run(keep=args.keep, port=args.port)
