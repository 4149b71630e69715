# SPDX-License-Identifier: Apache-2.0
"""Functions shared by the subcommands that query nova-scheduler's workers."""

import argparse
from typing import Any

from oslo_config import cfg

from blazar_sched.cmd import service


def add_arguments(parser: argparse.ArgumentParser) -> None:
    service.add_arguments(parser)
    parser.add_argument(
        '--wait', type=float, default=3.0, metavar='SECONDS',
        help='seconds to wait for responses (default: 3)',
    )
    parser.add_argument(
        '--json', action='store_true', help='print JSON instead of a table'
    )


def query(
    args: argparse.Namespace, method: str, **what: Any
) -> list[tuple[str, Any]]:
    """Ask the workers, with the options of `add_arguments`: see `ask`."""
    return ask(service.configuration(args), args.wait, method, **what)


def ask(
    conf: cfg.ConfigOpts, wait: float, method: str, **what: Any
) -> list[tuple[str, Any]]:
    """Ask the workers: see service.bus.schedulers.

    :param wait: seconds to wait for responses
    :raises oslo_config.cfg.Error: if no transport_url is set
    :raises Unavailable: if the bus does not answer
    """
    from blazar_sched.service.bus import rpc
    from blazar_sched.service.bus import schedulers

    bus = rpc.transport(conf)
    # By default oslo.messaging would use a RabbitMQ on this machine.
    at = conf.get_location('transport_url')
    if at is None or at.location is cfg.Locations.opt_default:
        raise cfg.Error(
            '[DEFAULT] transport_url is not set: without a message bus no '
            'worker can be asked'
        )
    return schedulers.query(bus, wait, method, **what)
