# SPDX-License-Identifier: Apache-2.0
"""The operations of the reservation service.

Times are text: ``2030-01-01 10:00``, in UTC unless the text has a zone. The
service answers in the form ``2030-01-01T10:00:00Z``. Durations are seconds, or
text as in ``90s``, ``15m``, ``6h``, ``2d`` or ``1w``.

The keywords of a method that creates or changes a resource are attributes of
the resource. A change whose `end_date` is ``now`` ends a lease, and an entry
of `reservations` without an ``id`` adds a reservation. Several resources of
the name that is to be found raise `DuplicateResource`.

With `dry_run`, a request gets the answer that it would get now, including a
refusal, and changes nothing.

A request that is refused raises an exception of `openstack.exceptions`, whose
``details`` are the words of the service. The whole answer, which may have an
``offer`` and what is ``in_the_way``, is ``response.json()`` of the exception.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Generator
import datetime
from typing import Any

import iso8601
from openstack import exceptions
from openstack import resource
import requests

from blazar_sched_client import resources
from blazar_sched_client._base import Waited
from blazar_sched_client.resources import Allocation
from blazar_sched_client.resources import Capacity
from blazar_sched_client.resources import Extension
from blazar_sched_client.resources import Host
from blazar_sched_client.resources import Lease
from blazar_sched_client.resources import Offer
from blazar_sched_client.resources import Offers
from blazar_sched_client.resources import Property
from blazar_sched_client.resources import PublicProperties
from blazar_sched_client.resources import Timeline

_UNITS = {
    's': 'seconds', 'm': 'minutes', 'h': 'hours', 'd': 'days', 'w': 'weeks',
}


class Proxy(resources.Nouns):
    """The reservation service, as `conn.reservation`."""

    api_version = '1'

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        response = super().request(*args, **kwargs)
        if not response.ok:
            # The SDK shows the reason of a refusal in which it finds no
            # message; the service's message has Blazar's name.
            response.reason = _message(response) or response.reason
        return response

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
        later = iso8601.parse_date(end) + _duration(by)
        return self.update_lease(
            lease, dry_run=dry_run, end_date=later.isoformat()
        )

    def search_offers(self, **attrs: Any) -> Offers:
        """Search for windows in which a lease would find room.

        :param attrs: attributes of the :class:`Offers`: `reservations`,
            `duration`, and others; `hold` holds the first offer
        """
        return self._post(Offers, False, attrs)

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

    def update_property(self, name: str | Property, **attrs: Any) -> Property:
        """Make a property of hosts private or public, by `private`."""
        return self._put(Property, name, False, attrs)

    def get_public_properties(self) -> PublicProperties:
        """Get the zones and properties that a requirement can name."""
        return self._read(PublicProperties, {})

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
        if isinstance(res, Waited):
            return res.wait_for(
                self, status, failures or ['ERROR'], interval or 30, wait,
                callback or (lambda progress: None),
            )
        return resource.wait_for_status(
            self, res, status, failures, interval, wait, callback=callback
        )


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
