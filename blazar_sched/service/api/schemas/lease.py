# SPDX-License-Identifier: Apache-2.0
"""Schemas of request bodies about a lease, and of a query of a lease list."""

from collections.abc import Callable
from typing import Any

from microversion_parse import Version

from blazar_sched.domain import label
from blazar_sched.domain import state_machine
from blazar_sched.service.api import listing
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import validation
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.schemas import reservation
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.validation import Schema
from blazar_sched.service.api.waiting import MAX_TIMEOUT

# The format informs readers of the OpenAPI document: the domain parses times.
_DATE: Schema = {
    'type': 'string',
    'format': 'lease-time',
    'maxLength': 40,
    'description': (
        '`2026-01-31 09:30`, optionally with seconds and a time zone; UTC by '
        'default'
    ),
}
DATE = Type(_DATE)
DURATION = Type({
    'type': ['string', 'integer'],
    'format': 'lease-duration',
    'maxLength': 16,
    'minimum': 1,
    'description': 'seconds, or as in `90s`, `15m`, `6h`, `2d` or `1w`',
})
ALIGN = Field(
    'align',
    'Starts that may be chosen: a duration for its multiples in UTC, as `1h`, '
    'or a time of day with a time zone, as `09:00 Europe/Berlin`; any second '
    'if absent',
    type=text.up_to(80), required=False, since=microversion.V1_1,
)


def date_or_null(null: str) -> Type:
    """Return the type of a time that may be null, which means `null`."""
    return Type(
        {
            **_DATE,
            'type': ['string', 'null'],
            'description': f'{_DATE["description"]}; null means {null}',
        }
    )


class Reservations(Type):
    """The reservations of a request, which `item` describes by version.

    :param least: the least number of reservations
    """

    def __init__(
        self, item: Callable[[Version], Schema], least: int = 0
    ) -> None:
        self._item = item
        self._least = {'minItems': least} if least else {}

    def schema(self, version: Version) -> Schema:
        return {
            'type': 'array',
            'maxItems': 100,
            **self._least,
            'items': self._item(version),
        }


class _Lists(Type):
    """Lists of new reservations, at most `most`."""

    def __init__(self, most: int) -> None:
        self._most = most

    def schema(self, version: Version) -> Schema:
        return {
            'type': 'array', 'maxItems': self._most,
            'items': Reservations(reservation.new, least=1).schema(version),
        }


def alternatives(most: int) -> Field:
    return Field(
        'alternatives',
        'Lists of reservations, each of which would do instead',
        type=_Lists(most), required=False, since=microversion.V1_1,
    )


_DEFAULT = 'the time that the operator has configured'
_NAME = Type(text.line(80))
AS_FAR_AS_POSSIBLE = 'as_far_as_possible'
_BEFORE_END = 'Time of the `before_end_lease` event'
_LENGTH = Field(
    'duration', 'Length of the lease, in place of `end_date`', type=DURATION,
    required=False, since=microversion.V1_1,
)
NEW = (
    Field('name', meaning.LEASE_NAME, type=_NAME),
    Field(
        'start_date', meaning.START, type=date_or_null('now'), required=False
    ),
    Field('end_date', meaning.END, type=DATE),
    Field(
        'end_date', f'{meaning.END}; required without `duration` or `offer`',
        type=date_or_null('no end'), since=microversion.V1_1, required=False,
    ),
    _LENGTH,
    Field(
        'latest_start_date',
        'Last start: the lease begins at the first start, from `start_date` '
        'on, that has room; needs `duration`',
        type=DATE, required=False, since=microversion.V1_1,
    ),
    ALIGN,
    Field(
        'before_end_date', _BEFORE_END, type=date_or_null(_DEFAULT),
        required=False,
    ),
    reservation.LABELS,
    Field(
        'reservations', meaning.RESERVATIONS,
        type=Reservations(reservation.new), required=False,
    ),
    Field(
        'reservations', f'{meaning.RESERVATIONS}; required without `offer`',
        type=Reservations(reservation.new), since=microversion.V1_1,
        required=False,
    ),
    alternatives(5),
    # Blazar's clients always send the list, nearly always empty.
    Field(
        'events', f'{meaning.EVENTS}; must be empty in a request',
        type=Type({**many({}), 'maxItems': 0}), required=False,
    ),
)
_UPDATE = Object(
    Field('name', meaning.LEASE_NAME, type=_NAME, required=False),
    reservation.LABELS,
    Field('start_date', meaning.START, type=DATE, required=False),
    Field('end_date', meaning.END, type=DATE, required=False),
    Field(
        'end_date', meaning.END, type=date_or_null('no end'),
        since=microversion.V1_1, required=False,
    ),
    _LENGTH,
    Field(
        'before_end_date', _BEFORE_END, type=date_or_null('no change'),
        required=False,
    ),
    Field(
        'before_end_date', _BEFORE_END, type=date_or_null(_DEFAULT),
        since=microversion.V1_1, required=False,
    ),
    Field(
        'reservations', meaning.RESERVATIONS,
        type=Reservations(reservation.changed), required=False,
    ),
    Field(
        AS_FAR_AS_POSSIBLE,
        'Whether the lease is to end as late as possible, at `end_date` at '
        'the latest; no other field but `name` can be changed by such a '
        'request',
        type=BOOLEAN, since=microversion.V1_1, required=False,
    ),
)
CREATE = validation.by_version(Object(*NEW).schema)
UPDATE = validation.by_version(_UPDATE.schema)

