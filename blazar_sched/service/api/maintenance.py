# SPDX-License-Identifier: Apache-2.0
"""Maintenances: handlers that translate requests into calls to the manager."""

from typing import Any

import falcon

from blazar_sched.domain import exception
from blazar_sched.domain.lease import NOW
from blazar_sched.domain.window import FOREVER
from blazar_sched.service.api import dry_run
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import times
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.schemas import maintenance as schemas
from blazar_sched.service.api.schemas.lease import CHANGING_QUERY
from blazar_sched.service.api.views.maintenance import LISTED_MAINTENANCE
from blazar_sched.service.api.views.maintenance import MAINTENANCE

Body = dict[str, Any]


def create_maintenance(req: falcon.Request, caller: Caller) -> Body:
    """Close hosts over a window, and move reservations off the hosts.

    The request is refused if reservations cannot leave the hosts, unless
    `force` is true. A dry run is never refused for that: it shows what would
    be moved and what would be in the way.
    """
    only_asks = dry_run.argument(req)
    body = req.media
    validation.check_body(schemas.CREATE, caller.version, body)
    hosts, requirement = body.get('hosts'), body.get('resource_properties')
    if (hosts is None) == (requirement is None):
        raise exception.InvalidInput(
            'hosts or resource_properties is required' if hosts is None
            else 'hosts are chosen by hosts or by resource_properties, not by '
            'both',
            field='hosts',
        )
    return caller.manager.create_maintenance(
        values={
            'name': body['name'],
            'reason': body.get('reason', ''),
            'start': _start(body),
            'end': _end(body),
            'hosts': hosts,
            'resource_properties': requirement,
        },
        force=body.get('force', False), **only_asks,
    )


def update_maintenance(
    req: falcon.Request, caller: Caller, maintenance_id: str
) -> Body:
    """Change the name, the reason or the window of a maintenance."""
    only_asks = dry_run.argument(req)
    body = req.media
    validation.check_body(schemas.UPDATE, caller.version, body)
    values = {name: body[name] for name in ('name', 'reason') if name in body}
    if 'start_date' in body:
        values['start'] = _start(body)
    if 'end_date' in body:
        values['end'] = _end(body)
    return caller.manager.update_maintenance(
        maintenance_id=maintenance_id, values=values,
        force=body.get('force', False), **only_asks,
    )


def _start(body: Body) -> int | None:
    """Return the start in epoch seconds, None for now."""
    if body.get('start_date') == NOW:
        return None
    return times.read_time(body, 'start_date')


def _end(body: Body) -> int:
    end = times.read_time(body, 'end_date')
    return FOREVER if end is None else end


MAINTENANCES = Collection(
    '/v1/maintenances', Field('maintenance_id', meaning.MAINTENANCE_ID),
    'maintenance', 'maintenances', 'blazar:maintenances', ADMIN, ADMIN,
    MAINTENANCE, LISTED_MAINTENANCE, microversion.V1_1,
)
ROUTES = (
    MAINTENANCES.to_list(
        'List the maintenances.', lambda manager: manager.list_maintenances
    ),
    MAINTENANCES.to_create(
        create_maintenance, schemas.CREATE, query=CHANGING_QUERY
    ),
    MAINTENANCES.to_show(
        'Show a maintenance, with the reservations that are in its way.',
        lambda manager: manager.get_maintenance,
    ),
    MAINTENANCES.to_update(
        update_maintenance, schemas.UPDATE, query=CHANGING_QUERY
    ),
    MAINTENANCES.to_delete(
        'End or cancel a maintenance: its hosts are open again.',
        lambda manager: manager.delete_maintenance,
    ),
)
