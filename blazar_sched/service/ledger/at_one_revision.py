# SPDX-License-Identifier: Apache-2.0
"""Long queries of the replica, answered at one revision of the ledger.

No commit waits for such a query, unless commits come in between again and
again.
"""

from collections.abc import Callable
from typing import TypeVar

from blazar_sched.placing.window_search import Budget
from blazar_sched.replica import state
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx

T = TypeVar('T')

# How often a query, or a search, is made anew because of a commit.
MAX_REPEATS = 3


class Outdated(Exception):
    """A result was found in a ledger that has changed since."""


class _Reads:
    """The data that a query has read: revisions, and what is beside them.

    The replica has only what is on hosts, and other changes make no revision.

    :param source: where the data beside the replica is read
    :param budget: the budget of the query
    """

    def __init__(self, source: Reader, budget: Budget) -> None:
        self.budget = budget
        self.revisions: set[int] = set()
        self._source = source
        self._beside: list[tuple[Callable[[Reader], object], object]] = []

    def beside(self, query: Callable[[Reader], T]) -> T:
        """Return what a query of the ledger finds, beside the replica."""
        found = query(self._source)
        self._beside.append((query, found))
        return found

    def is_unchanged(self, source: Reader) -> bool:
        """Tell whether the data beside the replica is still the same."""
        return all(query(source) == found for query, found in self._beside)


class NewestReader(_Reads):
    """A reader of the replica, at the newest revision at each call."""

    def __init__(self, ledger: Ledger, budget: Budget) -> None:
        super().__init__(ledger, budget)
        self._ledger = ledger

    def __call__(self, query: Callable[[state.Replica], T]) -> T:
        def read(replica: state.Replica) -> T:
            self.revisions.add(replica.revision)
            return query(replica)

        return self._ledger.read_replica(read)


class FixedReader(_Reads):
    """A reader of a replica that does not change during the query."""

    def __init__(
        self, replica: state.Replica, source: Reader, budget: Budget
    ) -> None:
        super().__init__(source, budget)
        self.revisions.add(replica.revision)
        self._replica = replica

    def __call__(self, query: Callable[[state.Replica], T]) -> T:
        return query(self._replica)


# A reader of the replica for a query, which records the revisions.
ReplicaReader = NewestReader | FixedReader
# Returns what a query finds with a reader.
Query = Callable[[ReplicaReader], T]


def find(
    ledger: Ledger, query: Query[T], budget: Budget,
    short: Callable[[], Budget],
) -> tuple[T, ReplicaReader]:
    """Return the result of a query, and the reader of the query.

    If commits come in between, the query is repeated, and the last repetition
    is one query of the replica, for which other commits wait.

    :param short: returns the budget of the last repetition
    """
    for _ in range(MAX_REPEATS):
        reader = NewestReader(ledger, budget)
        found = query(reader)
        if len(reader.revisions) == 1 and reader.is_unchanged(ledger):
            return found, reader
        if budget.is_spent:
            break

    def still(replica: state.Replica) -> tuple[T, ReplicaReader]:
        reader = FixedReader(replica, ledger, short())
        return query(reader), reader

    return ledger.read_replica(still)


def confirm(reader: ReplicaReader, tx: PlacingTx) -> None:
    """Refuse the result of a query if the ledger has changed since.

    :param reader: the reader of the query
    :raises Outdated: if the result may not be true any more
    """
    is_newest = reader.revisions == {tx.replica.revision}
    if not is_newest or not reader.is_unchanged(tx):
        raise Outdated
