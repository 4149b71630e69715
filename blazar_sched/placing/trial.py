# SPDX-License-Identifier: Apache-2.0
"""Trials: allocations are in the indexes, or out of them, for a while.

After that the indexes are as they were: only what the ledger commits may
stay there.
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
    """Have allocations in the indexes for a while.

    :param fitting: whether it is known that they fit
    :raises NotEnoughHostsAvailable: if there is no room for them
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
    """Refuse what is on a host that is taken whole.

    What takes of other resource classes alone is not in the main index, which
    has the hosts that are taken whole.
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
    """Have allocations out of the indexes for a while."""
    with contextlib.ExitStack() as undo:
        for index, adds in replica.entries(many):
            index.apply(_removing(adds), force=True)
            undo.callback(index.apply, adds, force=True)
        yield


def _removing(adds: Iterable[state.Change]) -> list[state.Change]:
    return [('remove', change[1]) for change in adds]
