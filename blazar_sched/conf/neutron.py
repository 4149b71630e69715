# SPDX-License-Identifier: Apache-2.0
"""Options of the client of Neutron, which keystoneauth defines.

Without ``auth_type`` no floating IPs can be reserved.
"""

from oslo_config import cfg

from blazar_sched.conf import client

GROUP = 'neutron'

opts = client.options(service_type='network')


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
