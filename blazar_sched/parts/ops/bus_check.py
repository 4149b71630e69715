# SPDX-License-Identifier: Apache-2.0
"""A check of the message buses of the service and of nova-scheduler.

For `blazar-sched status upgrade check`: the service should have a bus of its
own, and nova-scheduler should listen on the service's bus.
"""

import dataclasses

from oslo_concurrency import lockutils
from oslo_config import cfg
import oslo_messaging
from oslo_upgradecheck import upgradecheck

from blazar_sched.conf import scheduler as scheduler_conf

# The options of RabbitMQ by which exchanges and queues are declared.
_DECLARED = (
    'amqp_durable_queues', 'rabbit_quorum_queue',
    'rabbit_transient_quorum_queue', 'rabbit_stream_fanout',
)


@dataclasses.dataclass(frozen=True, slots=True)
class Bus:
    """The bus that a transport_url names: nodes as (host, port), and vhost."""

    nodes: frozenset[tuple[str, int | None]]
    vhost: str
    users: frozenset[str]

    def is_same_as(self, other: 'Bus') -> bool:
        """Tell whether a message on one bus arrives on the other bus."""
        return self.vhost == other.vhost and (
            self.nodes == other.nodes or not self.nodes.isdisjoint(other.nodes)
        )

    def __str__(self) -> str:
        nodes = ', '.join(sorted(name for name, _ in self.nodes))
        return f'vhost {self.vhost or "/"} of {nodes or "localhost"}'


def check(conf: cfg.ConfigOpts, nova: cfg.ConfigOpts) -> upgradecheck.Result:
    """Compare the bus of the service with the buses that nova.conf names.

    :param conf: the service's configuration
    :param nova: nova-scheduler's configuration
    :raises oslo_messaging.InvalidTransportURL: if a URL cannot be read
    :raises ValueError: if the port of a URL is not a number
    """
    different = [
        name for name in _DECLARED
        if conf.oslo_messaging_rabbit[name] != nova.oslo_messaging_rabbit[name]
    ]
    if different:
        return _warning(
            f'{", ".join(different)} must have the same value in '
            '[oslo_messaging_rabbit] of blazar-sched.conf and of nova.conf: '
            'RabbitMQ refuses an exchange or a queue that is declared in two '
            'ways, and nova-scheduler receives no leases.'
        )
    if conf.oslo_messaging_rabbit.use_queue_manager and not (
        lockutils.get_lock_path(conf)
    ):
        return upgradecheck.Result(
            upgradecheck.Code.FAILURE,
            '[oslo_messaging_rabbit] use_queue_manager needs '
            '[oslo_concurrency] lock_path in blazar-sched.conf: no process '
            'can use the message bus.',
        )
    own = _bus(conf)
    of_nova = _bus(nova)
    of_workers = _bus(nova, nova[scheduler_conf.GROUP].transport_url)
    if not own.is_same_as(of_workers):
        return _warning(
            f'The managers use {own}, from [DEFAULT] transport_url in '
            f'blazar-sched.conf, but nova-scheduler uses {of_workers}, from '
            '[blazar_sched] transport_url in nova.conf. nova-scheduler does '
            'not receive leases until both options name the same message bus.'
        )
    if own.is_same_as(of_nova) and not own.users.isdisjoint(of_nova.users):
        return _warning(
            f'The managers use {own} with the same user as Nova: anyone who '
            'has the password of the message bus from a compute host can '
            'change every lease. Create a virtual host and a user for '
            'blazar-sched, and set transport_url to them.'
        )
    return upgradecheck.Result(upgradecheck.Code.SUCCESS)


def _bus(conf: cfg.ConfigOpts, url: str | None = None) -> Bus:
    """Return the bus of a URL, by default of [DEFAULT] transport_url."""
    parsed = oslo_messaging.TransportURL.parse(conf, url)
    return Bus(
        nodes=frozenset((h.hostname, h.port) for h in parsed.hosts),
        vhost=parsed.virtual_host or '',
        users=frozenset(h.username or '' for h in parsed.hosts),
    )


def _warning(details: str) -> upgradecheck.Result:
    return upgradecheck.Result(upgradecheck.Code.WARNING, details)
