# SPDX-License-Identifier: Apache-2.0
"""Access to the ledger that the configuration names."""

from collections.abc import Callable

from oslo_config import cfg

from blazar_sched.conf import database
from blazar_sched.conf import group_limit
from blazar_sched.domain.notification import Notification
from blazar_sched.service import parts
from blazar_sched.service.ledger import ledger
from blazar_sched.service.metrics import Metrics


def open_ledger(
    conf: cfg.ConfigOpts, on_change: Callable[[int], object] | None = None,
    notify: Callable[[Notification], object] | None = None,
    metrics: Metrics | None = None,
) -> ledger.Ledger:
    """Return the ledger of the [database] group, without any query.

    :param on_change: called with the revision of each commit of a change
    :param notify: called with each notification of a commit
    :param metrics: the metrics that count commits and conflicts
    :raises oslo_config.cfg.Error: if no database has such a URL
    """
    options = conf.database
    pool = {
        name: options[option] for option, name in database.POOL.items()
        if options[option] is not None
    }
    retries = options.max_retries
    try:
        return ledger.Ledger(
            options.connection,
            database.MAX_RETRIES if retries < 0 else retries,
            on_change=on_change, notify=notify, metrics=metrics,
            overcommit=conf.manager.overcommit_reservations,
            relocating=conf.manager.relocate_instances,
            group_limits=group_limit.group_limits(conf), pool=pool,
            running=parts.running(conf),
        )
    except ValueError as e:
        raise cfg.Error(f'[database] connection cannot be used: {e}') from e
