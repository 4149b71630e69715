# SPDX-License-Identifier: Apache-2.0
"""Options for talking to another service: keystoneauth's own."""

from typing import Any

from keystoneauth1 import loading
from oslo_config import cfg


def options(**defaults: Any) -> list[cfg.Opt]:
    """Return them for one service, with its `defaults` by name."""
    opts = [
        *loading.get_auth_common_conf_options(),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(),
    ]
    # Theirs, not the configuration's: so samples show them.
    cfg.set_defaults(
        opts, valid_interfaces=['internal', 'public'], **defaults
    )
    return opts


def listed(opts: list[cfg.Opt]) -> list[cfg.Opt]:
    """Return `opts` and what ``auth_type = password`` takes, for samples.

    Those are registered once that is chosen.
    """
    return [*opts, *loading.get_auth_plugin_conf_options('password')]
