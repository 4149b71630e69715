# SPDX-License-Identifier: Apache-2.0
"""What the subcommands that run a part of the service have in common.

The service is imported when it is asked for: the other subcommands answer
faster without, and Nova, in the demo, must be imported before oslo.messaging.
"""

import argparse
from collections.abc import Callable
import functools
import gc
import logging
import os
import queue
import signal
import sys
from typing import Any
from typing import NoReturn
from typing import Protocol

from oslo_config import cfg

from blazar_sched.domain import exception

LOG = logging.getLogger(__name__)

# Seconds until a start is tried again that met a database that is away.
PAUSE = 2.0

# Objects more, until the collector looks for garbage.
COLLECT_AFTER = 50_000

ENDS = (signal.SIGTERM, signal.SIGINT)


class Part(Protocol):
    """Something that runs in threads until it is stopped."""

    def stop(self) -> None: ...


def spare_collections() -> None:
    """Have the garbage collector look at less, and more rarely.

    What is there by now, a manager's replica above all, stays: to look
    through it takes longer than many an answer does. And a list of thousands
    of leases is no garbage while it grows: it was looked through for every
    700 objects more.
    """
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


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


class _Signals:
    """Signals, as they are taken out of a queue by the main thread.

    The first SIGTERM or SIGINT is for us to obey, the second ends the
    process at once, wherever it is.
    """

    def __init__(self) -> None:
        # Its put may interrupt its own get, as signal handlers do.
        self._caught: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in (*ENDS, signal.SIGHUP):
            signal.signal(number, self._catch)

    def _catch(self, number: int, frame: object) -> None:
        if number in ENDS:
            for end in ENDS:
                signal.signal(end, signal.SIG_DFL)
        self._caught.put(number)

    def end(self, conf: cfg.ConfigOpts, timeout: float | None = None) -> bool:
        """Wait until the process is to end; say whether it is.

        At each SIGHUP read the configuration again.
        """
        try:
            while self._caught.get(timeout=timeout) not in ENDS:
                _reload(conf)
        except queue.Empty:
            return False
        return True


def _reload(conf: cfg.ConfigOpts) -> None:
    """Take over what may change while the service runs."""
    try:
        conf.mutate_config_files()
    except cfg.Error as e:
        LOG.error('The configuration stays as it was: %s', e)
    else:
        LOG.info('The configuration was read again')


def run(args: argparse.Namespace, start: Callable[..., Part]) -> int:
    """Run what `start` starts until SIGTERM or SIGINT; then end the process.

    :param start: called with the configuration, and `metrics` to count with
    :returns: what it ends with if it cannot be started
    """
    from blazar_sched.service import faults
    from blazar_sched.service import metrics

    signals = _Signals()
    try:
        faults.arm_from_environment()
        conf = configuration(args)
        counted = metrics.new()
        metrics.serve(conf, counted)
        part = _start(
            functools.partial(start, metrics=counted), conf, signals
        )
    except (ValueError, OSError) as e:
        print(f'blazar-sched: {e}', file=sys.stderr)
        return 1
    if part is not None:
        spare_collections()
        signals.end(conf)
        LOG.info('Stopping')
        part.stop()
    _exit()


def _start(
    start: Callable[[Any], Part], conf: cfg.ConfigOpts, signals: _Signals
) -> Part | None:
    """Start, as soon as the database lets it; None if told to end before.

    :raises NotUpgraded: if the tables are not this version's
    """
    while True:
        try:
            return start(conf)
        except exception.NotUpgraded:
            raise
        except exception.Unavailable as e:
            LOG.warning('Not started yet, trying on: %s', e)
        if signals.end(conf, PAUSE):
            return None


def _exit() -> NoReturn:
    """End the process now, with success.

    A thread that hangs in a call to another service would keep it alive:
    thread pools wait for their threads at exit.
    """
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)
