# SPDX-License-Identifier: Apache-2.0
"""What the subcommands that run a part of the service have in common.

The service is imported when it is asked for: the other subcommands answer
faster without, and Nova, in the demo, must be imported before oslo.messaging.
"""

import argparse
from collections.abc import Callable
import signal
import sys
import threading
from typing import Any
from typing import Protocol

from oslo_config import cfg


class Part(Protocol):
    """Something that runs in threads until it is stopped."""

    def stop(self) -> None: ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--config-file',
        action='append',
        metavar='FILE',
        help='read this instead of /etc/blazar-sched/blazar-sched.conf',
    )


def configuration(args: argparse.Namespace) -> Any:
    """Return the service's configuration, with logging set up by it."""
    from oslo_log import log

    from blazar_sched.conf import service as conf_

    conf = conf_.load(files=args.config_file)
    log.setup(conf, 'blazar-sched')
    return conf


def run(
    args: argparse.Namespace, start: Callable[[Any], Part]
) -> int:
    """Run what `start` starts until SIGTERM or SIGINT."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    try:
        part = start(configuration(args))
    except (cfg.Error, ValueError, OSError) as e:
        print(f'blazar-sched: {e}', file=sys.stderr)
        return 1
    asked.wait()
    part.stop()
    return 0
