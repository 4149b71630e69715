# SPDX-License-Identifier: Apache-2.0
"""Limits: the handler that translates requests into manager calls."""

import falcon

from blazar_sched.service.api import listing
from blazar_sched.service.api import microversion
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas import limit as schemas
from blazar_sched.service.api.views.limit import LIMIT


def list_limits(req: falcon.Request, caller: Caller) -> list[listing.Item]:
    """List the limits of the project, with what it uses of them.

    The limits are those of the enforcement filters that the operator has
    enabled, and the numbers of offers, series, lease requests, webhooks and
    calendars that a project may have.
    """
    asked = listing.text(req, 'project_id', schemas.MAX_PROJECT_ID)
    named = asked if caller.scope is None else None
    project_id = named or caller.project_id
    return caller.manager.list_limits(project_id=project_id)['items']


ROUTES = (
    Route(
        'GET', '/v1/limits', list_limits,
        Rule('blazar:limits:get', PROJECT_READER_OR_ADMIN),
        Answer(LIMIT, 'limits', many=True), since=microversion.V1_1,
        query=schemas.QUERY,
    ),
)
