# SPDX-License-Identifier: Apache-2.0
"""How the queries of a noun become methods of the ledger and of commits.

A noun's file has its queries as functions of a connection, and beside them a
class that binds these to the names that callers know them by. `Reader` and
`Tx` are made of such classes.
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
    """Runs queries, each on the transaction to read in."""

    @abc.abstractmethod
    def _run(
        self,
        query: Callable[Concatenate[sa.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return `query(connection, …)`."""


class Writes(Reads):
    """Reads and writes in one transaction, and notes what has changed.

    Reads see what was written before.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def _run(
        self,
        query: Callable[Concatenate[sa.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        return query(self._connection, *args, **kwargs)

    @abc.abstractmethod
    def _note(self, records: list[record.Record]) -> None:
        """Note the records of what a write has really changed."""


def read(
    query: Callable[Concatenate[sa.Connection, P], T],
) -> Callable[Concatenate[Reads, P], T]:
    """Return a query as a method."""

    @functools.wraps(query)
    def method(self: Reads, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(query, *args, **kwargs)

    return method


def write(
    change: Callable[Concatenate[sa.Connection, P], T],
) -> Callable[Concatenate[Writes, P], T]:
    """Return a change that no replica has to learn of as a method."""

    @functools.wraps(change)
    def method(self: Writes, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(change, *args, **kwargs)

    return method


def noted(
    change: Callable[Concatenate[sa.Connection, P], list[record.Record]],
) -> Callable[Concatenate[Writes, P], None]:
    """Return a change as a method that notes the records of the change."""

    @functools.wraps(change)
    def method(self: Writes, /, *args: P.args, **kwargs: P.kwargs) -> None:
        self._note(self._run(change, *args, **kwargs))

    return method
