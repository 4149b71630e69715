# SPDX-License-Identifier: Apache-2.0
"""Options for talking to Keystone: keystoneauth's own.

Its user is who trusts are made for: one with a password, since Keystone keeps
application credentials away from trusts. Without ``auth_type`` leases have
none.
"""

from oslo_config import cfg

from blazar_sched.conf import client

GROUP = 'keystone'

# The catalog may have Keystone without a version in its URL.
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
