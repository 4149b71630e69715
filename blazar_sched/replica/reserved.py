# SPDX-License-Identifier: Apache-2.0
"""The index of reserved amounts, for reservations without overcommitment.

The index has the allocations of the main index and nothing else, against
capacities with an allocation ratio of 1: servers that draw on no reservation
are not in this index, and may overcommit a host as far as Placement lets them.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import itertools

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain.host import Host
from blazar_sched.replica import packing
from blazar_sched.replica.batch import Batch
from blazar_sched.replica.batch import Change


def new() -> ext.TimelineIndex:
    """Return an index without hosts."""
    return ext.TimelineIndex(inventory.RESOURCE_CLASSES)


def load(
    index: ext.TimelineIndex, hosts: Mapping[str, Host],
    parts: Iterable[packing.Part],
) -> None:
    """Fill a new index, in bulk.

    :param hosts: hosts by uuid, in the order of the rows that the parts name
    """
    capacity = map(_capacity, hosts.values())
    index.load_parts(
        list(hosts), list(itertools.chain.from_iterable(capacity)), parts
    )


def apply(index: ext.TimelineIndex, batch: Batch) -> None:
    """Apply to the index a batch that the main index has taken."""
    capacities: list[Change] = []
    drops: list[Change] = []
    for uuid, host in batch.hosts.items():
        if host is not None:
            capacities.append(('capacity', uuid, _capacity(host)))
        elif index.rows([uuid])[0] >= 0:
            drops.append(('drop', uuid))
    removes: list[Change] = [
        ('remove', id_) for id_ in batch.removes if id_ in index
    ]
    index.apply(
        [*capacities, *removes, *batch.allocations, *drops], force=True
    )


def _capacity(host: Host) -> tuple[int, ...]:
    return tuple(
        host.capacity(name, overcommit=False)
        for name in inventory.RESOURCE_CLASSES
    )
