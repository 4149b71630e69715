# SPDX-License-Identifier: Apache-2.0
"""What must never be in the ledger, looked for the slow and plain way.

Nothing here uses the timeline index: it is what the index is judged by.
"""

from collections import defaultdict
from collections.abc import Iterator

import sqlalchemy as sa

from blazar_sched.domain import allocation
from blazar_sched.domain import host
from blazar_sched.domain import inventory
from blazar_sched.service.ledger import allocation as allocation_
from blazar_sched.service.ledger import host as host_
from blazar_sched.service.ledger import models


def check(connection: sa.Connection) -> list[str]:
    """Return the faults, one line each."""
    return [*_orphans(connection), *_over_commitments(connection)]


def _orphans(connection: sa.Connection) -> Iterator[str]:
    """Name every row whose foreign key leads nowhere."""
    for table in models.Base.metadata.sorted_tables:
        for constraint in table.foreign_keys:
            child, parent = constraint.parent, constraint.column
            (key,) = table.primary_key
            found = connection.execute(
                sa.select(key, child)
                .outerjoin(parent.table, child == parent)
                .where(child.is_not(None), parent.is_(None))
            )
            for id_, missing in found:
                yield (
                    f'{table.name} {id_}: there is no '
                    f'{parent.table.name} {missing}'
                )


def _over_commitments(connection: sa.Connection) -> Iterator[str]:
    by_host = defaultdict(list)
    for row in connection.execute(sa.select(models.Allocation)):
        by_host[row.host].append(allocation_.from_row(row))
    for noun in host_.list_(connection):
        yield from _judge(noun, by_host[noun.uuid])


def _judge(
    noun: host.Host, allocations: list[allocation.Allocation]
) -> Iterator[str]:
    """Add up at every instant at which something starts."""
    capacity = dict(
        zip(inventory.RESOURCE_CLASSES, noun.amounts(), strict=True)
    )
    for at in sorted({a.start for a in allocations}):
        held = [a for a in allocations if a.start <= at < a.end]
        whole = sum(a.whole for a in held)
        if whole and len(held) > 1:
            yield (
                f'host {noun.uuid}: {len(held)} allocations at {at}, '
                f'{whole} of them of the whole host'
            )
        for resource_class, total in capacity.items():
            used = sum(a.amounts.get(resource_class, 0) for a in held)
            if used > total:
                yield (
                    f'host {noun.uuid}: {used} of {total} '
                    f'{resource_class} allocated at {at}'
                )
