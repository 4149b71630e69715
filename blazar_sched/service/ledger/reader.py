# SPDX-License-Identifier: Apache-2.0
"""What can be asked of the ledger, inside a commit or outside one."""

import abc
from collections.abc import Callable
from typing import Concatenate
from typing import ParamSpec
from typing import TypeVar

import sqlalchemy as sa

from blazar_sched.domain import allocation as allocation_
from blazar_sched.domain import event as event_
from blazar_sched.domain import host as host_
from blazar_sched.domain import instance as instance_
from blazar_sched.domain import lease as lease_
from blazar_sched.replica import wire
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import change
from blazar_sched.service.ledger import event
from blazar_sched.service.ledger import host
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import lease
from blazar_sched.service.ledger import property
from blazar_sched.service.ledger import snapshot

P = ParamSpec('P')
T = TypeVar('T')


class Reader(abc.ABC):
    """Answers with the domain's nouns, all of one state of the ledger."""

    @abc.abstractmethod
    def _read(
        self,
        query: Callable[Concatenate[sa.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return `query(connection, …)` on the transaction to read in."""

    def lease(
        self, lease_id: str, project_id: str | None = None
    ) -> lease_.Lease:
        """Return a lease, of `project_id` if that is given.

        :raises LeaseNotFound: if it is not there, or another project's
        """
        return self._read(lease.get, lease_id, project_id)

    def leases(self, project_id: str | None = None) -> list[lease_.Lease]:
        """Return all leases, or a project's, the oldest first."""
        return self._read(lease.list_, project_id)

    def allocations(
        self,
        reservation_id: str | None = None,
        lease_id: str | None = None,
        host: str | None = None,
        after: int | None = None,
    ) -> list[tuple[allocation_.Allocation, str]]:
        """Return allocations, each with its lease's id.

        :param host: a host's uuid
        :param after: leave out what has ended by then
        """
        return self._read(
            allocation.list_, reservation_id, lease_id, host, after
        )

    def host(self, host_id: str) -> host_.Host:
        """Return a host by the API's id or by its uuid.

        :raises HostNotFound: if it is not there
        """
        return self._read(host.get, host_id)

    def hosts(self) -> list[host_.Host]:
        return self._read(host.list_)

    def properties(self) -> dict[str, bool]:
        """Return whether a property is private, by its name."""
        return self._read(property.list_)

    def instances(self) -> list[instance_.Instance]:
        return self._read(instance.list_)

    def instance(self, uuid: str) -> instance_.Instance | None:
        return self._read(instance.get, uuid)

    def due_events(
        self, now: int
    ) -> list[tuple[event_.Event, lease_.Lease]]:
        """Return the events to be done at `now`, in order, with their lease.

        Those in progress are among them once their claim has run out.
        """
        return self._read(lease.list_due, now)

    def next_event_time(self) -> int | None:
        """Return when the next event is due, or the next claim runs out."""
        return self._read(event.next_time)

    def changes(self, since: int, limit: int = 1000) -> wire.Page:
        """Return about `limit` records after `since`, whole revisions only.

        :raises InvalidInput: if `since` or `limit` is out of range
        """
        return self._read(change.page, since, limit)

    def snapshot(
        self, after: str | None = None, limit: int = 1000
    ) -> wire.Page:
        """Return the next `limit` records after the page that said `after`.

        :raises InvalidInput: if no page said so, or `limit` is below 1
        """
        return self._read(snapshot.page, after, limit)
