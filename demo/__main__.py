# SPDX-License-Identifier: Apache-2.0
"""`python -m demo`: the main use end to end, without a cloud."""

import argparse
import importlib.util
import logging
import os
import sys
import warnings


def main() -> int:
    """Run the demonstration; return the exit status."""
    parser = argparse.ArgumentParser(
        prog='python -m demo',
        description='Demonstrate a lease with Nova in one process.',
    )
    parser.add_argument(
        '--keep', action='store_true',
        help='keep the service running after the demo, with a few leases, '
        'and print the address of its web page',
    )
    parser.add_argument(
        '--port', type=int, default=0,
        help='port of the reservation API on 127.0.0.1 (default: a free port)',
    )
    args = parser.parse_args()
    if importlib.util.find_spec('nova') is None:
        print(
            "The demo requires Nova: run pip install '.[demo]' in a checkout",
            file=sys.stderr,
        )
        return 2
    # Nova logs these messages during shutdown, when the scenario is over.
    logging.getLogger('nova.thread_pool_factory').setLevel(logging.WARNING)
    # As in blazar_sched.cmd.main: nothing of eventlet is used.
    warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')
    os.environ.setdefault('EVENTLET_NO_GREENDNS', 'yes')
    from demo import runner

    try:
        return runner.run(keep=args.keep, port=args.port)
    except KeyboardInterrupt:
        return 130


if __name__ == '__main__':
    sys.exit(main())
