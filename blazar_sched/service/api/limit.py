# SPDX-License-Identifier: Apache-2.0
"""Limits: the route, its query and the view."""

import falcon

from blazar_sched.service.api import listing
from blazar_sched.service.api import microversion
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas import text

LIMIT = Object(
    Field(
        'name',
        'Name of the option of the service; `max_webhooks` and '
        '`max_calendars` are no options', 'max_leases_per_project',
    ),
    Field(
        'unit',
        'What is counted: `leases`, `hosts`, `instances`, `seconds`, '
        '`weight`, `weight x hours`, `offers`, `series`, `requests`, '
        '`webhooks` or `calendars`, or a resource class',
        'leases',
    ),
    Field('limit', 'Largest number that is allowed, -1 for any', 5, INTEGER),
    Field(
        'used',
        'Number that counts for the next one of the project; null if the '
        'limit is for each lease',
        3, Type({'type': ['number', 'null']}),
    ),
    name='Limit', meaning='A limit of a project',
)

MAX_PROJECT_ID = 255

QUERY = (
    Field(
        'project_id',
        'ID of the project, by default the project of the caller; ignored '
        'unless the caller is an administrator',
        type=text.up_to(MAX_PROJECT_ID),
    ),
)


def list_limits(req: falcon.Request, caller: Caller) -> list[listing.Item]:
    """List the limits of the project, with what it uses of them.

    The limits are those of the enforcement filters that the operator has
    enabled, and the numbers of offers, series, lease requests, webhooks and
    calendars that a project may have.
    """
    asked = listing.text(req, 'project_id', MAX_PROJECT_ID)
    named = asked if caller.scope is None else None
    project_id = named or caller.project_id
    return caller.manager.list_limits(project_id=project_id)['items']


ROUTES = (
    Route(
        'GET', '/v1/limits', list_limits,
        Rule('blazar:limits:get', PROJECT_READER_OR_ADMIN),
        Answer(LIMIT, 'limits', many=True), since=microversion.V1_1,
        query=QUERY,
    ),
)
