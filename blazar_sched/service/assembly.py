# SPDX-License-Identifier: Apache-2.0
"""Assembly of a manager, alone or with the API in a single process."""

import dataclasses

from oslo_config import cfg

from blazar_sched.service import database
from blazar_sched.service.api import server
from blazar_sched.service.bus import rpc
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.metrics import Metrics


@dataclasses.dataclass(frozen=True, slots=True)
class Service:
    """A running service; `api` has the host and the port of the API."""

    manager: Manager
    api: server.Server

    @property
    def hangs(self) -> bool:
        return self.api.hangs or self.manager.hangs

    def stop(self) -> None:
        self.api.stop()
        self.manager.stop()


def start_manager(
    conf: cfg.ConfigOpts, nova: Nova | None = None,
    placement: Placement | None = None, metrics: Metrics | None = None,
) -> Manager:
    """Start a manager, with clients from `conf` unless clients are given.

    A manager that cannot be started leaves nothing behind, because another
    attempt follows.
    """
    manager = Manager(conf, nova, placement, metrics=metrics)
    try:
        manager.start()
    except BaseException:
        manager.stop()
        raise
    return manager


def start_all(
    conf: cfg.ConfigOpts, nova: Nova | None = None,
    placement: Placement | None = None, metrics: Metrics | None = None,
) -> Service:
    """Upgrade the database, and start manager and API in this process."""
    database.open_ledger(conf).upgrade()
    manager = start_manager(conf, nova, placement, metrics)
    try:
        api = server.serve(conf, rpc.Local(manager.endpoint), manager.metrics)
        return Service(manager, api)
    except BaseException:
        manager.stop()
        raise
