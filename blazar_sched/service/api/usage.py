# SPDX-License-Identifier: Apache-2.0
"""The report of usage: the handler that translates requests into calls."""

import falcon

from blazar_sched.domain import exception
from blazar_sched.domain.usage import GROUPS
from blazar_sched.service.api import listing
from blazar_sched.service.api import microversion
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas import usage as schemas
from blazar_sched.service.api.views.usage import USAGE


def list_usage(req: falcon.Request, caller: Caller) -> list[listing.Item]:
    """Report what reservations have reserved and used, in hours.

    The report has the days that start in the window. An administrator gets
    the usage of all projects. The usage is kept after leases are deleted.
    """
    asked = listing.text(req, 'project_id', schemas.MAX_TEXT)
    return caller.manager.list_usage(
        project_id=asked if caller.scope is None else caller.scope,
        start=listing.time(req, 'start_date'),
        end=listing.time(req, 'end_date'),
        group_by=_group_by(req),
    )['items']


def _group_by(req: falcon.Request) -> list[str]:
    asked = listing.text(req, 'group_by', schemas.MAX_TEXT)
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
        Answer(USAGE, 'usage', many=True), since=microversion.V1_1,
        query=schemas.QUERY,
    ),
)
