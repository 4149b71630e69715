# SPDX-License-Identifier: Apache-2.0
"""The operations of the reservation service.

Times are text: ``2030-01-01 10:00``, in UTC unless the text has a zone. The
service answers in the form ``2030-01-01T10:00:00Z``. Durations are seconds, or
text as in ``90s``, ``15m``, ``6h``, ``2d`` or ``1w``.

With `dry_run`, a request gets the answer that it would get now, including a
refusal, and changes nothing.

A request that is refused raises an exception of `openstack.exceptions`, whose
``details`` are the words of the service. The whole answer, which may have an
``offer`` and what is ``in_the_way``, is ``response.json()`` of the exception.
"""

from collections.abc import Callable
from collections.abc import Generator
import datetime
from typing import Any

from openstack import exceptions
from openstack import proxy
from openstack import resource
import requests

from blazar_sched_client.allocation import Allocation
from blazar_sched_client.calendar import Calendar
from blazar_sched_client.capacity import Capacity
from blazar_sched_client.flavor import Flavor
from blazar_sched_client.floating_ip import FloatingIP
from blazar_sched_client.host import Host
from blazar_sched_client.lease import Extension
from blazar_sched_client.lease import Lease
from blazar_sched_client.lease_request import LeaseRequest
from blazar_sched_client.limit import Limit
from blazar_sched_client.maintenance import Maintenance
from blazar_sched_client.offer import Offer
from blazar_sched_client.offer import Offers
from blazar_sched_client.product import Product
from blazar_sched_client.property import Property
from blazar_sched_client.property import PublicProperties
from blazar_sched_client.series import Series
from blazar_sched_client.timeline import Timeline
from blazar_sched_client.usage import Usage
from blazar_sched_client.webhook import Webhook

_DRY_RUN: dict[str, Any] = {'dry_run': 'true'}
_UNITS = {
    's': 'seconds', 'm': 'minutes', 'h': 'hours', 'd': 'days', 'w': 'weeks',
}


