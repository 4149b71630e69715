# SPDX-License-Identifier: Apache-2.0
"""Options for talking to Neutron: keystoneauth's own.

Without ``auth_type`` no floating IPs can be reserved.
"""

from keystoneauth1 import loading
from oslo_config import cfg

GROUP = 'neutron'

opts = [
    *loading.get_auth_common_conf_options(),
    *loading.get_session_conf_options(),
    *loading.get_adapter_conf_options(),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
    conf.set_default('service_type', 'network', GROUP)
    conf.set_default('valid_interfaces', ['internal', 'public'], GROUP)
