# SPDX-License-Identifier: Apache-2.0
"""How the manager is called: its topic, its client, its server.

Arguments and answers are JSON primitives. Refusals travel as the classes of
domain.exception, so a caller may catch those by name.
"""

from collections.abc import Sequence
import socket
from typing import Any

from oslo_config import cfg
import oslo_messaging

from blazar_sched.domain import exception
from blazar_sched.replica import wire

EXCHANGE = wire.EXCHANGE
TOPIC = wire.TOPIC
VERSION = wire.RPC_VERSION


def transport(conf: cfg.ConfigOpts) -> oslo_messaging.Transport:
    """Open the bus that `conf` names ([DEFAULT] transport_url)."""
    return oslo_messaging.get_rpc_transport(
        conf, allowed_remote_exmods=[exception.__name__]
    )


class Client:
    """Calls a manager; safe to share between threads.

    :param bus: what `transport` returned
    :param timeout: seconds to wait, default [DEFAULT] rpc_response_timeout
    """

    def __init__(
        self, bus: oslo_messaging.Transport, timeout: float | None = None
    ) -> None:
        target = oslo_messaging.Target(
            exchange=EXCHANGE, topic=TOPIC, version=VERSION
        )
        self._client = oslo_messaging.get_rpc_client(
            bus, target, timeout=timeout
        )

    def call(self, ctxt: dict[str, Any], method: str, **kwargs: Any) -> Any:
        """Call `method` of the manager's end point and return its answer.

        :param ctxt: an oslo.context as a dict
        :raises BlazarSchedError: the subclass that the manager raised
        :raises Unavailable: if no manager answers in time
        """
        try:
            return self._client.call(ctxt, method, **kwargs)
        except (
            oslo_messaging.MessagingTimeout,
            oslo_messaging.MessageDeliveryFailure,
        ) as e:
            raise exception.Unavailable('the manager does not answer') from e


def serve(
    bus: oslo_messaging.Transport, endpoints: Sequence[Any]
) -> oslo_messaging.MessageHandlingServer:
    """Start to answer calls with `endpoints`, in threads.

    The caller ends it by `stop()`, then `wait()`.
    """
    target = oslo_messaging.Target(
        exchange=EXCHANGE, topic=TOPIC, server=socket.gethostname()
    )
    server = oslo_messaging.get_rpc_server(
        bus,
        target,
        endpoints,
        executor='threading',
        access_policy=oslo_messaging.DefaultRPCAccessPolicy,
    )
    server.start()
    return server
