# SPDX-License-Identifier: Apache-2.0
"""Series: leases that recur."""

from typing import Any

from openstack import resource

from blazar_sched_client._base import Resource


class Series(Resource):
    """Leases that recur, with the leases that are booked."""

    resource_key = 'series'
    resources_key = 'series'
    base_path = '/series'
    allow_create = True
    allow_fetch = True
    allow_commit = True
    allow_delete = True
    allow_list = True

    #: ID of the project that owns the series.
    project_id: str = resource.Body('project_id')
    #: ID of the user who created the series.
    user_id: str = resource.Body('user_id')
    #: Rule of RFC 5545 for the starts, in local time.
    rrule: str = resource.Body('rrule')
    #: Time zone of the rule.
    time_zone: str = resource.Body('time_zone')
    #: First start, in local time.
    start: str = resource.Body('start')
    #: Length of each lease.
    duration: str | int = resource.Body('duration')
    #: Dates, or local starts, of occurrences to leave out.
    except_dates: list[str] = resource.Body('except', type=list)
    #: ``refuse`` or ``skip``: what is done if an occurrence has no room.
    if_no_room: str = resource.Body('if_no_room')
    #: Start of the first occurrence that is still to be booked.
    booked_until: str | None = resource.Body('booked_until')
    #: Occurrences that are booked, and that wait for room.
    leases: list[dict[str, Any]] = resource.Body('leases', type=list)
    #: Reservations of each lease.
    reservations: list[dict[str, Any]] = resource.Body(
        'reservations', type=list
    )
    #: Time of creation.
    created_at: str = resource.Body('created_at')
    #: Time of the last change.
    updated_at: str | None = resource.Body('updated_at')

    #: Local date or time of the first occurrence that an update changes.
    change_from: str = resource.Body('from')
    #: A request that is sent again with the same key makes no second series.
    idempotency_key: str = resource.Header('Idempotency-Key')
