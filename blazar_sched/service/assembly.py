# SPDX-License-Identifier: Apache-2.0
"""Puts a manager together, alone or with the API in one process."""

import dataclasses

from oslo_config import cfg

from blazar_sched.service import database
from blazar_sched.service import metrics as metrics_
from blazar_sched.service.api import server
from blazar_sched.service.bus import rpc
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.clients import placement as placement_
from blazar_sched.service.manager import manager as manager_


@dataclasses.dataclass(frozen=True, slots=True)
class Service:
    """A running service; `api` says on which host and port."""

    manager: manager_.Manager
    api: server.Server

    def stop(self) -> None:
        self.api.stop()
        self.manager.stop()


def start_manager(
    conf: cfg.ConfigOpts,
    nova: nova_.Nova | None = None,
    placement: placement_.Placement | None = None,
    metrics: metrics_.Metrics | None = None,
) -> manager_.Manager:
    """Start a manager; its clients are made of `conf` unless given.

    One that cannot be started leaves nothing behind: another try follows.
    """
    manager = manager_.Manager(conf, nova, placement, metrics=metrics)
    try:
        manager.start()
    except BaseException:
        manager.stop()
        raise
    return manager


def start_all(
    conf: cfg.ConfigOpts,
    nova: nova_.Nova | None = None,
    placement: placement_.Placement | None = None,
    metrics: metrics_.Metrics | None = None,
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
