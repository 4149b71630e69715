# SPDX-License-Identifier: Apache-2.0
"""What can be asked of the ledger, inside a commit or outside one."""

import abc
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Sequence
from typing import Concatenate
from typing import ParamSpec
from typing import TypeVar

import sqlalchemy as sa

from blazar_sched.domain import allocation as allocation_
from blazar_sched.domain import event as event_
from blazar_sched.domain import flavor as flavor_
from blazar_sched.domain import floating_ip as floating_ip_
from blazar_sched.domain import host as host_
from blazar_sched.domain import instance as instance_
from blazar_sched.domain import lease as lease_
from blazar_sched.domain import window as window_
from blazar_sched.replica import wire
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import census
from blazar_sched.service.ledger import change
from blazar_sched.service.ledger import check
from blazar_sched.service.ledger import event
from blazar_sched.service.ledger import flavor
from blazar_sched.service.ledger import floating_ip
from blazar_sched.service.ledger import host
from blazar_sched.service.ledger import idempotency
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import lease
from blazar_sched.service.ledger import listing
from blazar_sched.service.ledger import property
from blazar_sched.service.ledger import reservation
from blazar_sched.service.ledger import shelved_server
from blazar_sched.service.ledger import snapshot
from blazar_sched.service.ledger import trust

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

    def leases(
        self,
        project_id: str | None = None,
        *,
        name: str | None = None,
        status: str | None = None,
        sort: Sequence[tuple[str, bool]] = (),
        limit: int | None = None,
        marker: str | None = None,
    ) -> list[lease_.Lease]:
        """Return leases; None does not restrict.

        :param sort: keys, the first one first, each with whether it
            descends: id, name, status, start, end, created_at, updated_at;
            without any the oldest lease is first
        :param limit: how many at most
        :param marker: the id of the lease that they come after
        :raises InvalidInput: naming `sort` for another key, `limit` if it is
            below 1, `marker` if the project has no such lease
        """
        return self._read(
            listing.list_, project_id, name, status, sort, limit, marker
        )

    def open_leases(self, project_id: str) -> list[lease_.Lease]:
        """Return a project's leases, but for those over or being deleted."""
        return self._read(lease.open_, project_id)

    def leases_with(self, resource_type: str) -> list[lease_.Lease]:
        """Return the leases that have reserved something of a type.

        In the order of their starts. Not those that are terminated.
        """
        return self._read(lease.with_type, resource_type)

    def lacking(self) -> list[str]:
        """Return the ids of the leases that lack what they have reserved.

        That is hosts, or something on hosts; the oldest lease is first.
        """
        return self._read(reservation.list_lacking)

    def lease_by_key(
        self, project_id: str, key: str
    ) -> tuple[str, str] | None:
        """Return the lease that an idempotency key has made.

        :returns: its id and the digest that came with the key
        """
        return self._read(idempotency.get, project_id, key)

    def discarded_trusts(self, limit: int) -> list[str]:
        """Return the ids of at most `limit` trusts to be deleted."""
        return self._read(trust.list_discarded, limit)

    def shelved_servers(self) -> set[str]:
        """Return the uuids of the servers shelved to vacate their hosts."""
        return self._read(shelved_server.list_)

    def allocations(
        self,
        reservation_id: str | None = None,
        lease_id: str | None = None,
        host: str | None = None,
        after: int | None = None,
        hosts: Collection[str] | None = None,
    ) -> list[tuple[allocation_.Allocation, str]]:
        """Return allocations, each with its lease's id, by their starts.

        :param host: a host's uuid
        :param after: leave out what has ended by then
        :param hosts: the uuids of some hosts
        """
        return self._read(
            allocation.list_, reservation_id, lease_id, host, after, hosts
        )

    def host(self, host_id: str) -> host_.Host:
        """Return a host by the API's id or by its uuid.

        :raises HostNotFound: if it is not there
        """
        return self._read(host.get, host_id)

    def hosts(
        self,
        uuids: Collection[str] | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[host_.Host]:
        """Return all hosts, or those of `uuids` that are there.

        :param after: the id of the host that they come after, which need not
            be there; the first one is registered first
        :param limit: how many at most
        """
        return self._read(host.list_, uuids, after, limit)

    def properties(self) -> dict[str, bool]:
        """Return whether a property is private, by its name."""
        return self._read(property.list_)

    def flavor(self, flavor_id: str) -> flavor_.Flavor | None:
        """Return the copy of a flavor of Nova's, None if there is none."""
        return self._read(flavor.get, flavor_id)

    def flavors(self) -> list[flavor_.Flavor]:
        return self._read(flavor.list_)

    def floating_ip(self, floating_ip_id: str) -> floating_ip_.FloatingIP:
        """Return a floating IP.

        :raises FloatingIPNotFound: if it is not there
        """
        return self._read(floating_ip.get, floating_ip_id)

    def floating_ips(
        self, reservation_id: str | None = None
    ) -> list[floating_ip_.FloatingIP]:
        """Return all floating IPs, or those allocated to a reservation.

        In the order of their addresses, those of a network together.
        """
        return self._read(floating_ip.list_, reservation_id)

    def free_floating_ips(
        self, network_id: str, window: window_.Window, reservation_id: str
    ) -> list[floating_ip_.FloatingIP]:
        """Return what no other reservation has at any time of a window.

        Of what the reservation itself does not have, only what is reservable.
        """
        return self._read(
            floating_ip.free, network_id, window, reservation_id
        )

    def instances(
        self, hosts: Collection[str] | None = None
    ) -> list[instance_.Instance]:
        """Return all instances, or those on hosts.

        :param hosts: the hosts' uuids
        """
        return self._read(instance.list_, hosts)

    def claiming(
        self, reservation_ids: Collection[str]
    ) -> list[instance_.Instance]:
        """Return the instances that draw on reservations."""
        return self._read(instance.claiming, reservation_ids)

    def instance(self, uuid: str) -> instance_.Instance | None:
        return self._read(instance.get, uuid)

    def due_events(
        self, now: int, given_up: int | None = None
    ) -> list[tuple[event_.Event, event_.Claim | None]]:
        """Return what is to be done at `now`, in order.

        All events in progress are among it, each with its claim: only who
        watches a claim can tell that it is held no more.

        :param given_up: if it is not None, the starts of active leases are
            among it that were given up by then
        """
        return self._read(event.list_due, now, given_up)

    def is_blocked(self, lease_id: str) -> bool:
        """Say whether who was there before still has to leave a host of it.

        That is: another lease, which is over when this one starts but whose
        end is not done, has an allocation there.
        """
        return self._read(event.is_blocked, lease_id)

    def next_event(self) -> tuple[int | None, float | None]:
        """Return the earliest time of an event that nobody has begun.

        :returns: None if there is no such event; and the database's time in
            epoch seconds, None if it has no clock of its own
        """
        return self._read(event.next_time)

    def census(self) -> census.Census:
        """Return how much of what there is, and the newest revision."""
        return self._read(census.take)

    def check(self) -> list[str]:
        """Look at every row for what must never be; return one line each."""
        return self._read(check.check)

    def newest(self) -> tuple[str, int]:
        """Return the ledger's uuid and its newest revision."""
        return self._read(change.newest)

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
