# SPDX-License-Identifier: Apache-2.0
"""What the work of a commit may do to the ledger."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
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
from blazar_sched.domain import states
from blazar_sched.domain import window as window_
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import event
from blazar_sched.service.ledger import flavor
from blazar_sched.service.ledger import floating_ip
from blazar_sched.service.ledger import host
from blazar_sched.service.ledger import idempotency
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import lease
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import property
from blazar_sched.service.ledger import reader
from blazar_sched.service.ledger import reservation
from blazar_sched.service.ledger import shelved_server
from blazar_sched.service.ledger import trust

P = ParamSpec('P')
T = TypeVar('T')


class Tx(reader.Reader):
    """One try of a commit: reads see what was written before.

    A writer notes the records of what it really changed. `replica` is at the
    newest committed revision, so it lacks what this transaction wrote; work
    that tries something out on its index undoes it, also when it fails. None
    in a commit that does not place, which must not note any record.
    """

    def __init__(
        self, connection: sa.Connection, replica: state.Replica | None
    ) -> None:
        self.replica = replica
        self.records: list[record.Record] = []
        self._connection = connection

    def _read(
        self,
        query: Callable[Concatenate[sa.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        return query(self._connection, *args, **kwargs)

    def _note(self, records: list[record.Record]) -> None:
        if records and self.replica is None:
            raise RuntimeError('replicas must learn of this: use placing=True')
        self.records += records

    def put_lease(self, noun: lease_.Lease) -> None:
        """Make the lease, its reservations and its events those of `noun`.

        Servers that draw on its reservations end with the lease from then
        on. Allocations of a reservation that is left out go with it, and its
        servers count for themselves.
        """
        self._note(lease.put(self._connection, noun))

    def add_lease(
        self,
        noun: lease_.Lease,
        allocations: Iterable[allocation_.Allocation],
    ) -> None:
        """Insert a new lease and the allocations of its reservations.

        Reads nothing: one statement a table, so that others wait less.
        """
        self._note(lease.add(self._connection, noun, list(allocations)))

    def split_lease(self, noun: lease_.Lease) -> None:
        """Insert a lease that takes its reservations from another one.

        They are as they were, with all that is theirs.
        """
        self._note(lease.split(self._connection, noun))

    def put_key(
        self, project_id: str, key: str, lease_id: str, digest: str
    ) -> None:
        """Write which lease an idempotency key has made; it must be new."""
        idempotency.put(self._connection, project_id, key, lease_id, digest)

    def discard_trust(self, trust_id: str | None) -> None:
        """Note that the trust of a lease that is over is to be deleted."""
        if trust_id is not None:
            trust.discard(self._connection, trust_id)

    def forget_trust(self, trust_id: str) -> None:
        """Forget a discarded trust, which is deleted."""
        trust.forget(self._connection, trust_id)

    def add_shelved_server(self, uuid: str) -> None:
        """Note that a server is shelved to vacate its host."""
        shelved_server.add(self._connection, uuid)

    def drop_shelved_servers(self, uuids: Collection[str]) -> None:
        """Forget servers that are not to be brought back any more."""
        shelved_server.drop(self._connection, uuids)

    def delete_lease(self, lease_id: str) -> None:
        """Delete the lease with everything that it owns.

        :raises LeaseNotFound: if it is not there
        """
        self._note(lease.delete(self._connection, lease_id))

    def put_allocations(
        self,
        reservation_id: str,
        nouns: Iterable[allocation_.Allocation],
    ) -> None:
        """Make the reservation's allocations `nouns`.

        Servers on a host that the reservation has left count for themselves.
        """
        self._note(allocation.put(self._connection, reservation_id, nouns))

    def cut_allocations(self, noun: lease_.Lease) -> None:
        """Have all that a lease allocates end with the lease."""
        ids = [reservation.id for reservation in noun.reservations]
        self._note(allocation.cut(self._connection, ids, noun.end))
        floating_ip.cut_allocations(self._connection, ids, noun.end)

    def put_host(self, noun: host_.Host) -> host_.Host:
        """Insert a host that has no id, else update it; return it with id.

        :raises HostExists: if it is to be inserted and is there
        :raises HostNotFound: if it is to be updated and is not there
        """
        kept, records = host.put(self._connection, noun)
        self._note(records)
        return kept

    def add_host(self, noun: host_.Host) -> None:
        """Insert a host by the id that it has from elsewhere.

        Before any that is given one.
        """
        self._note(host.add(self._connection, noun))

    def delete_host(self, uuid: str) -> None:
        """Delete the host with its allocations and instances.

        :raises HostNotFound: if it is not there
        """
        self._note(host.delete(self._connection, uuid))

    def put_property(self, name: str, private: bool) -> None:
        property.put(self._connection, name, private)

    def put_flavors(self, nouns: Iterable[flavor_.Flavor]) -> None:
        """Make the copies of Nova's flavors `nouns`."""
        flavor.put(self._connection, nouns)

    def add_floating_ip(self, noun: floating_ip_.FloatingIP) -> None:
        """Insert a floating IP.

        :raises FloatingIPExists: if its network has the address already
        """
        floating_ip.add(self._connection, noun)

    def update_floating_ip(self, noun: floating_ip_.FloatingIP) -> None:
        """Write a floating IP that is there."""
        floating_ip.update(self._connection, noun)

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Delete a floating IP.

        :raises FloatingIPNotFound: if it is not there
        :raises CantDeleteFloatingIP: while it is allocated
        """
        floating_ip.delete(self._connection, floating_ip_id)

    def put_floating_ip_allocations(
        self,
        reservation_id: str,
        floating_ip_ids: Collection[str],
        window: window_.Window,
    ) -> None:
        """Make those the reservation's floating IPs, all in `window`.

        None of them may be another's then: see `free_floating_ips`.
        """
        floating_ip.put_allocations(
            self._connection, reservation_id, floating_ip_ids, window
        )

    def drop_floating_ip_allocations(
        self, reservation_ids: Collection[str]
    ) -> None:
        floating_ip.drop_allocations(self._connection, reservation_ids)

    def put_instance(self, noun: instance_.Instance) -> None:
        self._note(instance.put(self._connection, noun))

    def bind_instances(self, hosts: Collection[str]) -> None:
        """Bind the servers on hosts where what they draw on has the host.

        :param hosts: uuids
        """
        self._note(
            instance.bind(self._connection, models.Instance.host.in_(hosts))
        )

    def release_instances(
        self, reservation_ids: Collection[str], end: int | None = None
    ) -> None:
        """Have the servers of reservations count for themselves.

        :param end: of the servers, None to leave each its own
        """
        self._note(
            instance.release(self._connection, reservation_ids, end)
        )

    def delete_instance(self, uuid: str) -> None:
        """Delete the instance, if it is there."""
        self._note(
            instance.drop(self._connection, models.Instance.uuid == uuid)
        )

    def claim_event(
        self,
        event_id: str,
        new: event_.Claim,
        seen: event_.Claim | None,
        status: str = states.EVENT_UNDONE,
    ) -> bool:
        """Take an event, unless it is no longer as it was seen.

        :param seen: the claim to take over, None if there was none
        :param status: the event's then
        """
        return event.claim(self._connection, event_id, new, seen, status)

    def renew_claims(self, tokens: Collection[str], until: int) -> set[str]:
        """Give claims a new `until`; return the tokens that still hold."""
        return event.renew(self._connection, tokens, until)

    def finish_event(
        self, event_id: str, token: str, status: str, now: int | None = None
    ) -> bool:
        """Give the event its status, if `token` still holds it.

        :param now: when that was, None for what has come to nothing yet
        """
        return event.finish(self._connection, event_id, token, status, now)

    def set_lease_status(
        self,
        lease_id: str,
        status: str,
        now: int,
        degraded: bool | None = None,
    ) -> None:
        """Set the status and, unless it is None, the flag.

        :raises LeaseNotFound: if it is not there
        """
        lease.set_status(self._connection, lease_id, status, now, degraded)

    def set_reservation_made(
        self,
        reservation_id: str,
        made: Mapping[str, Any],
        missing_resources: bool | None = None,
    ) -> None:
        """Write what was made for a reservation: this, and nothing else.

        :param missing_resources: the flag, None to leave it
        :raises NotFound: if there is no such reservation
        """
        self._note(
            reservation.set_made(
                self._connection, reservation_id, made, missing_resources
            )
        )

    def set_reservation_status(
        self,
        reservation_id: str,
        status: str,
        now: int,
        missing_resources: bool | None = None,
        resources_changed: bool | None = None,
    ) -> None:
        """Set the status and the flags that are not None.

        :raises NotFound: if there is no such reservation
        """
        self._note(
            reservation.set_status(
                self._connection,
                reservation_id,
                status,
                now,
                missing_resources,
                resources_changed,
            )
        )
