# SPDX-License-Identifier: Apache-2.0
"""Trials: allocations that are added to or removed from the indexes briefly.

After a trial the indexes are as before: only allocations that the ledger
commits may stay there.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib

from blazar_sched import ext
from blazar_sched.domain import exception
from blazar_sched.domain.allocation import Allocation
from blazar_sched.replica import state


@contextlib.contextmanager
def having(
    replica: state.Replica,
    many: Sequence[Allocation],
    fitting: bool,
) -> Iterator[None]:
    """Add allocations to the indexes, and remove them after the block.

    :param fitting: whether the allocations are known to fit
    :raises NotEnoughHostsAvailable: if there is no room for the allocations
    """
    if not fitting:
        _check_not_taken_whole(replica, many)
    with contextlib.ExitStack() as undo:
        for index, adds in replica.entries(many):
            try:
                index.apply(adds, force=fitting)
            except ext.OverCapacity as e:
                raise exception.NotEnoughHostsAvailable(
                    'what the lease holds has no room in the new window: '
                    f'{e}',
                    field='reservations',
                ) from e
            undo.callback(index.apply, _removing(adds), force=True)
        yield


def _check_not_taken_whole(
    replica: state.Replica, many: Iterable[Allocation]
) -> None:
    """Refuse allocations on a host that is taken whole.

    An allocation of other resource classes alone is not in the main index,
    which has the allocations of whole hosts.
    """
    nothing = (0,) * len(replica.index.resource_classes)
    for each in many:
        rows = replica.index.rows([each.host])
        [fits] = replica.index.fits(rows, each.start, each.end, nothing)
        if not fits:
            raise exception.NotEnoughHostsAvailable(
                'what the lease holds has no room in the new window: its '
                'host is taken whole',
                field='reservations',
            )


@contextlib.contextmanager
def without(
    replica: state.Replica, many: Sequence[Allocation]
) -> Iterator[None]:
    """Remove allocations from the indexes, and add them after the block."""
    with contextlib.ExitStack() as undo:
        for index, adds in replica.entries(many):
            index.apply(_removing(adds), force=True)
            undo.callback(index.apply, adds, force=True)
        yield


def _removing(adds: Iterable[state.Change]) -> list[state.Change]:
    return [('remove', change[1]) for change in adds]
