# SPDX-License-Identifier: Apache-2.0
"""Options of the client of Keystone, which keystoneauth defines.

The user of this group is the trustee of trusts, and needs a password, because
Keystone refuses trusts to application credentials. Without ``auth_type``
leases have no trusts.
"""

from oslo_config import cfg

from blazar_sched.conf import client

GROUP = 'keystone'

# The URL of Keystone in the catalog may have no version.
opts = [
    cfg.ListOpt(
        'trust_roles', default=['member', 'reader'],
        help='Roles that the creator of a lease delegates to the service by a '
        'trust, which lasts as long as the lease. Of these roles, the trust '
        'includes those that the creator has in the project. If the creator '
        'has none of these roles, no trust is created, and the service acts '
        'for the lease as its own user. Only used if [api] use_trusts is set.',
    ),
    *client.options(service_type='identity', version='3'),
]
