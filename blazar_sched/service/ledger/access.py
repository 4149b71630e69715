# SPDX-License-Identifier: Apache-2.0
"""Base classes that turn queries into methods of the ledger and of commits.

The module of an entity has its queries as functions of a connection. `Reader`
and `Tx` bind these functions to the method names that callers use.
"""

import abc
from collections.abc import Callable
import functools
from typing import Concatenate
from typing import ParamSpec
from typing import TypeVar

import sqlalchemy as sa

from blazar_sched.replica import record

P = ParamSpec('P')
T = TypeVar('T')


class Reads(abc.ABC):
    """Queries, each of which runs in the transaction to read in."""

    @abc.abstractmethod
    def run(
        self, query: Callable[Concatenate[sa.Connection, P], T], *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return `query(connection, …)`."""


class Writes(Reads):
    """Reads and writes of a transaction, with the records of its changes.

    Reads see the earlier writes of the transaction.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def run(
        self, query: Callable[Concatenate[sa.Connection, P], T], *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        return query(self._connection, *args, **kwargs)

    @abc.abstractmethod
    def _note(self, records: list[record.Record]) -> None:
        """Record the changes that a write has really made."""


def read(
    query: Callable[Concatenate[sa.Connection, P], T]
) -> Callable[Concatenate[Reads, P], T]:
    """Return a query as a method."""

    @functools.wraps(query)
    def method(self: Reads, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(query, *args, **kwargs)

    return method


def write(
    change: Callable[Concatenate[sa.Connection, P], T]
) -> Callable[Concatenate[Writes, P], T]:
    """Return as a method a change of which replicas need no record."""
    return read(change)


def noted(
    change: Callable[Concatenate[sa.Connection, P], list[record.Record]]
) -> Callable[Concatenate[Writes, P], None]:
    """Return a change as a method that collects the change's records."""

    @functools.wraps(change)
    def method(self: Writes, /, *args: P.args, **kwargs: P.kwargs) -> None:
        self._note(self.run(change, *args, **kwargs))

    return method
