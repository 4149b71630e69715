# SPDX-License-Identifier: Apache-2.0
"""Lifetime histories in SQL; a bounded number of histories."""

from collections import defaultdict
from collections.abc import Iterable
import dataclasses
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain import lifetime_history
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lifetime_history import LifetimeHistory
from blazar_sched.replica import record
from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import models

# The most histories; the histories to which nothing was added for the longest
# time are deleted.
MAX_HISTORIES = 1000

_TABLE = models.LifetimeHistory


def from_row(row: Any) -> LifetimeHistory:
    return LifetimeHistory(row.id, tuple(row.counts), row.ended_at)


def add(
    connection: sa.Connection, ended: Iterable[Instance], now: int
) -> list[record.Record]:
    """Add the lifetimes of instances that have ended; return the records.

    :param now: epoch seconds, at which the instances are found to have ended
    """
    lifetimes: dict[str, list[int]] = defaultdict(list)
    for each in filter(lifetime_history.is_counted, ended):
        id_ = lifetime_history.id_of(each.project_id, each.amounts)
        lifetimes[id_].append(max(0, now - each.created))
    if not lifetimes:
        return []
    query = sa.select(_TABLE).where(_TABLE.id.in_(lifetimes))
    known = {row.id: from_row(row) for row in connection.execute(query)}
    records: list[record.Record] = []
    for id_, new in lifetimes.items():
        history = lifetime_history.add(
            known.get(id_, LifetimeHistory(id_)), new, now
        )
        row = dataclasses.asdict(history)
        connection.execute(
            sa.update(_TABLE).where(_TABLE.id == id_).values(row)
            if id_ in known else sa.insert(_TABLE).values(row)
        )
        records.append(record.encode(history))
    if len(known) < len(lifetimes):
        records += _drop_oldest(connection)
    return records


def _drop_oldest(connection: sa.Connection) -> list[record.Record]:
    oldest = list(connection.scalars(
        sa.select(_TABLE.id)
        .order_by(_TABLE.ended_at.desc(), _TABLE.id)
        .offset(MAX_HISTORIES)
        .limit(MAX_HISTORIES)
    ))
    connection.execute(sa.delete(_TABLE).where(_TABLE.id.in_(oldest)))
    return [(record.LIFETIME_HISTORY, id_, None) for id_ in oldest]


class Writes(access.Writes):
    """The changes of lifetime histories."""

    add_lifetimes = access.noted(add)
