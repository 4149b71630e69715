# SPDX-License-Identifier: Apache-2.0
"""The reservation service in openstacksdk.

Either a program adds the service to its connection::

    import openstack
    import blazar_sched_client

    conn = openstack.connect(cloud='example')
    blazar_sched_client.load(conn)
    for lease in conn.reservation.leases():
        ...

or openstacksdk does so, with ``vendor_hook: blazar_sched_client:load`` in the
cloud of ``clouds.yaml``.
"""

from openstack.connection import Connection
from openstack.service_description import ServiceDescription

from blazar_sched_client._proxy import Proxy

SERVICE_TYPE = 'reservation'


def load(conn: Connection) -> None:
    """Add the reservation service to a connection, as `conn.reservation`."""
    conn.add_service(ServiceDescription(SERVICE_TYPE, {'1': Proxy}))
