# SPDX-License-Identifier: Apache-2.0
"""The answers of the manager to the calls of the API, in JSON primitives."""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
import itertools
import operator
from typing import Any

from oslo_log import log

from blazar_sched.domain.event import Event
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.lease import NOW
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.settings import Settings
from blazar_sched.replica import wire
from blazar_sched.service.booking import extension
from blazar_sched.service.booking import lease
from blazar_sched.service.bus.calls import Page
from blazar_sched.service.bus.calls import Values
from blazar_sched.service.enforcement.admission import Enforcement
from blazar_sched.service.events import clock
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.manager import capacity
from blazar_sched.service.manager import feed
from blazar_sched.service.manager import paging
from blazar_sched.service.manager.running import Running
from blazar_sched.service.upkeep import flavor_sync
from blazar_sched.service.upkeep import healing
from blazar_sched.service.upkeep import host
from blazar_sched.service.upkeep import instance_sync

LOG = log.getLogger(__name__)

# The most items of a page, so that few items are read in vain where the items
# are long.
MAX_ITEMS = 200


class Endpoint:
    """The answers to `calls.Calls`, and to the calls of nova-scheduler.

    See rpc.Counted for the versions of the calls.
    """

    def __init__(
        self, ledger: Ledger, leases: lease.Leases, hosts: host.Hosts,
        healer: healing.Healer, capacity: capacity.Capacity,
        extensions: extension.Extensions,
        instances: instance_sync.Instances,
        flavors: flavor_sync.Flavors, enforcement: Enforcement,
        clock: clock.Clock, told: Settings,
        parts: Iterable[Running],
    ) -> None:
        self._ledger = ledger
        self._flavors = flavors
        self._extensions = extensions
        self._instances = instances
        self._feed = feed.Feed(ledger)
        self._leases = leases
        self._hosts = hosts
        self._enforcement = enforcement
        self._clock, self._told = clock, told.encode()

        self.delete_lease = leases.delete
        self.get_extension = extensions.get
        self.get_capacity = capacity.get
        self.delete_host = hosts.delete
        self.reallocate = healer.reallocate
        self.list_public_properties = hosts.public_properties
        self.list_unknown_properties = hosts.unknown_properties
        self.list_unknown_hosts = hosts.unknown_hosts
        self.update_property = hosts.update_property
        self.snapshot = ledger.snapshot
        for part in parts:
            vars(self).update(part.answers)

    def ping(self) -> None:
        """Return nothing, which shows that a manager is running."""

    def check(self) -> None:
        """Return nothing, which shows that the database answers and writes.

        :raises Unavailable: also if the clock of this manager differs from the
            clock of the database
        """
        self._ledger.require_unchanged()
        self._ledger.require_writable()
        self._clock.check()

    def create_lease(
        self, values: Values, idempotency_key: str | None = None,
        offering: bool = False, dry_run: bool = False, names: bool = False,
    ) -> Values:
        self._learn_flavors(values)
        made = self._leases.create(
            values, idempotency_key, offering, dry_run, names
        )
        shown = lease_values(made)
        if 'alternatives' in values:
            shown['alternative'] = self._leases.alternative(made, values)
        return shown

    def get_lease(
        self, lease_id: str, project_id: str | None, use: bool = False
    ) -> Values:
        """Return a lease.

        :param use: add `hosts`, hypervisor hostnames, and `used`, a number of
            servers, to each reservation
        """
        if not use:
            return lease_values(self._ledger.owned_lease(lease_id, project_id))
        lease, used = self._ledger.lease_in_use(lease_id, project_id)
        values = lease_values(lease)
        for each in values['reservations']:
            each.update(dataclasses.asdict(used[each['id']]))
        return values

    def list_leases(
        self, project_id: str | None, limit: int | None = None,
        at: int | str | None = None, **wanted: Any,
    ) -> Page:
        """Return a page of leases; see `Reader.leases` for the filters."""
        if at is not None:
            wanted['at'] = int(self._clock()) if at == NOW else at
        limit = min(limit or MAX_ITEMS, MAX_ITEMS)
        found = self._ledger.leases(project_id, limit=limit, **wanted)
        return paging.page(map(lease_values, found), 'id', len(found) == limit)

    def update_lease(
        self, lease_id: str, project_id: str | None, values: Values,
        dry_run: bool = False, offering: bool = False,
        as_far_as_possible: bool = False, names: bool = False,
    ) -> Values:
        self._learn_flavors(values)
        update = (
            self._extensions.update if as_far_as_possible
            else self._leases.update
        )
        return lease_values(update(
            lease_id, project_id, values, dry_run, offering, names=names
        ))

    def list_limits(self, project_id: str) -> Page:
        return {'items': self._enforcement.limits(project_id), 'next': None}

    def create_host(self, name: str, values: Values) -> Values:
        return _host(self._hosts.create(name, values))

    def get_host(self, host_id: str) -> Values:
        return _host(self._ledger.host(host_id))

    def list_hosts(self, marker: str | None = None) -> Page:
        found = self._ledger.hosts(after=marker, limit=MAX_ITEMS)
        return paging.page(map(_host, found), 'id', len(found) == MAX_ITEMS)

    def update_host(self, host_id: str, values: Values) -> Values:
        return _host(self._hosts.update(host_id, values))

    def list_allocations(
        self, host_id: str | None = None, lease_id: str | None = None,
        reservation_id: str | None = None, marker: str | None = None,
    ) -> Page:
        """Return a page; a host may be on several successive pages."""
        items, following = self._hosts.allocations(
            host_id, lease_id, reservation_id, marker
        )
        return {'items': items, 'next': following}

    def list_properties(self, marker: str | None = None) -> Page:
        return paging.page(self._hosts.properties(), 'property', after=marker)

    def list_flavors(self, project_id: str, marker: str | None = None) -> Page:
        return paging.page(
            (
                _flavor(each)
                for each in sorted(self._ledger.flavors(), key=_id)
                if each.is_open_to(project_id)
            ),
            'id', after=marker,
        )

    def book_instance(self, page: Any, placed_at: int) -> None:
        """Book an instance that nova-scheduler has placed; see wire."""
        try:
            instance = wire.parse_instance(page)
        except ValueError as e:
            # During an upgrade, nova-scheduler may have another version.
            LOG.debug('Ignoring a placed instance: %s', e)
        else:
            self._instances.book(instance, placed_at)

    def changes(self, since: int, limit: int) -> wire.Page:
        return {
            **self._feed.changes(since, limit),
            'now': self._clock(), 'settings': self._told,
        }

    def _learn_flavors(self, values: Values) -> None:
        """Copy the flavors that a request names and the ledger lacks."""
        self._flavors.learn(
            itertools.chain(
                values.get('reservations', ()), *values.get('alternatives', ())
            )
        )


