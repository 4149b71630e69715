# SPDX-License-Identifier: Apache-2.0
"""Other services as a lease's creator, who is acted for by a trust."""

from oslo_log import log

from blazar_sched.domain import lease as lease_
from blazar_sched.service.clients import keystone as keystone_
from blazar_sched.service.clients import nova as nova_

LOG = log.getLogger(__name__)


def nova(
    lease: lease_.Lease, keystone: keystone_.Keystone, admin: nova_.Nova
) -> nova_.Nova:
    """Return Nova as the lease's creator, if their trust still holds.

    :param admin: Nova as whom it is else
    :raises Unavailable: if Keystone cannot be asked
    """
    adapter = keystone.adapter_for(lease.trust_id, 'compute')
    if adapter is None:
        LOG.info(
            'Lease %s has no trust that holds: what its creator should '
            "make is made in the service's own project", lease.id
        )
        return admin
    return nova_.Nova(adapter)