class Proxy(proxy.Proxy):
    """The reservation service, as `conn.reservation`."""

    api_version = '1'

    _resource_registry = {
        'allocation': Allocation,
        'calendar': Calendar,
        'capacity': Capacity,
        'flavor': Flavor,
        'floating_ip': FloatingIP,
        'host': Host,
        'lease': Lease,
        'lease_request': LeaseRequest,
        'limit': Limit,
        'maintenance': Maintenance,
        'offer': Offer,
        'product': Product,
        'property': Property,
        'series': Series,
        'timeline': Timeline,
        'usage': Usage,
        'webhook': Webhook,
    }

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        response = super().request(*args, **kwargs)
        if not response.ok:
            # The SDK shows the reason of a refusal in which it finds no
            # message; the service's message has Blazar's name.
            response.reason = _message(response) or response.reason
        return response

    # ========== Leases ==========

    def leases(self, **query: Any) -> Generator[Lease, None, None]:
        """List the leases of the project, or of all projects for an admin.

        :param query: `name`, `status`, `project_id`, `active_at`, `start_date`
            and `end_date` of a window that leases overlap, `resource_type`,
            `host`, `degraded`, `label` as in ``team:vision``, one or a list,
            `sort` as in ``name:asc,end:desc``, `fields`,
            and `limit`, the size of a page
        """
        # The SDK's `_list` has an argument `resource_type` of its own.
        return Lease.list(self, **query)

    def get_lease(self, lease: str | Lease) -> Lease:
        """Get a lease, with its hosts and what remains of its reservations."""
        return self._get(Lease, lease)

    def find_lease(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> Lease | None:
        """Find a lease by its name or ID.

        :raises DuplicateResource: if several leases have the name
        """
        return self._find(Lease, name_or_id, ignore_missing)

    def create_lease(self, *, dry_run: bool = False, **attrs: Any) -> Lease:
        """Create a lease with all of its reservations, or create nothing.

        :param attrs: attributes of the :class:`Lease`: `name`, `reservations`,
            and `end_date` or `duration`, or `name` and `offer`
        """
        return self._post(Lease, dry_run, attrs)

    def update_lease(
        self, lease: str | Lease, *, dry_run: bool = False, **attrs: Any
    ) -> Lease:
        """Make all of the changes of a lease, or change nothing.

        :param attrs: attributes of the :class:`Lease` that change; an
            `end_date` of ``now`` ends the lease, and an entry of
            `reservations` without an ``id`` adds a reservation
        """
        return self._put(Lease, lease, dry_run, attrs)

    def delete_lease(
        self, lease: str | Lease, ignore_missing: bool = True, *,
        dry_run: bool = False,
    ) -> None:
        """End a lease that has started, and delete the lease."""
        self._remove(Lease, lease, ignore_missing, dry_run)

    def get_lease_extension(
        self, lease: str | Lease, end_date: str | None = None
    ) -> Extension:
        """Get how far a lease can be prolonged; nothing is reserved.

        :param end_date: latest end that is of interest, None for any end
        """
        query = {'end_date': end_date} if end_date else {}
        id_ = resource.Resource._get_id(lease)
        return self._read(Extension, query, lease_id=id_)

    def extend_lease(
        self, lease: str | Lease, end_date: str | None = '', *, by: str = '',
        dry_run: bool = False,
    ) -> Lease:
        """Prolong a lease by a duration, or as far as possible.

        :param end_date: latest end to prolong the lease to as far as possible,
            None for any end, also for no end
        :param by: duration by which the end moves, in place of `end_date`
        :raises InvalidRequest: unless `end_date` or `by` is given, not both
        """
        if (end_date == '') is not bool(by):
            raise exceptions.InvalidRequest('either end_date or by is needed')
        if not by:
            return self.update_lease(
                lease, dry_run=dry_run, end_date=end_date,
                as_far_as_possible=True,
            )
        end = self.get_lease(lease).end_date
        if end is None:
            raise exceptions.InvalidRequest('the lease has no end')
        later = datetime.datetime.fromisoformat(end) + _duration(by)
        return self.update_lease(
            lease, dry_run=dry_run, end_date=later.isoformat()
        )

    # ========== Offers ==========

    def search_offers(self, **attrs: Any) -> Offers:
        """Search for windows in which a lease would find room.

        :param attrs: attributes of the :class:`Offers`: `reservations`,
            `duration`, and others; `hold` holds the first offer
        """
        return self._post(Offers, False, attrs)

    def offers(self) -> Generator[Offer, None, None]:
        """List the held offers of the project."""
        return self._list(Offer)

    def get_offer(self, offer: str | Offer) -> Offer:
        """Get a held offer."""
        return self._get(Offer, offer)

    def find_offer(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> Offer | None:
        """Find a held offer by its ID."""
        return self._find(Offer, name_or_id, ignore_missing)

    def accept_offer(
        self, offer: str | Offer, name: str, *, dry_run: bool = False,
        **attrs: Any,
    ) -> Lease:
        """Make a lease of a held offer.

        :param name: name of the lease
        :param attrs: `before_end_date`, if wanted
        """
        id_ = resource.Resource._get_id(offer)
        return self.create_lease(
            dry_run=dry_run, name=name, offer=id_, **attrs
        )

    def update_offer(self, offer: str | Offer, **attrs: Any) -> Offer:
        """Approve a held offer, take the approval back, or hold it longer.

        :param attrs: `approved`, and `hold`, how long from now on
        """
        # An offer of a search would be sent as a whole.
        id_ = resource.Resource._get_id(offer)
        return self._put(Offer, id_, False, attrs)

    def delete_offer(
        self, offer: str | Offer, ignore_missing: bool = True
    ) -> None:
        """Delete a held offer, so that its room is free again."""
        self._remove(Offer, offer, ignore_missing)

    # ========== Series ==========

    def series(self) -> Generator[Series, None, None]:
        """List the series of the project."""
        return self._list(Series)

    def get_series(self, series: str | Series) -> Series:
        """Get a series, with its occurrences."""
        return self._get(Series, series)

    def find_series(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> Series | None:
        """Find a series by its name or ID."""
        return self._find(Series, name_or_id, ignore_missing)

    def create_series(self, *, dry_run: bool = False, **attrs: Any) -> Series:
        """Create a series, and book its occurrences of the next time.

        :param attrs: attributes of the :class:`Series`
        """
        return self._post(Series, dry_run, attrs)

    def update_series(
        self, series: str | Series, *, dry_run: bool = False, **attrs: Any
    ) -> Series:
        """Change a series from an occurrence on.

        :param attrs: attributes of the :class:`Series` that change, and
            `change_from`
        """
        return self._put(Series, series, dry_run, attrs)

    def delete_series(
        self, series: str | Series, ignore_missing: bool = True
    ) -> None:
        """Delete a series with its leases that have not started."""
        self._remove(Series, series, ignore_missing)

    # ========== Lease requests ==========

    def lease_requests(self) -> Generator[LeaseRequest, None, None]:
        """List the lease requests of the project."""
        return self._list(LeaseRequest)

    def get_lease_request(
        self, lease_request: str | LeaseRequest
    ) -> LeaseRequest:
        """Get a lease request, with the start that it may expect."""
        return self._get(LeaseRequest, lease_request)

    def find_lease_request(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> LeaseRequest | None:
        """Find a lease request by its name or ID."""
        return self._find(LeaseRequest, name_or_id, ignore_missing)

    def create_lease_request(self, **attrs: Any) -> LeaseRequest:
        """Create a lease at the first start with room, or wait for room.

        :param attrs: attributes of the :class:`LeaseRequest`
        """
        return self._post(LeaseRequest, False, attrs)

    def delete_lease_request(
        self, lease_request: str | LeaseRequest, ignore_missing: bool = True
    ) -> None:
        """Cancel a lease request that waits for room."""
        self._remove(LeaseRequest, lease_request, ignore_missing)

    # ========== Webhooks ==========

    def webhooks(self) -> Generator[Webhook, None, None]:
        """List the webhooks of the project."""
        return self._list(Webhook)

    def get_webhook(self, webhook: str | Webhook) -> Webhook:
        """Get a webhook, and why it fails."""
        return self._get(Webhook, webhook)

    def find_webhook(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> Webhook | None:
        """Find a webhook by its ID."""
        return self._find(Webhook, name_or_id, ignore_missing)

    def create_webhook(self, **attrs: Any) -> Webhook:
        """Create a webhook; only the answer has its secret.

        :param attrs: attributes of the :class:`Webhook`
        """
        return self._post(Webhook, False, attrs)

    def delete_webhook(
        self, webhook: str | Webhook, ignore_missing: bool = True
    ) -> None:
        """Delete a webhook, with the notifications that wait for it."""
        self._remove(Webhook, webhook, ignore_missing)

    # ========== Calendars ==========

    def calendars(self) -> Generator[Calendar, None, None]:
        """List the calendars of the project."""
        return self._list(Calendar)

    def get_calendar(self, calendar: str | Calendar) -> Calendar:
        """Get a calendar, without its link."""
        return self._get(Calendar, calendar)

    def find_calendar(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> Calendar | None:
        """Find a calendar by its name or ID.

        :raises DuplicateResource: if several calendars have the name
        """
        return self._find(Calendar, name_or_id, ignore_missing)

    def create_calendar(self, **attrs: Any) -> Calendar:
        """Create a calendar; only the answer has its link.

        :param attrs: the `name`
        """
        return self._post(Calendar, False, attrs)

    def delete_calendar(
        self, calendar: str | Calendar, ignore_missing: bool = True
    ) -> None:
        """Delete a calendar: its link is not valid any more."""
        self._remove(Calendar, calendar, ignore_missing)

    # ========== Maintenances ==========

    def maintenances(self) -> Generator[Maintenance, None, None]:
        """List the maintenances."""
        return self._list(Maintenance)

    def get_maintenance(self, maintenance: str | Maintenance) -> Maintenance:
        """Get a maintenance, with the reservations that are in its way."""
        return self._get(Maintenance, maintenance)

    def find_maintenance(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> Maintenance | None:
        """Find a maintenance by its name or ID."""
        return self._find(Maintenance, name_or_id, ignore_missing)

    def create_maintenance(
        self, *, dry_run: bool = False, **attrs: Any
    ) -> Maintenance:
        """Close hosts over a window, and move reservations off the hosts.

        :param attrs: attributes of the :class:`Maintenance`
        """
        return self._post(Maintenance, dry_run, attrs)

    def update_maintenance(
        self, maintenance: str | Maintenance, *, dry_run: bool = False,
        **attrs: Any,
    ) -> Maintenance:
        """Change the name, the reason or the window of a maintenance.

        :param attrs: attributes of the :class:`Maintenance` that change
        """
        return self._put(Maintenance, maintenance, dry_run, attrs)

    def delete_maintenance(
        self, maintenance: str | Maintenance, ignore_missing: bool = True
    ) -> None:
        """End or cancel a maintenance: its hosts are open again."""
        self._remove(Maintenance, maintenance, ignore_missing)

    # ========== Hosts ==========

    def hosts(self) -> Generator[Host, None, None]:
        """List the reservable hosts."""
        return self._list(Host)

    def get_host(self, host: str | Host) -> Host:
        """Get a host."""
        return self._get(Host, host)

    def find_host(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> Host | None:
        """Find a host by its hypervisor hostname or ID."""
        return self._find(Host, name_or_id, ignore_missing)

    def create_host(self, **attrs: Any) -> Host:
        """Register the compute host with the given name as reservable.

        :param attrs: `name`, settings of the :class:`Host`, and capabilities
        """
        return self._post(Host, False, attrs)

    def update_host(self, host: str | Host, **attrs: Any) -> Host:
        """Change the capabilities and settings of a host.

        :param attrs: settings of the :class:`Host`, and capabilities; None
            deletes one
        """
        return self._put(Host, host, False, attrs)

    def delete_host(
        self, host: str | Host, ignore_missing: bool = True
    ) -> None:
        """Make a host no longer reservable."""
        self._remove(Host, host, ignore_missing)

    # ========== Allocations ==========

    def allocations(self, **query: Any) -> Generator[Allocation, None, None]:
        """List the coming allocations of all hosts.

        :param query: `lease_id` or `reservation_id`, which also list past
            allocations
        """
        return self._list(
            Allocation, base_path='/os-hosts/allocations', **query
        )

    def get_allocation(self, host: str | Host, **query: Any) -> Allocation:
        """Get the allocations of a host.

        :param query: `lease_id` or `reservation_id`
        """
        id_ = resource.Resource._get_id(host)
        return self._read(Allocation, query, host_id=id_)

    def update_allocation(self, host: str | Host, **attrs: Any) -> Allocation:
        """Move reservations of a lease from the host to other hosts.

        :param attrs: `lease_id` or `reservation_id`
        :returns: the allocations that are left on the host
        """
        id_ = resource.Resource._get_id(host)
        return self._put(Allocation, None, False, {'host_id': id_, **attrs})

    # ========== Properties ==========

    def properties(self, **query: Any) -> Generator[Property, None, None]:
        """List the public properties of hosts, for an administrator.

        :param query: `detail`, with the values; `all`, with private properties
        """
        return self._list(Property, **query)

    def update_property(self, name: str | Property, **attrs: Any) -> Property:
        """Make a property of hosts private or public.

        :param attrs: `private`
        """
        return self._put(Property, name, False, attrs)

    def get_public_properties(self) -> PublicProperties:
        """Get the zones and properties that a requirement can name."""
        return self._read(PublicProperties, {})

    # ========== Floating IPs ==========

    def floating_ips(self) -> Generator[FloatingIP, None, None]:
        """List the reservable floating IPs."""
        return self._list(FloatingIP)

    def get_floating_ip(self, floating_ip: str | FloatingIP) -> FloatingIP:
        """Get a reservable floating IP."""
        return self._get(FloatingIP, floating_ip)

    def find_floating_ip(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> FloatingIP | None:
        """Find a reservable floating IP by its address or ID."""
        return self._find(FloatingIP, name_or_id, ignore_missing)

    def create_floating_ip(self, **attrs: Any) -> FloatingIP:
        """Register a floating IP of an external network as reservable.

        :param attrs: `floating_network_id` and `floating_ip_address`
        """
        return self._post(FloatingIP, False, attrs)

    def delete_floating_ip(
        self, floating_ip: str | FloatingIP, ignore_missing: bool = True
    ) -> None:
        """Make a floating IP no longer reservable."""
        self._remove(FloatingIP, floating_ip, ignore_missing)

    # ========== What there is room for ==========

    def get_capacity(self, **query: Any) -> Capacity:
        """Get the total and the available capacity of hosts over a window.

        :param query: `start_date`, `end_date`, `parts`,
            `resource_properties` and `flavor_id`
        """
        return self._read(Capacity, query)

    def get_timeline(self, **query: Any) -> Timeline:
        """Get what takes the hosts in a window, row by row.

        :param query: `start_date`, `end_date`, `group_by`,
            `resource_properties`, `resource_class`, `parts`, and `limit`, the
            size of a page
        :returns: the rows of all pages
        """
        timeline = self._read(Timeline, query)
        rows = timeline.rows
        while timeline.marker is not None:
            timeline = self._read(
                Timeline, {**query, 'marker': timeline.marker}
            )
            rows += timeline.rows
        timeline.rows = rows
        return timeline

    def limits(self, **query: Any) -> Generator[Limit, None, None]:
        """List the limits of the project, with what it uses of them.

        :param query: `project_id` of another project, for an admin
        """
        return self._list(Limit, **query)

    def products(self, **query: Any) -> Generator[Product, None, None]:
        """List the operator's products, with how much is free in a window.

        :param query: `start_date` and `end_date`, by default now and a day
            after the start
        """
        return self._list(Product, **query)

    def usage(self, **query: Any) -> Generator[Usage, None, None]:
        """List what reservations have reserved and used, in hours.

        :param query: `start_date`, `end_date`, `group_by` (names of
            attributes, separated by commas), and `project_id` for an admin
        """
        return self._list(Usage, **query)

    def flavors(self) -> Generator[Flavor, None, None]:
        """List the flavors of Nova that the project may use, by name."""
        return self._list(Flavor)

    # ========== Of all resources ==========

    def wait_for_status(
        self, res: resource.ResourceT, status: str,
        failures: list[str] | None = None, interval: float | None = None,
        wait: float | None = None,
        callback: Callable[[int], None] | None = None,
    ) -> resource.ResourceT:
        """Wait until a lease, lease request or maintenance has a status.

        :param failures: statuses from which the other is not reached
        :param interval: seconds between two requests, 2 if None; for a lease,
            seconds after which a request is answered even though the lease
            has none of the statuses yet, 30 if None
        :param wait: seconds after which it is given up, None for never
        :raises ResourceFailure: if the resource has a status of `failures`
        :raises ResourceTimeout: after `wait` seconds
        """
        if isinstance(res, Lease):
            return res.wait_for(
                self, status, failures or ['ERROR'], interval or 30, wait,
                callback or (lambda progress: None),
            )
        return resource.wait_for_status(
            self, res, status, failures, interval, wait, callback=callback
        )

    def _read(
        self, resource_type: type[resource.ResourceT], query: dict[str, Any],
        **uri: str,
    ) -> resource.ResourceT:
        """Get a resource that has no ID of its own."""
        found = self._get_resource(resource_type, None, **uri)
        return found.fetch(self, requires_id=False, **query)

    def _post(
        self, resource_type: type[resource.ResourceT], dry_run: bool,
        attrs: dict[str, Any],
    ) -> resource.ResourceT:
        made = self._get_resource(resource_type, None, **attrs)
        return made.create(self, **_DRY_RUN if dry_run else {})

    def _put(
        self, resource_type: type[resource.ResourceT],
        value: str | resource.ResourceT | None, dry_run: bool,
        attrs: dict[str, Any],
    ) -> resource.ResourceT:
        changed = self._get_resource(resource_type, value, **attrs)
        return changed.commit(self, params=_DRY_RUN if dry_run else None)

    def _remove(
        self, resource_type: type[resource.ResourceT],
        value: str | resource.ResourceT, ignore_missing: bool,
        dry_run: bool = False,
    ) -> None:
        removed = self._get_resource(resource_type, value)
        try:
            removed.delete(self, params=_DRY_RUN if dry_run else None)
        except exceptions.NotFoundException:
            if not ignore_missing:
                raise


def _duration(text: str) -> datetime.timedelta:
    """Return a duration that is as the service reads durations.

    :raises InvalidRequest: if the text is none
    """
    number, unit = text.rstrip(''.join(_UNITS)), text[-1:]
    if number.isdecimal() and text in (number, number + unit):
        return datetime.timedelta(**{_UNITS.get(unit, 'seconds'): int(number)})
    raise exceptions.InvalidRequest(
        f'by {text!r} must be a duration: digits and s, m, h, d or w'
    )


def _message(response: requests.Response) -> str | None:
    """Return the words of the service, None if it was not the service."""
    try:
        return str(response.json()['error_message'])
    except (ValueError, LookupError, TypeError):
        return None