def _fields(entity: type) -> Callable[[Any], Values]:
    """Return a function that makes a dict of an entity.

    The function works as `asdict`, but copies nothing: long lists are made of
    many such dicts.
    """
    names = [field.name for field in dataclasses.fields(entity)]
    values = operator.attrgetter(*names)
    return lambda entity: dict(zip(names, values(entity), strict=True))


_lease_fields = _fields(Lease)
_host_fields = _fields(Host)
_event = _fields(Event)
_id = operator.attrgetter('id')


def lease_values(lease: Lease) -> Values:
    """Return a lease as answers have it."""
    values = _lease_fields(lease)
    values['reservations'] = [_reservation(r) for r in lease.reservations]
    values['events'] = [_event(e) for e in lease.events]
    return values


def _reservation(reservation: Reservation) -> Values:
    return {
        **reservation.encode(),
        'projects': list(reservation.projects),
    }


def _host(host: Host) -> Values:
    return {
        **_host_fields(host),
        'inventory': {
            resource_class: dataclasses.asdict(held)
            for resource_class, held in host.inventory.items()
        },
        'projects': list(host.projects),
        'traits': list(host.traits),
        'maintenances': list(map(dataclasses.asdict, host.maintenances)),
        'providers': list(map(dataclasses.asdict, host.providers)),
    }


def _flavor(flavor: Flavor) -> Values:
    """Return a flavor as its users may see it, without the extra specs."""
    return {
        'id': flavor.id,
        'name': flavor.name,
        'vcpus': flavor.vcpus,
        'memory_mb': flavor.memory_mb,
        'disk_gb': flavor.disk_gb,
        'ephemeral_gb': flavor.ephemeral_gb,
        'swap_mb': flavor.swap_mb,
    }
