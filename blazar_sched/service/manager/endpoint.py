# SPDX-License-Identifier: Apache-2.0
"""The methods that the manager serves over RPC, in JSON primitives.

`ctxt` is the context of the caller as a dict. The API decides who may make
which request; `project_id` None stands for every project.
"""

from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
import ipaddress
import itertools
import operator
from typing import Any

from oslo_log import log
import oslo_messaging

from blazar_sched.domain import exception
from blazar_sched.domain.event import Event
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.floating_ip import FloatingIP
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.replica import wire
from blazar_sched.service.booking import extension
from blazar_sched.service.booking import lease
from blazar_sched.service.booking import lease_request
from blazar_sched.service.booking import offer
from blazar_sched.service.booking import series
from blazar_sched.service.events import clock
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.manager import capacity
from blazar_sched.service.manager import feed
from blazar_sched.service.manager import threshold
from blazar_sched.service.manager import timeline
from blazar_sched.service.upkeep import flavor_sync
from blazar_sched.service.upkeep import floating_ip
from blazar_sched.service.upkeep import healing
from blazar_sched.service.upkeep import host
from blazar_sched.service.upkeep import instance_sync
from blazar_sched.service.upkeep import maintenance

LOG = log.getLogger(__name__)

Context = dict[str, Any]
Values = dict[str, Any]

# The most items of a page, so that few items are read in vain where the items
# are long.
MAX_ITEMS = 200

# A refusal is a normal answer: it is not logged as a failure of the manager.
_answer: Callable[[Any], Any] = oslo_messaging.expected_exceptions(
    exception.BlazarSchedError
)


