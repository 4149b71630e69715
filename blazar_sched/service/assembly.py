# SPDX-License-Identifier: Apache-2.0
"""Puts a manager together, alone or with the API in one process."""

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
    """A running service; `api` says on which host and port."""

    manager: Manager
    api: server.Server

    def stop(self) -> None:
        self.api.stop()
        self.manager.stop()


def start_manager(
    conf: cfg.ConfigOpts,
    nova: Nova | None = None,
    placement: Placement | None = None,
    metrics: Metrics | None = None,
) -> Manager:
    """Start a manager; its clients are made of `conf` unless given.

    One that cannot be started leaves nothing behind: another try follows.
    """
    manager = Manager(conf, nova, placement, metrics=metrics)
    try:
        manager.start()
    except BaseException:
        manager.stop()
        raise
    return manager


def start_all(
    conf: cfg.ConfigOpts,
    nova: Nova | None = None,
    placement: Placement | None = None,
    metrics: Metrics | None = None,
) -> Service:
    """Start all in this process, over a database brought up to date."""
    database.open_ledger(conf).upgrade()
    manager = start_manager(conf, nova, placement, metrics)
    try:
        api = server.serve(
            conf, rpc.Local(manager.endpoint), manager.metrics
        )
        return Service(manager, api)
    except BaseException:
        manager.stop()
        raise
