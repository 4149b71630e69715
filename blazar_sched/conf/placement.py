# SPDX-License-Identifier: Apache-2.0
"""Options for talking to Placement: keystoneauth's own.

Without ``auth_type`` there is no cloud, and what needs one is refused.
"""

from oslo_config import cfg

from blazar_sched.conf import client

GROUP = 'placement'

opts = client.options(service_type='placement')


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