class Endpoint:
    """The RPC endpoint of the manager; see rpc.Counted for its versions."""

    def __init__(
        self,
        ledger: Ledger,
        leases: lease.Leases,
        hosts: host.Hosts,
        healer: healing.Healer,
        floating_ips: floating_ip.FloatingIPs,
        capacity: capacity.Capacity,
        offers: offer.Offers,
        all_series: series.AllSeries,
        extensions: extension.Extensions,
        maintenances: maintenance.Maintenances,
        lease_requests: lease_request.LeaseRequests,
        thresholds: threshold.Thresholds,
        instances: instance_sync.Instances,
        timeline: timeline.Timeline,
        flavors: flavor_sync.Flavors,
        clock: clock.Clock,
    ) -> None:
        self._ledger = ledger
        self._flavors = flavors
        self._offers = offers
        self._series = all_series
        self._extensions = extensions
        self._maintenances = maintenances
        self._lease_requests = lease_requests
        self._thresholds = thresholds
        self._instances = instances
        self._feed = feed.Feed(ledger)
        self._leases = leases
        self._hosts = hosts
        self._healer = healer
        self._floating_ips = floating_ips
        self._capacity = capacity
        self._timeline = timeline
        self._clock = clock

    def _learn_flavors(self, values: Values) -> None:
        """Copy the flavors that a request names and the ledger lacks."""
        self._flavors.learn(
            itertools.chain(
                values.get('reservations', ()),
                *values.get('alternatives', ()),
            )
        )

    def ping(self, ctxt: Context) -> None:
        """Return nothing, which shows that a manager is running."""

    @_answer
    def check(self, ctxt: Context) -> None:
        """Return nothing, which shows that the database also answers.

        :raises Unavailable: also if the clock of this manager differs from the
            clock of the database
        """
        self._ledger.require_unchanged()
        self._ledger.properties()
        self._clock.check()

    @_answer
    def create_lease(
        self,
        ctxt: Context,
        values: Values,
        idempotency_key: str | None = None,
        offering: bool = False,
        dry_run: bool = False,
    ) -> Values:
        self._learn_flavors(values)
        return _lease(
            self._leases.create(values, idempotency_key, offering, dry_run)
        )

    @_answer
    def get_lease(
        self, ctxt: Context, lease_id: str, project_id: str | None
    ) -> Values:
        return _lease(self._ledger.owned_lease(lease_id, project_id))

    @_answer
    def get_lease_use(
        self, ctxt: Context, lease_id: str, project_id: str | None
    ) -> dict[str, Values]:
        """Return the hosts and the server count of each reservation.

        `hosts` are hypervisor hostnames, `used` counts servers.
        """
        lease = self._ledger.owned_lease(lease_id, project_id)
        held = [a for a, _ in self._ledger.allocations(lease_id=lease.id)]
        hosts = self._ledger.hosts({a.host for a in held})
        names = {h.uuid: h.hypervisor_hostname for h in hosts}
        used = Counter(
            i.reservation_id for i in self._ledger.instances(set(names))
        )
        return {
            reservation.id: {
                'hosts': sorted(
                    names[a.host]
                    for a in held
                    if a.reservation_id == reservation.id and a.host in names
                ),
                'used': used[reservation.id],
            }
            for reservation in lease.reservations
        }

    @_answer
    def list_leases(
        self, ctxt: Context, project_id: str | None, **wanted: Any
    ) -> Values:
        """Return a page of leases; see `Reader.leases` for the filters."""
        limit = min(wanted.pop('limit', None) or MAX_ITEMS, MAX_ITEMS)
        found = self._ledger.leases(project_id, limit=limit, **wanted)
        return _page(map(_lease, found), 'id', len(found) == limit)

    @_answer
    def update_lease(
        self,
        ctxt: Context,
        lease_id: str,
        project_id: str | None,
        values: Values,
        dry_run: bool = False,
        offering: bool = False,
        as_far_as_possible: bool = False,
    ) -> Values:
        self._learn_flavors(values)
        update = (
            self._extensions.update if as_far_as_possible
            else self._leases.update
        )
        return _lease(
            update(lease_id, project_id, values, dry_run, offering)
        )

    @_answer
    def get_extension(
        self,
        ctxt: Context,
        lease_id: str,
        project_id: str | None,
        end: int,
    ) -> Values:
        return self._extensions.get(lease_id, project_id, end)

    @_answer
    def delete_lease(
        self,
        ctxt: Context,
        lease_id: str,
        project_id: str | None,
        dry_run: bool = False,
    ) -> None:
        self._leases.delete(lease_id, project_id, dry_run)

    @_answer
    def get_capacity(
        self, ctxt: Context, project_id: str, **wanted: Any
    ) -> Values:
        """Return the capacity; see `Capacity.get` for the parameters."""
        return self._capacity.get(project_id, **wanted)

    @_answer
    def get_timeline(
        self, ctxt: Context, known: list[str], **wanted: Any
    ) -> Values:
        """Return a page of the timeline; see `timeline.Query` for the rest."""
        return self._timeline.get(timeline.Query(**wanted), known)

    @_answer
    def search_offers(self, ctxt: Context, values: Values) -> Values:
        self._learn_flavors(values)
        return self._offers.search(values)

    @_answer
    def hold_offer(
        self, ctxt: Context, values: Values, seconds: int
    ) -> Values:
        self._learn_flavors(values)
        return self._offers.hold(values, seconds)

    @_answer
    def accept_offer(
        self,
        ctxt: Context,
        values: Values,
        idempotency_key: str,
        dry_run: bool = False,
    ) -> Values:
        return _lease(self._offers.accept(values, idempotency_key, dry_run))

    @_answer
    def list_offers(
        self,
        ctxt: Context,
        project_id: str | None,
        marker: str | None = None,
    ) -> Values:
        return _page(self._offers.list(project_id), 'id', after=marker)

    @_answer
    def get_offer(
        self, ctxt: Context, offer_id: str, project_id: str | None
    ) -> Values:
        return self._offers.get(offer_id, project_id)

    @_answer
    def delete_offer(
        self, ctxt: Context, offer_id: str, project_id: str | None
    ) -> None:
        self._offers.delete(offer_id, project_id)

    @_answer
    def create_series(
        self,
        ctxt: Context,
        values: Values,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Values:
        self._learn_flavors(values)
        return self._series.create(values, idempotency_key, dry_run)

    @_answer
    def update_series(
        self,
        ctxt: Context,
        series_id: str,
        project_id: str | None,
        values: Values,
        since: str | None = None,
        dry_run: bool = False,
    ) -> Values:
        return self._series.update(
            series_id, project_id, values, since, dry_run
        )

    @_answer
    def list_series(
        self,
        ctxt: Context,
        project_id: str | None,
        marker: str | None = None,
    ) -> Values:
        return _page(self._series.list(project_id), 'id', after=marker)

    @_answer
    def get_series(
        self, ctxt: Context, series_id: str, project_id: str | None
    ) -> Values:
        return self._series.get(series_id, project_id)

    @_answer
    def delete_series(
        self, ctxt: Context, series_id: str, project_id: str | None
    ) -> None:
        self._series.delete(series_id, project_id)

    @_answer
    def create_maintenance(
        self,
        ctxt: Context,
        values: Values,
        force: bool = False,
        dry_run: bool = False,
    ) -> Values:
        return self._maintenances.create(values, force, dry_run)

    @_answer
    def list_maintenances(
        self, ctxt: Context, marker: str | None = None
    ) -> Values:
        return _page(self._maintenances.list_all(marker), 'id')

    @_answer
    def get_maintenance(self, ctxt: Context, maintenance_id: str) -> Values:
        return self._maintenances.get(maintenance_id)

    @_answer
    def update_maintenance(
        self,
        ctxt: Context,
        maintenance_id: str,
        values: Values,
        force: bool = False,
        dry_run: bool = False,
    ) -> Values:
        return self._maintenances.update(
            maintenance_id, values, force, dry_run
        )

    @_answer
    def delete_maintenance(
        self, ctxt: Context, maintenance_id: str
    ) -> None:
        self._maintenances.delete(maintenance_id)

    @_answer
    def create_lease_request(
        self,
        ctxt: Context,
        values: Values,
        idempotency_key: str | None = None,
    ) -> Values:
        self._learn_flavors(values)
        return self._lease_requests.create(values, idempotency_key)

    @_answer
    def list_lease_requests(
        self,
        ctxt: Context,
        project_id: str | None,
        marker: str | None = None,
    ) -> Values:
        return _page(
            self._lease_requests.list(project_id), 'id', after=marker
        )

    @_answer
    def get_lease_request(
        self, ctxt: Context, request_id: str, project_id: str | None
    ) -> Values:
        return self._lease_requests.get(request_id, project_id)

    @_answer
    def cancel_lease_request(
        self, ctxt: Context, request_id: str, project_id: str | None
    ) -> None:
        self._lease_requests.cancel(request_id, project_id)

    @_answer
    def create_threshold(self, ctxt: Context, values: Values) -> Values:
        return self._thresholds.create(values)

    @_answer
    def list_thresholds(
        self, ctxt: Context, marker: str | None = None
    ) -> Values:
        return _page(self._thresholds.list_all(marker), 'id')

    @_answer
    def get_threshold(self, ctxt: Context, threshold_id: str) -> Values:
        return self._thresholds.get(threshold_id)

    @_answer
    def delete_threshold(self, ctxt: Context, threshold_id: str) -> None:
        self._thresholds.delete(threshold_id)

    @_answer
    def create_host(self, ctxt: Context, name: str, values: Values) -> Values:
        return _host(self._hosts.create(name, values))

    @_answer
    def get_host(self, ctxt: Context, host_id: str) -> Values:
        return _host(self._ledger.host(host_id))

    @_answer
    def list_hosts(
        self, ctxt: Context, marker: str | None = None
    ) -> Values:
        found = self._ledger.hosts(after=marker, limit=MAX_ITEMS)
        return _page(map(_host, found), 'id', len(found) == MAX_ITEMS)

    @_answer
    def update_host(
        self, ctxt: Context, host_id: str, values: Values
    ) -> Values:
        return _host(self._hosts.update(host_id, values))

    @_answer
    def delete_host(self, ctxt: Context, host_id: str) -> None:
        self._hosts.delete(host_id)

    @_answer
    def list_allocations(
        self,
        ctxt: Context,
        host_id: str | None = None,
        lease_id: str | None = None,
        reservation_id: str | None = None,
        marker: str | None = None,
    ) -> Values:
        """Return a page; a host may be on several successive pages."""
        items, following = self._hosts.allocations(
            host_id, lease_id, reservation_id, marker
        )
        return {'items': items, 'next': following}

    @_answer
    def reallocate(
        self,
        ctxt: Context,
        host_id: str,
        lease_id: str | None = None,
        reservation_id: str | None = None,
    ) -> None:
        self._healer.reallocate(host_id, lease_id, reservation_id)

    @_answer
    def list_properties(
        self, ctxt: Context, marker: str | None = None
    ) -> Values:
        return _page(self._hosts.properties(), 'property', after=marker)

    @_answer
    def list_public_properties(
        self, ctxt: Context, project_id: str
    ) -> Values:
        return self._hosts.public_properties(project_id)

    @_answer
    def list_flavors(
        self, ctxt: Context, project_id: str, marker: str | None = None
    ) -> Values:
        return _page(
            (
                _flavor(each)
                for each in sorted(self._ledger.flavors(), key=_id)
                if each.is_open_to(project_id)
            ),
            'id',
            after=marker,
        )

    @_answer
    def list_unknown_properties(
        self,
        ctxt: Context,
        names: list[str],
        private: bool,
        project_id: str | None,
    ) -> list[str]:
        return self._hosts.unknown_properties(names, private, project_id)

    @_answer
    def update_property(
        self, ctxt: Context, name: str, private: bool
    ) -> Values:
        return self._hosts.update_property(name, private)

    @_answer
    def create_floating_ip(
        self, ctxt: Context, network_id: str, address: str
    ) -> Values:
        return dataclasses.asdict(
            self._floating_ips.create(network_id, address)
        )

    @_answer
    def get_floating_ip(self, ctxt: Context, floating_ip_id: str) -> Values:
        return dataclasses.asdict(self._ledger.floating_ip(floating_ip_id))

    @_answer
    def list_floating_ips(
        self, ctxt: Context, marker: str | None = None
    ) -> Values:
        places = {_place(each): each for each in self._ledger.floating_ips()}
        return _page(
            (
                {**dataclasses.asdict(places[place]), 'place': place}
                for place in sorted(places)
            ),
            'place',
            after=marker,
        )

    @_answer
    def delete_floating_ip(self, ctxt: Context, floating_ip_id: str) -> None:
        self._floating_ips.delete(floating_ip_id)

    @_answer
    def book_instance(
        self, ctxt: Context, page: Any, placed_at: int
    ) -> None:
        """Book an instance that nova-scheduler has placed; see wire."""
        try:
            instance = wire.parse_instance(page)
        except ValueError as e:
            # During an upgrade, nova-scheduler may have another version.
            LOG.debug('Ignoring a placed instance: %s', e)
        else:
            self._instances.book(instance, placed_at)

    @_answer
    def changes(self, ctxt: Context, since: int, limit: int) -> wire.Page:
        return {**self._feed.changes(since, limit), 'now': self._clock()}

    @_answer
    def snapshot(
        self, ctxt: Context, after: str | None, limit: int
    ) -> wire.Page:
        return self._ledger.snapshot(after, limit)


def _fields(entity: type) -> Callable[[Any], Values]:
    """Return a function that makes a dict of an entity.

    The function works as `asdict`, but copies nothing: long lists are made of
    many such dicts.
    """
    names = [field.name for field in dataclasses.fields(entity)]
    values = operator.attrgetter(*names)
    return lambda entity: dict(zip(names, values(entity), strict=True))


def _page(
    items: Iterable[Values],
    key: str,
    others: bool = False,
    after: str | None = None,
) -> Values:
    """Return the part of a list that fits into a message.

    `next` is the marker of the page that follows, None if there is none.

    :param key: the field of an item that marks the position of the item
    :param others: whether more items than the given items may follow
    :param after: the marker after which the page begins, None for all items
    """
    found, more = wire.fitting(
        each for each in items if after is None or each[key] > after
    )
    return {
        'items': found,
        'next': found[-1][key] if more or (others and found) else None,
    }


def _place(floating_ip: FloatingIP) -> str:
    """Return the sort key of a floating IP in a list: network, address."""
    address = int(ipaddress.ip_address(floating_ip.address))
    return f'{floating_ip.network_id}/{address:039}'


_lease_fields = _fields(Lease)
_reservation_fields = _fields(Reservation)
_host_fields = _fields(Host)
_event = _fields(Event)
_id = operator.attrgetter('id')


def _lease(lease: Lease) -> Values:
    values = _lease_fields(lease)
    values['reservations'] = [_reservation(r) for r in lease.reservations]
    values['events'] = [_event(e) for e in lease.events]
    return values


def _reservation(reservation: Reservation) -> Values:
    return {
        **_reservation_fields(reservation),
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
