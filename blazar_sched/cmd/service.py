# SPDX-License-Identifier: Apache-2.0
"""What the subcommands that run a part of the service have in common."""

import argparse
from collections.abc import Sequence
import signal
import threading
from typing import Protocol

from oslo_config import cfg
from oslo_log import log

from blazar_sched import conf


class Part(Protocol):
    """Something that was started and can be stopped."""

    def stop(self) -> None: ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--config-file',
        action='append',
        metavar='FILE',
        help='read this instead of /etc/blazar-sched/blazar-sched.conf',
    )


def configuration(args: argparse.Namespace) -> cfg.ConfigOpts:
    service = conf.service_conf(files=args.config_file)
    log.setup(service, 'blazar-sched')
    return service


def wait(parts: Sequence[Part]) -> int:
    """Block until SIGTERM or SIGINT, then stop `parts`, the last first."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    asked.wait()
    for part in reversed(parts):
        part.stop()
    return 0
