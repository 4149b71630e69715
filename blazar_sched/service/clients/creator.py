# SPDX-License-Identifier: Apache-2.0
"""Clients that act as a lease's creator by means of a trust."""

from oslo_log import log

from blazar_sched.domain.lease import Lease
from blazar_sched.service.clients.keystone import Keystone
from blazar_sched.service.clients.nova import Nova

LOG = log.getLogger(__name__)


def nova(lease: Lease, keystone: Keystone, admin: Nova) -> Nova:
    """Return a Nova client as the lease's creator, if the trust is valid.

    :param admin: the Nova client returned if the trust is not valid
    :raises Unavailable: if Keystone cannot be reached
    """
    adapter = keystone.adapter_for(lease.trust_id, 'compute')
    if adapter is None:
        LOG.info(
            'Lease %s has no usable trust: objects of its creator are made '
            'in the project of the service', lease.id
        )
        return admin
    return Nova(adapter)
