# SPDX-License-Identifier: Apache-2.0
"""The timeline that people look at, by rack and by host.

The ledger is that of benchmarks.offers: each host has ten leases, in racks of
20 hosts.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
import functools
from typing import Any

import sqlalchemy as sa

from benchmarks import database
from benchmarks import ledger
from benchmarks import offers
from benchmarks import workload
from benchmarks.measure import Result
from benchmarks.measure import Target
from benchmarks.measure import timed
from benchmarks.measure import WrongAnswer
from blazar_sched.cmd import service as cmd_service
from blazar_sched.parts.timeline.manager import Query
from blazar_sched.parts.timeline.manager import Timeline
from blazar_sched.service.ledger import models
from blazar_sched.service.manager.manager import Manager

RACK = 20
PARTS = 28
WEEK = 7 * workload.DAY

MANAGER = 'in the manager'
LOOK = 'longest look at the replica, processor time'
BY_RACK = 'timeline by rack, 28 parts'
BY_RACK_OF_MEMBER = 'timeline by rack, 28 parts, of a member'
BY_HOST = 'timeline of 100 hosts'
KNOWN = 'timeline by rack that the caller has'

TARGETS = [
    Target(BY_RACK, MANAGER, at_most=0.1),
    Target(BY_RACK_OF_MEMBER, MANAGER, at_most=0.1),
    Target(BY_HOST, MANAGER, at_most=0.1),
    Target(KNOWN, MANAGER, at_most=0.01),
    Target(BY_RACK, LOOK, at_most=0.05),
]


def run(
    hosts: int, seed: int, budget: float, say: Callable[[str], None]
) -> Iterator[Result]:
    """Measure each page for about `budget` seconds, with 100 hosts or more."""
    hosts = max(hosts, 100)
    with database.database() as url:
        leases = hosts * database.LEASES_A_HOST
        say(f'timeline: {hosts} hosts, {leases} leases')
        offers.fill(url, hosts, seed)
        _put_into_racks(url)
        manager = Manager(ledger.conf(url), clock=lambda: workload.NOW)
        try:
            yield from _in_manager(manager, hosts, budget)
        finally:
            manager.ledger.close()


def _put_into_racks(url: str) -> None:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        ids = list(connection.scalars(sa.select(models.Host.id)))
        connection.execute(
            sa.update(models.Host).where(
                models.Host.id == sa.bindparam('number')
            ),
            [
                {'number': id_, 'capabilities': {'rack': str(n // RACK)}}
                for n, id_ in enumerate(ids)
            ],
        )
    engine.dispose()


def _in_manager(
    manager: Manager, hosts: int, budget: float
) -> Iterator[Result]:
    window: dict[str, Any] = {
        'start': offers.START, 'end': offers.START + WEEK
    }
    racks = {'group_by': '$rack', 'parts': PARTS, 'limit': 500, **window}
    looks = offers.time_looks(manager)
    timeline = Timeline(manager)
    for name, rows, query in (
        (BY_RACK, min(-(-hosts // RACK), 500),
         Query('p', True, **racks)),
        (BY_RACK_OF_MEMBER, min(-(-hosts // RACK), 500),
         Query('p', False, **racks)),
        (BY_HOST, 100, Query('p', True, **window)),
    ):
        # The first one loads the replica.
        found = timeline.get(query)
        if len(found['timeline']['rows']) != rows:
            raise WrongAnswer(f'{len(found["timeline"]["rows"])} rows: {name}')
        cmd_service.spare_collections()
        looks.clear()
        spent = timed([functools.partial(timeline.get, query)], budget)
        yield Result(name, MANAGER, spent.median, runs=spent.runs)
        yield Result(name, LOOK, max(looks), runs=len(looks))
        if name == BY_RACK:
            spent = timed(
                [functools.partial(
                    timeline.get, query, [found['tag']]
                )],
                budget,
            )
            yield Result(KNOWN, MANAGER, spent.median, runs=spent.runs)
