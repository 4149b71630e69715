# SPDX-License-Identifier: Apache-2.0
"""Options of the clients of other services, which keystoneauth defines."""

from typing import Any

from keystoneauth1 import loading
from oslo_config import cfg


def options(**defaults: Any) -> list[cfg.Opt]:
    """Return the options of one client, with its `defaults` by name."""
    opts = [
        *loading.get_auth_common_conf_options(),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(),
    ]
    # Set on the options, not on the configuration, so that samples show the
    # defaults.
    cfg.set_defaults(opts, valid_interfaces=['internal', 'public'], **defaults)
    return opts


def listed(opts: list[cfg.Opt]) -> list[cfg.Opt]:
    """Return `opts` and the options of ``auth_type = password``, for samples.

    The options of an auth_type are registered once the auth_type is chosen.
    """
    return [*opts, *loading.get_auth_plugin_conf_options('password')]
