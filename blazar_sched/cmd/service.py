# SPDX-License-Identifier: Apache-2.0
"""Functions shared by the subcommands that run a part of the service.

The service is imported only on use: the other subcommands answer faster
without it, and in the demo Nova must be imported before oslo.messaging.
"""

import argparse
from collections.abc import Callable
from collections.abc import Sequence
import contextlib
import functools
import gc
import logging
import math
import os
import queue
import signal
import socket
import sys
import time
from typing import NoReturn
from typing import Protocol

from oslo_config import cfg

from blazar_sched.domain import exception

LOG = logging.getLogger(__name__)

# Seconds until a start that found no database is tried again.
PAUSE = 2.0

# The number of further objects after which garbage is collected.
COLLECT_AFTER = 50_000

# The most seconds until a signal is handled.
WAKE_UP = 1.0
ENDS = (signal.SIGTERM, signal.SIGINT)


class Part(Protocol):
    """A part of the service that runs in threads until it is stopped."""

    @property
    def hangs(self) -> bool:
        """Whether a thread of the part stands still."""

    def stop(self) -> None: ...


def spare_collections() -> None:
    """Make the garbage collector examine fewer objects, and less often.

    Objects that exist by now, above all a manager's replica, stay: examining
    them takes longer than many a response does. A list of thousands of leases
    is no garbage while it grows, but was examined for every 700 more objects.
    """
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


class _KeepOption(argparse.Action):
    """An action that keeps options as given: oslo.config needs their order."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace,
        values: str | Sequence[str] | None, option_string: str | None = None,
    ) -> None:
        namespace.config = [*namespace.config, option_string, values]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for option, metavar, text in (
        (
            '--config-file',
            'FILE',
            'configuration file to read instead of '
            '/etc/blazar-sched/blazar-sched.conf; can be given several times',
        ),
        (
            '--config-dir',
            'DIR',
            'directory whose *.conf files are read instead of those in '
            '/etc/blazar-sched/blazar-sched.conf.d; can be given several '
            'times',
        ),
    ):
        parser.add_argument(
            option, action=_KeepOption, dest='config',
            default=argparse.SUPPRESS, metavar=metavar, help=text,
        )


def configuration(args: argparse.Namespace) -> cfg.ConfigOpts:
    """Return the service's configuration for a command that a user typed.

    Warnings go to the terminal, as plain text: the log of the service, its
    levels and its formats are not for the command.

    :raises oslo_config.cfg.Error: if a file or a value cannot be read
    """
    from blazar_sched.conf import service as service_conf

    logging.basicConfig(
        level=logging.WARNING, format='%(levelname)s %(name)s: %(message)s'
    )
    # The amqp library logs a warning whenever a connection is closed.
    logging.getLogger('amqp').setLevel(logging.ERROR)
    return service_conf.load(args.config)


class _Signals:
    """Signals, which the main thread takes out of a queue.

    The first SIGTERM or SIGINT is handled by the process, the second ends the
    process at once, wherever the process is.
    """

    def __init__(self) -> None:
        # A SimpleQueue, because a signal handler's put may interrupt get.
        self._caught: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in (*ENDS, signal.SIGHUP):
            signal.signal(number, self._catch)

    def _catch(self, number: int, frame: object) -> None:
        if number in ENDS:
            for end in ENDS:
                signal.signal(end, signal.SIG_DFL)
        self._caught.put(number)

    def end(
        self, reload: Callable[[], object], timeout: float = math.inf,
        each_second: Callable[[], object] = lambda: None,
    ) -> bool:
        """Wait until the process is to end; return whether it is to end.

        :param reload: called at each SIGHUP
        """
        until = time.monotonic() + timeout
        while (left := until - time.monotonic()) > 0:
            each_second()
            # Python calls the handler of a signal in this thread, once the
            # thread runs: a wait without an end could miss a signal.
            with contextlib.suppress(queue.Empty):
                if self._caught.get(timeout=min(left, WAKE_UP)) in ENDS:
                    return True
                reload()
        return False


def tell_systemd(state: str) -> None:
    """Send a state to systemd, if systemd has started this process."""
    address = os.environ.get('NOTIFY_SOCKET', '')
    if address.startswith('@'):
        # An abstract socket.
        address = f'\0{address[1:]}'
    if address:
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
        ):
            sender.setblocking(False)
            sender.sendto(state.encode(), address)


def _watchdog(part: Part) -> None:
    if not part.hangs:
        tell_systemd('WATCHDOG=1')


def _reload(conf: cfg.ConfigOpts, args: Sequence[str]) -> None:
    """Apply changed options that may change while the service runs.

    If a file or a value cannot be read, nothing changes. `conf` itself would
    convert a value only when a part of the service asks for the value.

    :param args: the arguments that `conf` was loaded with
    """
    from blazar_sched.conf import service as service_conf

    try:
        service_conf.load(args)
        conf.mutate_config_files()
    except cfg.Error as e:
        trouble = str(e)
    else:
        LOG.info('The configuration was reloaded')
        return
    # Logged outside of the except block: inside of it, oslo.log would log
    # the error twice.
    LOG.error(
        'The configuration was not reloaded, the previous values remain in '
        'effect: %s', trouble,
    )


def run(args: argparse.Namespace, start: Callable[..., Part]) -> int:
    """Run a part of the service until SIGTERM or SIGINT; then end the process.

    :param start: starts the part; called with the configuration, and `metrics`
        to count with
    :returns: the exit status if the part cannot be started
    """
    from blazar_sched.conf import service as service_conf
    from blazar_sched.service import faults
    from blazar_sched.service import logs
    from blazar_sched.service import metrics

    signals = _Signals()
    try:
        faults.arm_from_environment()
        conf = service_conf.load(args.config)
        logs.setup(conf)
        for name in service_conf.unknown(conf):
            LOG.warning('No part of the service reads %s', name)
        counted = metrics.new()
        metrics.serve(conf, counted)
        reload = functools.partial(_reload, conf, args.config)
        part = _start(
            functools.partial(start, conf, metrics=counted), reload, signals
        )
    except (ValueError, OSError) as e:
        print(f'blazar-sched: {e}', file=sys.stderr)
        return 1
    if part is not None:
        LOG.info('Started')
        spare_collections()
        tell_systemd('READY=1')
        signals.end(reload, each_second=functools.partial(_watchdog, part))
        LOG.info('Stopping')
        part.stop()
    _exit()


def _start(
    start: Callable[[], Part], reload: Callable[[], object], signals: _Signals
) -> Part | None:
    """Start the part once the database allows it; None if told to end before.

    :raises NotUpgraded: if the tables are not those of this version
    :raises DatabaseAccessDenied: if the database denies access
    """
    while True:
        try:
            return start()
        except (exception.NotUpgraded, exception.DatabaseAccessDenied):
            raise
        except exception.Unavailable as e:
            trouble = exception.reason(e)
        # Logged outside of the except block: inside of it, oslo.log would
        # log the error twice.
        LOG.warning(
            'The service could not be started and will retry: %s', trouble
        )
        if signals.end(reload, PAUSE):
            return None


def _exit() -> NoReturn:
    """End the process now, with success.

    A thread that hangs in a call to another service would keep the process
    alive: thread pools wait for their threads at exit.
    """
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)
