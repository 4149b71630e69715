# SPDX-License-Identifier: Apache-2.0
"""Series: handlers that translate requests into calls to the manager."""

from typing import Any

import falcon

from blazar_sched.domain.series import REFUSE
from blazar_sched.service.api import dry_run
from blazar_sched.service.api import idempotency
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import requirement
from blazar_sched.service.api import reservation
from blazar_sched.service.api import times
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.rule import PROJECT_MEMBER_OR_ADMIN
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.schemas import lease as lease_schemas
from blazar_sched.service.api.schemas import series as schemas
from blazar_sched.service.api.schemas.idempotency import HEADERS
from blazar_sched.service.api.schemas.reservation import with_defaults
from blazar_sched.service.api.views.series import LISTED_SERIES
from blazar_sched.service.api.views.series import SERIES

Body = dict[str, Any]

# The fields that are passed on as they are.
_PLAIN = ('name', 'rrule', 'time_zone', 'start', 'if_no_room')


def create_series(req: falcon.Request, caller: Caller) -> Body:
    """Create a series, and book its occurrences of the next time.

    All of the occurrences that are to be booked now are booked, or nothing is;
    with `skip`, those that have room.
    """
    only_asks = dry_run.argument(req)
    body = lease_schemas.plain(req.media)
    validation.check_body(schemas.CREATE, caller.version, body)
    return caller.manager.create_series(
        values={
            'project_id': caller.project_id,
            'user_id': caller.user_id,
            'except_dates': [],
            'if_no_room': REFUSE,
            **_values(caller, body),
        },
        names=requirement.sees_host_names(caller), **only_asks,
        **idempotency.argument(req, bool(only_asks)),
    )


def update_series(req: falcon.Request, caller: Caller, series_id: str) -> Body:
    """Change a series from an occurrence on.

    The leases that have not started are replaced where the change concerns
    their window or their reservations; the other leases stay.
    """
    only_asks = dry_run.argument(req)
    body = lease_schemas.plain(req.media)
    validation.check_body(schemas.UPDATE, caller.version, body)
    return caller.manager.update_series(
        series_id=series_id, project_id=caller.scope,
        values=_values(caller, body), since=body.get('from'),
        # A manager of the release before accepts None only.
        names=requirement.sees_host_names(caller) or None, **only_asks,
    )


def _values(caller: Caller, body: Body) -> Body:
    """Return the fields of a series that a request has."""
    values = {name: body[name] for name in _PLAIN if name in body}
    if 'duration' in body:
        values['duration'] = times.read_duration(body, 'duration')
    if 'except' in body:
        values['except_dates'] = body['except']
    if 'reservations' in body:
        values['reservations'] = reservation.read(
            caller, [with_defaults(each) for each in body['reservations']]
        )
    return values


ALL_SERIES = Collection(
    '/v1/series', Field('series_id', meaning.SERIES_ID), 'series', 'series',
    'blazar:series', PROJECT_READER_OR_ADMIN, PROJECT_MEMBER_OR_ADMIN, SERIES,
    LISTED_SERIES, microversion.V1_1, owned=True,
)
ROUTES = (
    ALL_SERIES.to_list(
        'List the series of the project, or of all projects for an admin.',
        lambda manager: manager.list_series,
    ),
    ALL_SERIES.to_create(
        create_series, schemas.CREATE, query=lease_schemas.CHANGING_QUERY,
        headers=HEADERS, also=reservation.RULES,
    ),
    ALL_SERIES.to_show(
        'Show a series, with its occurrences.',
        lambda manager: manager.get_series,
    ),
    ALL_SERIES.to_update(
        update_series, schemas.UPDATE, query=lease_schemas.CHANGING_QUERY,
        also=reservation.RULES,
    ),
    ALL_SERIES.to_delete(
        'Delete a series with its leases that have not started.',
        lambda manager: manager.delete_series,
    ),
)
