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
opts = client.options(service_type='identity', version='3')


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
