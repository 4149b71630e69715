# SPDX-License-Identifier: Apache-2.0
"""Options for talking to Keystone: keystoneauth's own.

Its user is who trusts are made for: one with a password, since Keystone keeps
application credentials away from trusts. Without ``auth_type`` leases have
none.
"""

from keystoneauth1 import loading
from oslo_config import cfg

GROUP = 'keystone'

opts = [
    *loading.get_auth_common_conf_options(),
    *loading.get_session_conf_options(),
    *loading.get_adapter_conf_options(),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
    conf.set_default('service_type', 'identity', GROUP)
    conf.set_default('valid_interfaces', ['internal', 'public'], GROUP)
    # The catalog may have Keystone without a version in its URL.
    conf.set_default('version', '3', GROUP)
