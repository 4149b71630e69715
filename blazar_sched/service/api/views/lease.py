# SPDX-License-Identifier: Apache-2.0
"""The view of a lease, with its reservations and events."""

import dataclasses

from microversion_parse import Version

from blazar_sched.domain import event
from blazar_sched.domain import state_machine
from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Item
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.microversion import V1_0
from blazar_sched.service.api.microversion import V1_1
from blazar_sched.service.api.microversion import V1_2
from blazar_sched.service.api.schemas.reservation import LABELS
from blazar_sched.service.api.times import CREATED_AT
from blazar_sched.service.api.times import DATE_OR_NULL
from blazar_sched.service.api.times import STAMPS
from blazar_sched.service.api.times import UPDATED_AT
from blazar_sched.service.api.times import WINDOW
from blazar_sched.service.api.validation import Schema
from blazar_sched.service.api.views.reservation import RESERVATION
from blazar_sched.service.api.views.reservation import statuses

_ID = 'b1f5d6c4-0000-4000-8000-000000000000'


def _blazars_events(lease: Item) -> list[Item]:
    return [e for e in lease['events'] if e['event_type'] in event.BLAZARS]


def _events(types: tuple[str, ...]) -> Many:
    """Return the type of a list of events of some types."""
    return Many(
        Object(
            Field(
                'id', 'ID of the event', 'b1f5d6c4-0000-4000-8000-000000000002'
            ),
            Field('lease_id', meaning.LEASE_ID, _ID),
            Field(
                'event_type', 'Type of the event', event.START_LEASE,
                Type({'enum': list(types)}),
            ),
            Field(
                'time', 'Time at which the event is due', 1767229200,
                DATE_OR_NULL,
            ),
            Field(
                'status', 'Status of the event', 'UNDONE',
                statuses(state_machine.EVENT),
            ),
            *STAMPS,
        )
    )


LEASE = Object(
    Field('id', meaning.LEASE_ID, _ID),
    Field('name', meaning.LEASE_NAME, 'night-run'),
    Field('user_id', 'ID of the user who created the lease', 'alice'),
    Field('project_id', 'ID of the project that owns the lease', 'p1'),
    *WINDOW,
    Field(
        'trust_id',
        'ID of the Keystone trust with which the service acts for the user',
        None, TEXT_OR_NULL,
    ),
    Field(
        'status', 'Status of the lease', 'PENDING',
        statuses(state_machine.LEASE),
    ),
    Field(
        'degraded', 'Whether resources of the lease are missing or occupied',
        False, BOOLEAN,
    ),
    Field(
        'series_id', f'{meaning.SERIES_ID}; null if there is none', None,
        TEXT_OR_NULL, lambda lease: lease.get('series_id'), since=V1_1,
    ),
    Field(
        'occurrence', f'{meaning.OCCURRENCE}; null if there is none', None,
        TEXT_OR_NULL, lambda lease: lease.get('occurrence'), since=V1_1,
    ),
    dataclasses.replace(
        LABELS, get=lambda lease: lease.get('labels', {}), required=True
    ),
    Field(
        'approved_by',
        'ID of the user who has approved the held offer that the lease was; '
        'null if the lease needed no approval',
        None, TEXT_OR_NULL, since=V1_2,
    ),
    Field(
        'alternative',
        'Position of the reservations that are booked: 0 for `reservations`, '
        'then those of `alternatives`; only in the answer to a request with '
        '`alternatives`',
        0, INTEGER, lambda lease: lease.get('alternative'), V1_1,
        required=False,
    ),
    Field('reservations', meaning.RESERVATIONS, type=Many(RESERVATION)),
    Field(
        'events', meaning.EVENTS, type=_events(event.BLAZARS),
        get=_blazars_events,
    ),
    Field('events', meaning.EVENTS, type=_events(event.OF_LEASE), since=V1_1),
    CREATED_AT, dataclasses.replace(UPDATED_AT, example=1767225661),
    name='Lease', meaning="A project's contract over one window",
    columns=('id', 'name', 'start_date', 'end_date', 'status', 'degraded'),
)
# The fields that a request for a list may select.
FIELDS = list(LEASE.schema(V1_0)['properties'])


class _Listed(Object):
    """A lease in a list, which may be limited to some fields."""

    def noun(self, version: Version) -> Schema:
        return {
            **LEASE.noun(version),
            'required': [],
            'description': 'A lease, or the requested fields of a lease',
        }


LISTED_LEASE = _Listed(name='ListedLease')
