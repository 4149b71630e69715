# SPDX-License-Identifier: Apache-2.0
"""Configuration, one file a group.

The service reads a ConfigOpts object of its own, passed down as an argument:
Nova owns the global one wherever our code runs in its process, and some of
its groups have the same names.
"""

from oslo_config import cfg
from oslo_log import log
from oslo_messaging import opts as messaging

# Private, but oslo.messaging reads these options from whatever object it is
# given and registers them on the global one alone.
from oslo_messaging._metrics import client as metrics
from oslo_messaging._tracing import client as tracing

from blazar_sched.conf import api
from blazar_sched.conf import database
from blazar_sched.conf import manager
from blazar_sched.conf import nova
from blazar_sched.conf import placement

SERVICE_GROUPS = (api, database, manager, nova, placement)


def service_conf(
    args: list[str] | None = None, files: list[str] | None = None
) -> cfg.ConfigOpts:
    """Return the service's configuration, read from `files` and `args`.

    Without `files`, the usual places are looked at: ~/.blazar-sched,
    /etc/blazar-sched and their like.
    """
    service = cfg.ConfigOpts()
    log.register_options(service)
    for group, opts in messaging.list_opts():
        service.register_opts(opts, group=group)
    service.register_opts(
        metrics.oslo_messaging_metrics, group='oslo_messaging_metrics'
    )
    service.register_opts(
        tracing.oslo_messaging_tracing, group='oslo_messaging_tracing'
    )
    for module in SERVICE_GROUPS:
        module.register(service)
    service(args or [], project='blazar-sched', default_config_files=files)
    return service
