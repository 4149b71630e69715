# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched serve`: runs the API and the manager in one process."""

import argparse
import typing

from oslo_config import cfg
from oslo_log import log

from blazar_sched.cmd import service

if typing.TYPE_CHECKING:
    from blazar_sched.service import assembly
    from blazar_sched.service.metrics import Metrics

LOG = log.getLogger(__name__)

add_arguments = service.add_arguments


def run(args: argparse.Namespace) -> int:
    return service.run(args, _start)


def _start(conf: cfg.ConfigOpts, metrics: 'Metrics') -> 'assembly.Service':
    from blazar_sched.service import assembly

    # By default oslo.messaging would use a RabbitMQ on this machine.
    at = conf.get_location('transport_url')
    if at is None or at.location is cfg.Locations.opt_default:
        conf.set_override('transport_url', 'fake://')
        LOG.warning(
            '[DEFAULT] transport_url is not set: without a message bus '
            'nova-scheduler does not receive leases'
        )
    return assembly.start_all(conf, metrics=metrics)
