# SPDX-License-Identifier: Apache-2.0
"""The configuration of the service, as one object.

It is the service's own, passed down as an argument: Nova owns the global one
wherever our code runs in its process, and some groups have the same names.
"""

import importlib
import importlib.util

from oslo_config import cfg
from oslo_log import log
from oslo_messaging import opts as messaging

from blazar_sched.conf import api
from blazar_sched.conf import client
from blazar_sched.conf import database
from blazar_sched.conf import email
from blazar_sched.conf import enforcement
from blazar_sched.conf import keystone
from blazar_sched.conf import manager
from blazar_sched.conf import metrics
from blazar_sched.conf import neutron
from blazar_sched.conf import nova
from blazar_sched.conf import placement
from blazar_sched.conf import webhook

# They have the options of keystoneauth.
CLIENTS = (keystone, neutron, nova, placement)
GROUPS = (
    api, database, email, enforcement, keystone, manager, metrics, neutron,
    nova, placement, webhook,
)

# oslo.messaging reads these from whatever object it is given, but registers
# them on the global one alone. Tracing came with its version 18.3.
_UNLISTED = {
    'oslo_messaging_metrics': 'oslo_messaging._metrics.client',
    'oslo_messaging_tracing': 'oslo_messaging._tracing.client',
}


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the service's own options by group, for oslo-config-generator."""
    return [
        (
            module.GROUP,
            client.listed(module.opts) if module in CLIENTS else module.opts,
        )
        for module in GROUPS
    ]


def load(
    args: list[str] | None = None, files: list[str] | None = None
) -> cfg.ConfigOpts:
    """Return the configuration, read from `files` and `args`.

    Without `files`, the usual places are looked at: ~/.blazar-sched,
    /etc/blazar-sched and their like. There is also the folder
    blazar-sched.conf.d, whose files are read after those, unless `files` is
    empty.

    :raises oslo_config.cfg.Error: if a file or a value cannot be read
    """
    conf = cfg.ConfigOpts()
    log.register_options(conf)
    quiet = [*log.get_default_log_levels(), 'alembic=WARNING']
    conf.set_default('default_log_levels', quiet)
    for group, opts in messaging.list_opts():
        conf.register_opts(opts, group=group)
    for group, name in _UNLISTED.items():
        if _exists(name):
            module = importlib.import_module(name)
            conf.register_opts(getattr(module, group), group=group)
    for module in GROUPS:
        module.register(conf)
    conf(
        args or [],
        project='blazar-sched',
        default_config_files=files,
        default_config_dirs=[] if files == [] else None,
    )
    return conf


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
