# SPDX-License-Identifier: Apache-2.0
"""Puts the parts of the service together, in one process or in several."""

import dataclasses

from oslo_config import cfg

from blazar_sched.service import database
from blazar_sched.service.api import server
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.clients import placement as placement_
from blazar_sched.service.manager import manager as manager_
from blazar_sched.service.manager import rpc

open_ledger = database.open_ledger


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
) -> manager_.Manager:
    """Start a manager; its clients are made of `conf` unless given."""
    manager = manager_.Manager(conf, nova, placement)
    manager.start()
    return manager


def start_api(conf: cfg.ConfigOpts) -> server.Server:
    """Start the REST API, which asks a manager over the bus.

    It answers 503 until it has found one.
    """
    client = rpc.Client(rpc.transport(conf))
    api = server.serve(conf, client)
    client.connect()
    return api


def start_all(
    conf: cfg.ConfigOpts,
    nova: nova_.Nova | None = None,
    placement: placement_.Placement | None = None,
) -> Service:
    """Start all in this process, over a database brought up to date."""
    upgrade(conf)
    manager = start_manager(conf, nova, placement)
    try:
        api = server.serve(conf, rpc.Local(manager.endpoint))
        return Service(manager, api)
    except BaseException:
        manager.stop()
        raise


def upgrade(conf: cfg.ConfigOpts) -> None:
    """Make the ledger's tables, or bring them to this version."""
    open_ledger(conf).upgrade()
