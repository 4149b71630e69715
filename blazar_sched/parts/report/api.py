# SPDX-License-Identifier: Apache-2.0
"""The report of the usage: the route, its query and its rows."""

from typing import cast

import falcon

from blazar_sched.domain import exception
from blazar_sched.parts.report.calls import Calls
from blazar_sched.parts.report.usage import DEFAULT_DAYS
from blazar_sched.parts.report.usage import GROUPS
from blazar_sched.parts.report.usage import MAX_DAYS
from blazar_sched.service.api import listing
from blazar_sched.service.api import meaning
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.microversion import V1_1
from blazar_sched.service.api.microversion import V1_2
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.schemas.lease import DATE

_MAX_TEXT = 255
_QUERY = (
    Field(
        'start_date',
        f'Start of the report, {DEFAULT_DAYS} days before the end if absent; '
        f'at most {MAX_DAYS} days before the end',
        type=DATE,
    ),
    Field('end_date', 'End of the report, now if absent', type=DATE),
    Field(
        'group_by',
        'What the sums are grouped by, beside the resource class: some of '
        + ', '.join(f'`{name}`' for name in GROUPS)
        + ', separated by commas',
        type=text.up_to(_MAX_TEXT),
    ),
    Field(
        'project_id',
        'ID of the project, by default the project of the caller, or all '
        'projects for an administrator; ignored unless the caller is an '
        'administrator',
        type=text.up_to(_MAX_TEXT),
    ),
)

_HOURS = Type({'type': 'number', 'minimum': 0})


def _hours(name: str, meaning: str, example: float) -> Field:
    return Field(name, meaning, example, _HOURS)


def _group(name: str, meaning: str, example: str | None = None) -> Field:
    return Field(
        name, f'{meaning}; only if the report is grouped by it', example,
        get=lambda row: row.get(name), required=False,
    )


USAGE = Object(
    _group('project_id', 'ID of the project', 'p1'),
    _group('lease_id', 'ID of the lease'),
    _group('reservation_id', 'ID of the reservation'),
    _group('resource_type', meaning.RESOURCE_TYPE),
    _group('flavor', 'ID of the flavor, empty for none'),
    _group('product', 'Name of the product, empty for none'),
    _group('day', 'Day in UTC', '2030-01-01'),
    Field(
        'resource_class',
        'Resource class, or `HOST` for whole hosts, or `FLOATING_IP`', 'VCPU',
    ),
    _hours('reserved', 'Amount x hours that were reserved', 48.0),
    _hours('used', 'Amount x hours that servers used of it', 36.0),
    _hours('idle', 'Amount x hours that servers did not use', 12.0),
    _hours(
        'no_show',
        'Amount x hours of the reservations that had no server in the report',
        0.0,
    ),
    _hours(
        'late', 'Hours for which starts of reservations were due and not done',
        0.0,
    ),
    Field(
        'refused', 'Amount x hours of the leases that were refused', 0.0,
        _HOURS, lambda row: row.get('refused', 0.0), V1_2,
    ),
    name='Usage', meaning='What reservations have reserved and used',
)


def list_usage(req: falcon.Request, caller: Caller) -> list[listing.Item]:
    """Report what reservations have reserved and used, in hours.

    The report has the days that start in the window. An administrator gets
    the usage of all projects. The usage is kept after leases are deleted.
    """
    asked = listing.text(req, 'project_id', _MAX_TEXT)
    return cast(Calls, caller.manager).list_usage(
        project_id=asked if caller.scope is None else caller.scope,
        start=listing.time(req, 'start_date'),
        end=listing.time(req, 'end_date'), group_by=_group_by(req),
    )['items']


def _group_by(req: falcon.Request) -> list[str]:
    asked = listing.text(req, 'group_by', _MAX_TEXT)
    groups = [] if asked is None else asked.split(',')
    for name in groups:
        if name not in GROUPS or groups.count(name) > 1:
            raise exception.InvalidInput(
                f'group_by must be some of {", ".join(GROUPS)}, each once',
                field='group_by',
            )
    return groups


ROUTES = (
    Route(
        'GET', '/v1/reports/usage', list_usage,
        Rule('blazar:usage:get', PROJECT_READER_OR_ADMIN),
        Answer(USAGE, 'usage', many=True), since=V1_1, query=_QUERY,
    ),
)
