# SPDX-License-Identifier: Apache-2.0
"""Options of the client of Keystone: those of keystoneauth.

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
        'trust_roles',
        default=['member', 'reader'],
        help='The roles that the creator of a lease lends to the service for '
        'as long as the lease lasts: those of these that the creator has in '
        'the project. A creator who has none of them lends nothing, and the '
        'service acts for the lease as its own user.',
    ),
    *client.options(service_type='identity', version='3'),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
