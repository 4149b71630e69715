# SPDX-License-Identifier: Apache-2.0
"""Offers: windows in which a lease would find room."""

from typing import Any

from openstack import resource

from blazar_sched_client._base import Resource


class Offer(Resource):
    """A window with room, which may be held for a project."""

    resource_key = 'offer'
    resources_key = 'offers'
    base_path = '/offers'
    allow_fetch = True
    allow_commit = True
    allow_delete = True
    allow_list = True

    #: Start of the window.
    start_date: str = resource.Body('start_date')
    #: End of the window.
    end_date: str = resource.Body('end_date')
    #: Time at which the offer lapses; None if the offer is not held.
    held_until: str | None = resource.Body('held_until')
    #: ID of the project for which the offer is held.
    project_id: str = resource.Body('project_id')
    #: Position of the reservations that have room: 0 for `reservations`, then
    #: those of `alternatives`.
    alternative: int = resource.Body('alternative')
    #: ``policy`` if a limit of the project forbids the lease.
    limited_by: str | None = resource.Body('limited_by')
    #: The limits that forbid the lease until an administrator approves the
    #: offer.
    needs_approval: str | None = resource.Body('needs_approval')
    #: ID of the administrator who has approved the offer.
    approved_by: str | None = resource.Body('approved_by')
    #: Whether the offer is approved, in a change of the offer.
    approved: bool | None = resource.Body('approved', type=bool)
    #: How long the offer is held from now on, in a change of the offer.
    hold: str | int | None = resource.Body('hold')
    #: What each reservation of the request gets.
    reservations: list[dict[str, Any]] = resource.Body(
        'reservations', type=list
    )


class Offers(Resource):
    """A search for offers, with its result."""

    base_path = '/offers'
    allow_create = True

    #: Windows with room, the best first.
    offers: list[Offer] = resource.Body('offers', type=list, list_type=Offer)
    #: Start at which the search was given up; None if it was not.
    searched_until: str | None = resource.Body('searched_until')
    #: What there is room for at the first start, if there is no offer.
    nearest: dict[str, Any] | None = resource.Body('nearest', type=dict)

    #: Reservations of the lease.
    reservations: list[dict[str, Any]] = resource.Body(
        'reservations', type=list
    )
    #: Lists of reservations, each of which would do instead.
    alternatives: list[list[dict[str, Any]]] = resource.Body(
        'alternatives', type=list
    )
    #: Least length of the lease.
    duration: str | int = resource.Body('duration')
    #: Greatest length of the lease.
    max_duration: str | int = resource.Body('max_duration')
    #: First start.
    start_date: str = resource.Body('start_date')
    #: Last start.
    latest_start_date: str = resource.Body('latest_start_date')
    #: Last end.
    latest_end_date: str = resource.Body('latest_end_date')
    #: Starts that may be chosen, as ``1h`` or ``09:00 Europe/Berlin``.
    align: str = resource.Body('align')
    #: Order of the offers: ``earliest``, ``longest`` or ``most``.
    best: str = resource.Body('best')
    #: Most offers to return.
    limit: int = resource.Body('limit')
    #: Least time between the starts of two offers.
    distance: str | int = resource.Body('distance')
    #: How long the first offer is held for the project.
    hold: str | int = resource.Body('hold')