# The maximum length of an id, and of a text in the query of a list.
MAX_ID = 36
MAX_TEXT = 255
STATUSES = list(state_machine.MACHINES[state_machine.LEASE].states)
# The keys by which the manager can sort leases.
SORT_KEYS = (
    'id', 'name', 'status', 'start', 'end', 'created_at', 'updated_at'
)
QUERY = (
    Field('name', 'Only leases of this name', type=text.up_to(MAX_TEXT)),
    Field(
        'status', 'Only leases in this status', type=Type({'enum': STATUSES})
    ),
    Field(
        'project_id',
        'Only leases of this project; ignored unless the caller is an '
        'administrator',
        type=text.up_to(MAX_TEXT),
    ),
    Field(
        'active_at',
        'Only leases whose window has this time, which may be `now`',
        type=DATE, since=microversion.V1_1,
    ),
    Field(
        'start_date', 'Only leases that end after this time', type=DATE,
        since=microversion.V1_1,
    ),
    Field(
        'end_date', 'Only leases that start before this time', type=DATE,
        since=microversion.V1_1,
    ),
    Field(
        'resource_type', 'Only leases with a reservation of this type',
        type=text.up_to(MAX_TEXT), since=microversion.V1_1,
    ),
    Field(
        'host',
        'Only leases that have or had the host of this hypervisor hostname; '
        'unless the caller is an administrator, the whole host',
        type=text.up_to(MAX_TEXT), since=microversion.V1_1,
    ),
    Field(
        'degraded', 'Only leases that are degraded, or that are not',
        type=BOOLEAN, since=microversion.V1_1,
    ),
    Field(
        'label',
        'Only leases that have this label themselves or on a reservation, as '
        'in `team:vision`; may be repeated',
        type=Type({
            'type': 'array',
            'maxItems': label.MAX_LABELS,
            'items': {'type': 'string', 'pattern': f'^{label.KEY}:.'},
        }),
        since=microversion.V1_1,
    ),
    listing.sort_field(SORT_KEYS),
    *listing.QUERY,
)
WAITING_QUERY = (
    Field(
        'wait_for',
        'Statuses, as in `ACTIVE,ERROR`: the response waits for one of them',
        type=Type({'type': 'string', 'format': 'statuses'}),
        since=microversion.V1_1,
    ),
    Field(
        'timeout', 'Seconds for which the response waits at most',
        type=Type({'type': 'integer', 'minimum': 1, 'maximum': MAX_TIMEOUT}),
        since=microversion.V1_1,
    ),
)
# The query parameter that asks for a response without any change.
DRY_RUN = 'dry_run'
CHANGING_QUERY = (
    Field(
        DRY_RUN,
        'Whether to respond as the service would respond now, without any '
        'change',
        type=BOOLEAN, since=microversion.V1_1,
    ),
)


def plain(document: Any) -> Any:
    """Return `document` with values of reservations in the schema's form."""
    if not isinstance(document, dict):
        return document
    plain = dict(document)
    if 'reservations' in plain:
        plain['reservations'] = reservation.plain_all(plain['reservations'])
    if isinstance(plain.get('alternatives'), list):
        plain['alternatives'] = list(
            map(reservation.plain_all, plain['alternatives'])
        )
    return plain


def read(document: Any, schema: validation.ByVersion, version: Version) -> Any:
    """Return `document` as `plain` does, in 1.0 without what Blazar ignores.

    :param schema: CREATE or UPDATE
    """
    document = plain(document)
    if version >= microversion.V1_1 or not isinstance(document, dict):
        return document
    # A key that only a later version has is left for the schema to refuse.
    newest: Any = schema[microversion.KNOWN[-1]].schema
    read = {k: v for k, v in document.items() if k in newest['properties']}
    if isinstance(read.get('reservations'), list):
        read['reservations'] = list(
            map(reservation.of_blazar, read['reservations'])
        )
    return read
